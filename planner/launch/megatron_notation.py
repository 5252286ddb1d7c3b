"""Stages of a pipeline in Megatron's notation.

E is the embedding, t a layer, m a module of multi-token prediction, L the loss; | is between two
stages, (...)*n and t*n repeat, and commas mean nothing.

Source: Megatron-LM core/transformer/pipeline_parallel_layer_layout.py (`parse_str_to_list`,
`validate_layer_layout`), core 0.16.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from simulator.workload.model_parts import MAX_LAYERS

_FEW = 2
"""Equal stages that are written out."""
_REPEATED = re.compile(r"\(([^()]*)\)\*(\d{1,5})|([tmEL|])\*(\d{1,5})")
_STAGES = re.compile(r"[EtmL|]*")
_ORDER = re.compile(r"Et*m*L")


def spell_stages(layers: Sequence[int], predicting: int) -> str:
    """Return stages with so many layers each, modules of multi-token prediction before the loss.

    >>> spell_stages((1, 2, 0), 1)
    'Et|tt|mL'
    """
    stages = ["t" * count for count in layers]
    stages[0] = "E" + stages[0]
    stages[-1] += "m" * predicting + "L"
    return "|".join(stages)


def shorten(text: str) -> str:
    """Return the same stages with repetitions in the place of what is repeated.

    >>> shorten("Ettt|tt|tt|tt|mL")
    'Ettt|(tt|)*3mL'
    """
    *stages, last = text.split("|")
    groups = [(stage, len(list(equal))) for stage, equal in groupby(stages)]
    parts = [f"({stage}|)*{n}" if n > _FEW else f"{stage}|" * n for stage, n in groups]
    return "".join(parts) + last


def parse_stages(text: str) -> list[str] | None:
    """Return the letters of each stage, None where it is no such notation, or too long.

    >>> parse_stages("Et*3|(tt|)*2,m|L")
    ['Ettt', 'tt', 'tt', 'm', 'L']
    """
    plain = text.replace(",", "").replace(" ", "")
    repeated = _REPEATED.search(plain)
    while repeated is not None:
        body, times = repeated[1] or repeated[3] or "", int(repeated[2] or repeated[4])
        if len(plain) + len(body) * times > 2 * MAX_LAYERS:
            return None
        plain = plain[: repeated.start()] + body * times + plain[repeated.end() :]
        repeated = _REPEATED.search(plain)
    return plain.split("|") if _STAGES.fullmatch(plain) else None


def stage_problems(
    stages: Sequence[str], layers: int, pp: int, predicting: int | None
) -> Iterator[tuple[str, str]]:
    """Yield rule and fix of what Megatron refuses of stages, or the forecast does not have.

    `predicting` is the number of modules of multi-token prediction, None where it is not known.
    """
    flat = "".join(stages)
    if len(stages) % pp:
        yield f"has {len(stages)} stages, and pp = {pp} must divide them", ""
    if not _ORDER.fullmatch(flat):
        yield "must be one E, then all t, then all m, then one L", ""
        return
    if flat.count("t") != layers:
        yield f"has {flat.count('t')} layers (t), and the model {layers}", ""
    modules = flat.count("m")
    if predicting is not None and modules != predicting:
        yield f"has {modules} m, and the model {predicting} modules of multi-token prediction", ""
    if "E" not in stages[0] or "L" not in stages[-1]:
        yield "the first stage must have E, and the last one L", ""
    elif modules and "m" * modules + "L" not in stages[-1]:
        nearest = shorten(spell_stages([stage.count("t") for stage in stages], modules))
        yield (
            "multi-token prediction in a stage apart from the loss is not modelled",
            f"{nearest}, which has it beside the loss: that stage is slower than in your run",
        )
