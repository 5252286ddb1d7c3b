"""What figures call things; each is a template of the catalogue of sentences."""

from __future__ import annotations

from planner.explain import CATEGORY_NAMES
from reports.words import Words
from simulator.units import GIB, JOULES_PER_MWH

CATEGORIES = {kind.value: name for kind, name in CATEGORY_NAMES.items()}
"""Categories of a step, in the order in which they are drawn."""
MEMORY_PARTS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations",
    "transient": "recomputed and gathered",
    "logits": "logits",
    "fragmentation": "fragmentation",
    "context": "CUDA context and NCCL",
}
"""Parts of the reserved memory, in the order in which they are drawn."""
PASSES = {
    "forward": "forward",
    "backward": "backward",
    "backward_input": "backward, input gradients",
    "backward_weight": "backward, weight gradients",
    "optimizer": "optimizer",
    "gather": "gather parameters",
    "reduce": "reduce gradients",
    "send_forward": "send activations",
    "send_backward": "send gradients",
}
"""Bars of a timeline."""
OBJECTIVES = {
    "step_time": ("Step time, s", 1.0),
    "days": ("Days for all tokens", 1.0),
    "cost": ("Cost", 1.0),
    "energy": ("Energy, MWh", 1 / JOULES_PER_MWH),
    "memory": ("Peak memory, GiB", 1 / GIB),
    "accelerators": ("Accelerators", 1.0),
}
"""What is drawn of an objective, and by what its value is multiplied."""


def named(labels: dict[str, str], key: str, words: Words) -> str:
    """Return what to call something; a key that is not known is said as it is, with blanks."""
    label = labels.get(key)
    return key.replace("_", " ") if label is None else words(label)


def tone_of(labels: dict[str, str], key: str) -> int:
    """Return the place of something's colour in the palette: its place among all of its kind.

    A key that is not known comes after them.
    """
    return list(labels).index(key) if key in labels else len(labels)
