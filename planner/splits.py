"""How layers may be spread over pipeline stages, where a stack can be told so."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import PartitionRule

FULLEST = 0.85
"""Mean over largest stage, in layers, below which no uneven split is offered: pipelines wait for
their largest stage, so that a layout of fewer stages with the same ranks does better."""


def given_layers(model: ModelSpec, stack: Stack, pp: int, parts: int) -> tuple[int, ...] | None:
    """Return the layers of each of `parts` virtual stages; None where the stack's rule has them.

    Where embedding and head count as a layer each and the rest divides, the stack's own short ends;
    else the split whose largest stage is least, with what stands behind the layers counted as
    `tail_layers`. Stages that hold one more are the later ones, where the fewest micro-batches are
    in flight.

    Source: Megatron-Core --account-for-embedding-in-pipeline-split and -loss-in-; from 0.12
    --pipeline-model-parallel-layout.
    """
    layers = model.num_hidden_layers
    if stack.partition is not PartitionRule.EVEN or layers % pp == 0 or parts == 1:
        return None
    each, rest = divmod(layers + 2, parts)
    if rest == 0 and stack.short_ends and not model.num_nextn_predict_layers:
        return (each - 1, *[each] * (parts - 2), each - 1) if each else None
    if not stack.custom_partition or layers < parts - 1:
        return None
    tail = tail_layers(model)
    counts = _least_full(layers, parts, tail)
    largest = max(*counts[:-1], counts[-1] + tail)
    return counts if (layers + tail) / parts / largest >= FULLEST else None


@lru_cache(maxsize=64)
def tail_layers(model: ModelSpec) -> float:
    """Return about what the output head and multi-token prediction cost, in layers.

    Each module of multi-token prediction is a layer, a projection and the head once more. A head
    takes less time than its share of the parameters that a token meets, since it is one large
    product: it counts half-way between that and the one layer of Megatron-Core's
    --account-for-loss-in-pipeline-split.
    """
    met = sum(layer.active_parameters * n for layer, n in model.layer_groups().items())
    layer = met / model.num_hidden_layers
    modules = model.num_nextn_predict_layers
    head = (model.vocab_size * model.hidden_size / layer + 1) / 2
    return modules + (1 + modules) * head + modules * model.mtp_projection_parameters / layer


def _least_full(layers: int, parts: int, tail: float) -> tuple[int, ...]:
    """Return the split whose largest stage is least, the last one with `tail` layers more.

    >>> _least_full(61, 16, 4.3)[-3:]
    (4, 5, 0)
    """

    def largest(last: int) -> tuple[float, int]:
        return max(ceil((layers - last) / (parts - 1)), last + tail), last

    last = min(range(layers // parts + 1), key=largest)
    each, rest = divmod(layers - last, parts - 1)
    return (*[each] * (parts - 1 - rest), *[each + 1] * rest, last)


def chunk_counts(model: ModelSpec, stack: Stack, pp: int) -> tuple[int, ...]:
    """Return the vpp that divide the layers of a stage; ends that count as a layer are layers.

    Where only splits that are given are possible, those for which there is one.
    """
    layers = model.num_hidden_layers
    if given_layers(model, stack, pp, pp) is not None:
        each = range(1, layers // pp + 1)
        found = tuple(n for n in each if given_layers(model, stack, pp, pp * n) is not None)
        if len(found) > 1:
            return found
    ends = stack.partition in (PartitionRule.EMBEDDING_COUNTS, PartitionRule.BY_COST)
    whole = (layers + 2 * ends) // pp
    return tuple(n for n in range(1, min(whole, layers // pp) + 1) if whole % n == 0)
