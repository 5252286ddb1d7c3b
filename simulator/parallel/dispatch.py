"""Tokens on their way to their experts and back: permutation, all-to-all, expert-tensor exchange.

Forward, `dispatch` takes tokens to the experts and `combine` takes results back; backward their
gradients go the same ways the other way round. Widths are of the hidden size h; see `Tokens`.

Source: Megatron-LM core/transformer/moe/token_dispatcher.py (the three dispatchers), moe_utils.py
(permute, unpermute, sort_chunks_by_idxs); DeepSeek-AI 2024, DeepSeek-V3, sections 3.2.2 and 3.3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis
from simulator.parallel.routing import Tokens, count_tokens, expected_parts
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork, Piece
from simulator.workload.job import Dispatcher
from simulator.workload.layer import MoeSpec
from simulator.workload.operator import MemoryBound

_COUNT_BYTES = 8.0
"""Of the number of tokens an expert gets (int64)."""
_INDEX_BYTES = 4.0
"""Of a row of the permutation's map (int32)."""
_UNFUSED_LAUNCHES = 4
"""Permutation without its own kernel: two of masks and indices, one of rows, one of
probabilities (or of zeros)."""
_SCATTER_ADD_PASSES = 1
"""Adding rows where they belong reads the sum again; a fused kernel keeps it in registers."""
_ATTENTION = ("qkv", "q_down", "kv_down", "q_up", "kv_up", "proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One crossing of the tokens of a layer: `dispatch` or `combine`, of values or gradients."""

    name: str
    moe: MoeSpec
    shard: Shard
    backward: bool = False

    @property
    def to_experts(self) -> bool:
        """Whether rows go from where tokens live to where experts live."""
        return (self.name == "dispatch") is not self.backward

    @property
    def tokens(self) -> Tokens:
        """How many rows travel."""
        return count_tokens(self.moe, self.shard)

    @property
    def wire_element(self) -> float:
        """Bytes of a number on the wire: the dispatch format holds on the way to the experts."""
        dtype = self.shard.job.moe.dispatch_dtype
        return dtype.bytes if dtype is not None and self.to_experts else self.shard.element

    def called(self, piece: str) -> str:
        """Return the full name of a piece of this trip."""
        return f"moe.{self.name}.{piece}" + (".backward" if self.backward else "")

    def copy(self, piece: str, rows: float, launches: int = 1, saved: float = 0.0) -> MemoryBound:
        """Return a kernel that reads or writes `rows` rows in all."""
        moved = self.shard.element * self.moe.hidden_size * rows
        return MemoryBound(
            name=self.called(piece),
            bytes=moved,
            kind=MemoryClass.COPY,
            launches=launches,
            saved=saved,
        )

    def comm(
        self,
        piece: str,
        collective: Collective,
        rows: float,
        group: GroupShape,
        *,
        axis: Axis = Axis.EXPERT,
        network_share: float = 1.0,
    ) -> list[Piece]:
        """Return a collective over `rows` rows; none where the group is one rank."""
        if group.size == 1:
            return []
        steps = self.shard.job.moe.two_step and group.domains > 1
        two_step = steps and collective is Collective.ALL_TO_ALL
        names, fraction = ((), 0.0) if axis is Axis.EXPERT_TENSOR else self._windows()
        return [
            CommWork(
                name=self.called(piece),
                collective=collective,
                payload=self.wire_element * self.moe.hidden_size * rows,
                axis=axis,
                group=group,
                hidden_by=names,
                hidden_fraction=fraction,
                algorithm="two_step" if two_step else None,
                network_share=network_share,
            )
        ]

    def _windows(self) -> tuple[tuple[str, ...], float]:
        """Return the compute that this trip may hide behind, and how much of it.

        Each window serves one trip: the attention half the dispatch, the experts' products the
        combine. What hides tensor- or context-parallel collectives is left to them. The shared
        expert's two halves are taken where it runs beside the trips (Megatron-LM
        `--moe-shared-expert-overlap`), which it does not do together with the former.
        """
        overlap, dispatches = self.shard.overlap, self.name == "dispatch"
        if self.shard.hides_trips:
            linears = [f"attention.{name}" for name in _ATTENTION] if self.shard.tp == 1 else []
            if not dispatches:
                linears = ["moe.experts.up", "moe.experts.down"]
            core = "attention.core" + (".backward" if self.backward else "")
            cores = [core] if dispatches and self.shard.cp == 1 else []
            return (*self._products(linears), *cores), overlap.expert_fraction
        if overlap.shared_expert and self.moe.shared_intermediate_size:
            half = "moe.shared.up" if dispatches else "moe.shared.down"
            return self._products([half]), 1.0
        return (), 0.0

    def _products(self, linears: list[str]) -> tuple[str, ...]:
        if not self.backward:
            return tuple(linears)
        return tuple(f"{name}.{grad}" for name in linears for grad in ("dgrad", "wgrad"))


def travel(trip: Trip) -> list[Piece]:
    """Return what happens to the rows of one trip, in order."""
    out = trip.to_experts
    match trip.shard.job.moe.dispatcher:
        case Dispatcher.ALL_TO_ALL:
            return _all_to_all_out(trip) if out else _all_to_all_home(trip)
        case Dispatcher.FLEX:
            return _flex_out(trip) if out else _flex_home(trip)
        case Dispatcher.ALL_GATHER:
            return _gather_out(trip) if out else _gather_home(trip)
        case dispatcher:
            assert_never(dispatcher)


def _all_to_all_out(trip: Trip) -> list[Piece]:
    """Permute n rows to n k, send them, gather those of the etp peers, sort them by expert."""
    tokens, shard = trip.tokens, trip.shard
    arrived = tokens.received * shard.expert_tp
    return [
        *_cast(trip),
        *_counts(trip),
        _permute(trip, tokens.own, tokens.copies),
        *trip.comm("all_to_all", Collective.ALL_TO_ALL, tokens.received, shard.expert_group),
        *trip.comm(
            "gather",
            Collective.ALL_GATHER,
            arrived,
            shard.expert_tensor_group,
            axis=Axis.EXPERT_TENSOR,
        ),
        *_sort(trip, arrived),
    ]


def _all_to_all_home(trip: Trip) -> list[Piece]:
    tokens, shard = trip.tokens, trip.shard
    arrived = tokens.received * shard.expert_tp
    return [
        *_sort(trip, arrived),
        *trip.comm(
            "scatter",
            Collective.REDUCE_SCATTER,
            arrived,
            shard.expert_tensor_group,
            axis=Axis.EXPERT_TENSOR,
        ),
        *trip.comm("all_to_all", Collective.ALL_TO_ALL, tokens.received, shard.expert_group),
        _unpermute(trip, tokens.copies, tokens.own),
    ]


def _flex_out(trip: Trip) -> list[Piece]:
    """Send one copy to each rank that holds a chosen expert, then permute what arrived."""
    arrived = _flex_rows(trip)
    return [*_cast(trip), *_flex_comm(trip), _permute(trip, arrived, trip.tokens.computed)]


def _flex_home(trip: Trip) -> list[Piece]:
    arrived = _flex_rows(trip)
    return [_unpermute(trip, trip.tokens.computed, arrived), *_flex_comm(trip)]


def _flex_rows(trip: Trip) -> float:
    """Return the rows that the deciding rank gets: its tokens x the ranks that each visits."""
    shard = trip.shard
    ranks = expected_parts(trip.moe, shard.ep) * shard.expert_tp
    return trip.tokens.own * ranks * shard.imbalance


def _flex_comm(trip: Trip) -> list[Piece]:
    """Return the exchange; `network_share` is the domains that a token visits over the ranks.

    Each of the etp ranks of an expert gets its copy, one domain where they lie in one.
    """
    shard, moe = trip.shard, trip.moe
    ranks = expected_parts(moe, shard.ep) * shard.expert_tp
    domains = expected_parts(moe, shard.expert_group.domains) * shard.expert_tensor_group.domains
    return trip.comm(
        "all_to_all",
        Collective.ALL_TO_ALL,
        _flex_rows(trip),
        shard.expert_model_group,
        network_share=domains / ranks,
    )


def _gather_out(trip: Trip) -> list[Piece]:
    """Gather the tokens of all ep x etp ranks, then pick those of the local experts."""
    group, rows = trip.shard.expert_model_group, float(trip.tokens.computed)
    everything = trip.tokens.own * group.size
    gather = trip.comm("gather", Collective.ALL_GATHER, everything, group)
    return [*_cast(trip), *gather, _permute(trip, rows, rows)]


def _gather_home(trip: Trip) -> list[Piece]:
    """Add results into a buffer of all ranks' tokens, then reduce it to the own ones."""
    group = trip.shard.expert_model_group
    everything = trip.tokens.own * group.size
    scatter = trip.comm("scatter", Collective.REDUCE_SCATTER, everything, group)
    return [_unpermute(trip, trip.tokens.computed, everything), *scatter]


def _cast(trip: Trip) -> list[Piece]:
    """Return the cast to a narrower dispatch format: read as activations, write as sent."""
    if trip.wire_element >= trip.shard.element:
        return []
    share = 1 + trip.wire_element / trip.shard.element
    return [trip.copy("cast", trip.tokens.own * share)]


def _counts(trip: Trip) -> list[Piece]:
    """Ranks tell each other how many tokens each expert gets; padded experts need not be told."""
    group = trip.shard.expert_model_group
    padded = trip.shard.job.moe.capacity_factor is not None
    if trip.backward or trip.name != "dispatch" or padded or group.size == 1:
        return []
    return [
        CommWork(
            name=trip.called("counts"),
            collective=Collective.ALL_GATHER,
            payload=_COUNT_BYTES * trip.moe.experts * group.size,
            axis=Axis.EXPERT,
            group=group,
        )
    ]


def _permute(trip: Trip, read: float, written: float) -> MemoryBound:
    """Return the copy of rows to where their experts want them; forward its map is kept."""
    launches = 1 if trip.shard.kernels.fused_permute else _UNFUSED_LAUNCHES
    kept = _INDEX_BYTES * written if not trip.backward else 0.0
    return trip.copy("permute", read + written, launches, kept)


def _unpermute(trip: Trip, read: float, written: float) -> MemoryBound:
    """Return the sum of the k rows of each token; weights were applied in the activation."""
    if trip.shard.kernels.fused_permute:
        return trip.copy("unpermute", read + written)
    # Zeros are written first, then each row is read and added to a sum that is read and written.
    rows = read + written + (1 + _SCATTER_ADD_PASSES) * read
    return trip.copy("unpermute", rows, _UNFUSED_LAUNCHES)


def _sort(trip: Trip, rows: float) -> list[Piece]:
    """Rows come by sender and are wanted by expert: a copy, where both are several."""
    if trip.shard.expert_model_group.size == 1 or trip.tokens.local_experts == 1:
        return []
    return [trip.copy("sort", 2 * rows)]
