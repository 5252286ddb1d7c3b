"""What would need less memory than any layout of a search table, and is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.parallel.layout import ZERO_PARAMETERS, Recompute
from simulator.scenario import Scenario
from simulator.workload.job import Optimizer

_SHARDS_PARAMETERS = "torchtitan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A key to try."""

    text: str
    search: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the search table with their new values."""
    job: Mapping[str, Any] = field(default_factory=dict)
    stack: str = ""
    """A stack in the place of the scenario's."""


def memory_hints(scenario: Scenario, largest: str) -> tuple[Hint, ...]:
    """Return keys to try, where `largest` is the largest part of the nearest miss."""
    match largest:
        case "weights" | "gradients" | "experts":
            found = [*_weights(scenario), *_optimizer(scenario), *_activations(scenario)]
        case "optimizer":
            found = [*_optimizer(scenario), *_weights(scenario), *_activations(scenario)]
        case _:
            found = [*_activations(scenario), *_optimizer(scenario), *_weights(scenario)]
    return tuple(found)


def _activations(scenario: Scenario) -> Iterator[Hint]:
    search, stack = scenario.file.search, scenario.stack
    if Recompute.FULL in stack.recompute and Recompute.FULL not in search.recompute:
        text = 'search.recompute with "full": keeps the input of each layer alone'
        yield Hint(text=text, search={"recompute": (*search.recompute, Recompute.FULL)})
    if Recompute.SELECTIVE in stack.recompute and Recompute.SELECTIVE not in search.recompute:
        text = 'search.recompute with "selective": what is cheap to compute again is not kept'
        yield Hint(text=text, search={"recompute": (*search.recompute, Recompute.SELECTIVE)})
    if search.cp == (1,) and scenario.file.job.seq_length % 4 == 0:
        text = "search.cp = [1, 2]: halves the tokens of a rank"
        yield Hint(text=text, search={"cp": (1, 2)})
    if not any(search.offload_layers) and stack.offload.activations:
        text = "search.offload_layers = [1] with pp 1: activations of a layer wait in host memory"
        yield Hint(text=text, search={"offload_layers": (0, 1)})


def _weights(scenario: Scenario) -> Iterator[Hint]:
    search, stack, moe = scenario.file.search, scenario.stack, scenario.model.spec.moe
    if moe is not None and search.ep is not None and max(search.ep) < moe.num_experts:
        text = f"search.ep above {max(search.ep)}, up to the {moe.num_experts} experts of a layer"
        yield Hint(text=text, search={"ep": None})
    offered = max((*stack.zero_stages, *stack.zero_stages_with_pipeline))
    if search.zero_stage is not None and max(search.zero_stage) < offered:
        text = f"search.zero_stage = [{offered}], which {stack.name} offers"
        yield Hint(text=text, search={"zero_stage": (offered,)})
    elif offered < ZERO_PARAMETERS:
        text = f"a stack that shards parameters too (ZeRO-3, FSDP), such as {_SHARDS_PARAMETERS}"
        yield Hint(text=text, stack=_SHARDS_PARAMETERS)


def _optimizer(scenario: Scenario) -> Iterator[Hint]:
    search, job, stack = scenario.file.search, scenario.file.job, scenario.stack
    if not any(search.optimizer_offload) and stack.offload.optimizer:
        text = "search.optimizer_offload = [1.0]: optimizer states live on the host"
        yield Hint(text=text, search={"optimizer_offload": (0.0, 1.0)})
    if job.optimizer is Optimizer.ADAM:
        text = f'job.optimizer = "{Optimizer.ADAM_8BIT}": a byte a state in the place of four'
        yield Hint(text=text, job={"optimizer": Optimizer.ADAM_8BIT})
