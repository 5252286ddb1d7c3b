"""What would need less memory than any layout of a search table, and is not in it."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.parallel.layout import ZERO_PARAMETERS, Recompute
from simulator.scenario import Scenario
from simulator.workload.job import Optimizer


def memory_hints(scenario: Scenario, largest: str) -> tuple[str, ...]:
    """Return keys to try, in words, where `largest` is the largest part of the nearest miss."""
    match largest:
        case "weights" | "gradients" | "experts":
            found = [*_weights(scenario), *_optimizer(scenario), *_activations(scenario)]
        case "optimizer":
            found = [*_optimizer(scenario), *_weights(scenario), *_activations(scenario)]
        case _:
            found = [*_activations(scenario), *_optimizer(scenario), *_weights(scenario)]
    return tuple(found)


def _activations(scenario: Scenario) -> Iterator[str]:
    search, stack = scenario.file.search, scenario.stack
    if Recompute.FULL in stack.recompute and Recompute.FULL not in search.recompute:
        yield 'search.recompute with "full": keeps the input of each layer alone'
    if Recompute.SELECTIVE in stack.recompute and Recompute.SELECTIVE not in search.recompute:
        yield 'search.recompute with "selective": what is cheap to compute again is not kept'
    if search.cp == (1,) and scenario.file.job.seq_length % 4 == 0:
        yield "search.cp = [1, 2]: halves the tokens of a rank"
    if not any(search.offload_layers) and stack.offload.activations:
        yield "search.offload_layers = [1] with pp 1: activations of a layer wait in host memory"


def _weights(scenario: Scenario) -> Iterator[str]:
    search, stack, moe = scenario.file.search, scenario.stack, scenario.model.spec.moe
    if moe is not None and search.ep is not None and max(search.ep) < moe.num_experts:
        yield f"search.ep above {max(search.ep)}, up to the {moe.num_experts} experts of a layer"
    offered = max((*stack.zero_stages, *stack.zero_stages_with_pipeline))
    if search.zero_stage is not None and max(search.zero_stage) < offered:
        yield f"search.zero_stage = [{offered}], which {stack.name} offers"
    elif offered < ZERO_PARAMETERS:
        yield "a stack that shards parameters too (ZeRO-3, FSDP), such as torchtitan"


def _optimizer(scenario: Scenario) -> Iterator[str]:
    search, job, stack = scenario.file.search, scenario.file.job, scenario.stack
    if not any(search.optimizer_offload) and stack.offload.optimizer:
        yield "search.optimizer_offload = [1.0]: optimizer states live on the host"
    if job.optimizer is Optimizer.ADAM:
        yield f'job.optimizer = "{Optimizer.ADAM_8BIT}": a byte a state in the place of four'
