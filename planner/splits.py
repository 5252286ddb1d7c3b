"""How layers may be spread over pipeline stages, where a stack can be told so."""

from __future__ import annotations

from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import PartitionRule

FULLEST = 0.9
"""Mean over largest stage, in layers, below which no uneven split is offered: pipelines wait for
their largest stage, so that a fewer-stage layout with the same ranks does better."""


def given_layers(model: ModelSpec, stack: Stack, pp: int, parts: int) -> tuple[int, ...] | None:
    """Return the layers of each of `parts` virtual stages; None where the stack's rule has them.

    The embedding, the head and each module that predicts a further token count as a layer, which
    first and last stage have less. What is left over goes to the stages before the last one, where
    the fewest micro-batches are in flight.

    Source: Megatron-Core --account-for-embedding-in-pipeline-split and -loss-in-; from 0.12
    --pipeline-model-parallel-layout.
    """
    layers = model.num_hidden_layers
    if stack.partition is not PartitionRule.EVEN or layers % pp == 0 or parts == 1:
        return None
    last = 1 + model.num_nextn_predict_layers
    each, rest = divmod(layers + 1 + last, parts)
    if each < last or not _allowed(stack, each, rest, parts, last):
        return None
    longer = [*range(parts - 2, 0, -1), parts - 1, 0][:rest]
    counts = [each + (part in longer) for part in range(parts)]
    return (counts[0] - 1, *counts[1:-1], counts[-1] - last)


def chunk_counts(model: ModelSpec, stack: Stack, pp: int) -> tuple[int, ...]:
    """Return the vpp that divide the layers of a stage; ends that count as a layer are layers.

    Where only splits that are given are possible, those for which there is one.
    """
    layers = model.num_hidden_layers
    if given_layers(model, stack, pp, pp) is not None:
        each = range(1, layers // pp + 1)
        return tuple(n for n in each if given_layers(model, stack, pp, pp * n) is not None)
    ends = stack.partition in (PartitionRule.EMBEDDING_COUNTS, PartitionRule.BY_COST)
    whole = (layers + 2 * ends) // pp
    return tuple(n for n in range(1, min(whole, layers // pp) + 1) if whole % n == 0)


def _allowed(stack: Stack, each: int, rest: int, parts: int, last: int) -> bool:
    """Whether a stack can be given such a split, and it is worth it."""
    if rest == 0 and last == 1 and stack.short_ends:
        return True
    full = each + (rest > 0)
    return stack.custom_partition and (each + rest / parts) / full >= FULLEST
