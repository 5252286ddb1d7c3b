"""How many tokens of a mixture of experts meet which rank: counts, without operators or bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb

from simulator.parallel.shard import Shard
from simulator.workload.layer import MoeSpec

_DIGITS = 6
"""Decimals to which a count is rounded before it is rounded up: what float arithmetic adds is
far below them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one layer and micro-batch, as the rank sees them that decides the time."""

    own: float
    """That this rank routes: a slice of the sequence with sequence parallelism."""
    copies: float
    """Copies, one a chosen expert, that the rank makes of its own tokens (all slots of all experts
    where they are padded)."""
    received: float
    """Copies that reach the rank, before its expert-tensor peers exchange theirs: as many as it
    sends, times the load imbalance."""
    per_expert: int
    """Rows of each local expert's products, rounded up."""
    local_experts: int
    model_share: float
    """Rows that each expert has on average, without padding or imbalance, over `per_expert`."""

    @property
    def computed(self) -> int:
        """Rows of all local experts."""
        return self.per_expert * self.local_experts


def count_tokens(moe: MoeSpec, shard: Shard) -> Tokens:
    """Return the tokens of one micro-batch.

    With n own tokens, top-k of E experts over ep x etp ranks, imbalance f (1 where ep is 1) and
    capacity c:

        copies   = n k                          c: E ceil(c n k / E)
        received = f n k                        c: the same as copies
        rows     = received etp / (E / ep)      an expert sees what its etp ranks received

    Source: Megatron-LM core/transformer/moe/token_dispatcher.py (MoEAlltoAllTokenDispatcher) and
    moe_utils.py (get_capacity: an own tokens' share an expert, rounded up).
    """
    routing, own = shard.job.moe, shard.residual_tokens
    chosen = own * moe.experts_per_token
    if routing.capacity_factor is None:
        copies, received = chosen, chosen * shard.imbalance
    else:
        slots = _rounded_up(routing.capacity_factor * chosen / moe.experts)
        copies = received = float(moe.experts * slots)
    local = moe.experts // shard.ep
    per_expert = _rounded_up(received * shard.expert_tp / local)
    return Tokens(
        own=own,
        copies=copies,
        received=received,
        per_expert=per_expert,
        local_experts=local,
        model_share=chosen * shard.expert_tp / local / per_expert,
    )


@lru_cache(maxsize=1024)
def expected_parts(moe: MoeSpec, parts: int) -> float:
    """Return in how many of `parts` equal runs of experts those of a token lie, on average.

    All choices that the router may make are equally likely: M of G groups, then k of the M E / G
    experts in them. A part misses a token with the chance that the k experts lie elsewhere, which
    is a sum over the candidates j that the chosen groups have in the part:

        parts - sum over parts and j of  P(j) C(M E / G - j, k) / C(M E / G, k)

    >>> mixtral = MoeSpec(
    ...     hidden_size=1,
    ...     experts=8,
    ...     experts_per_token=2,
    ...     intermediate_size=1,
    ...     gated=True,
    ...     activation="silu",
    ... )
    >>> round(expected_parts(mixtral, 2), 6)  # 2 - 2 C(4, 2) / C(8, 2)
    1.571429
    """
    groups, chosen = moe.groups, moe.groups_per_token
    size, width = moe.experts // parts, moe.experts // groups
    candidates, picks = chosen * width, moe.experts_per_token
    ways = comb(groups, chosen) * comb(candidates, picks)
    missed = 0
    for part in range(parts):
        overlaps = _overlaps(part * size, size, width, groups)
        for inside, count in _candidates(overlaps, chosen).items():
            missed += count * comb(candidates - inside, picks)
    return parts - missed / ways


def _overlaps(first: int, size: int, width: int, groups: int) -> list[int]:
    """Return how many of the experts [first, first + size) each group of `width` holds."""
    bounds = ((group * width, (group + 1) * width) for group in range(groups))
    return [max(0, min(stop, first + size) - max(start, first)) for start, stop in bounds]


def _candidates(overlaps: list[int], chosen: int) -> Counter[int]:
    """Return how many choices of `chosen` groups put each number of candidates into a part."""
    ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    for overlap in overlaps:
        for (taken, inside), count in list(ways.items()):
            if taken < chosen:
                ways[taken + 1, inside + overlap] += count
    totals: Counter[int] = Counter()
    for (taken, inside), count in ways.items():
        if taken == chosen:
            totals[inside] += count
    return totals


def _rounded_up(count: float) -> int:
    return max(1, ceil(round(count, _DIGITS)))
