"""Seconds of a block of operators and collectives on one rank, by category."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.interference import exposed_seconds, interferes, operator_slowdown
from simulator.cost.network.network import Network
from simulator.cost.operators import OperatorCost, OperatorCosts
from simulator.cost.plan import CommPlan
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.parallel.layout import Axis
from simulator.parallel.work import Block, CommWork
from simulator.results import Category
from simulator.workload.operator import Gemm
from simulator.workload.stack import Stack

_COMM_CATEGORY = {
    Axis.TENSOR: Category.TENSOR_COMM,
    Axis.CONTEXT: Category.CONTEXT_COMM,
    Axis.EXPERT: Category.EXPERT_COMM,
    Axis.EXPERT_TENSOR: Category.EXPERT_COMM,
    Axis.HOST: Category.HOST_COMM,
}


class PieceCost(NamedTuple):
    """One operator or collective of a block: when it starts in the block and how long it takes."""

    name: str
    category: Category
    offset: float
    """Seconds from the start of the block."""
    seconds: float
    """Of the piece itself, hidden or not."""
    exposed: float
    """Seconds by which it makes the block longer."""


@dataclass(frozen=True, kw_only=True)
class BlockCost:
    """How long a block takes; `by_category` adds up to `seconds`."""

    seconds: float
    by_category: Mapping[Category, float]
    lay_out: Callable[[], Iterable[PieceCost]] = field(repr=False)
    """Says when its pieces run; a search never asks."""

    @cached_property
    def pieces(self) -> tuple[PieceCost, ...]:
        """Its pieces, in the order in which they start."""
        return tuple(self.lay_out())


class _Timed(NamedTuple):
    """How long a piece takes, and by how much it makes its block longer, in seconds."""

    category: Category
    seconds: float
    exposed: float


class KernelCosts(OperatorCosts):
    """Prices operators and blocks on one machine with one stack."""

    def __init__(
        self,
        profile: Profile,
        stack: Stack,
        dtype: Dtype,
        collectives: CollectiveCosts,
        *,
        network: Network | None = None,
    ) -> None:
        super().__init__(profile, stack, dtype)
        self.collectives, self.network = collectives, network

    def comm_plan(self, comm: CommWork) -> CommPlan:
        """Return the plan of one run of a collective, alone on its links."""
        plan = self.collectives.plan(
            comm.collective,
            comm.payload,
            comm.group,
            algorithm=comm.algorithm,
            network_share=comm.network_share,
        )
        return plan if self.network is None else self.network.in_passes(plan)

    def block(self, block: Block) -> BlockCost:
        """Return the cost of a block.

        Its pieces run in turn, less what collectives hide behind; it takes at least the CPU time to
        launch them all.
        """
        kernels = self.stack.kernels
        launch, timed = kernels.cpu_experts * block.mixtures, self._timed(block)
        for piece in block.pieces:
            if isinstance(piece, CommWork):
                launch += kernels.cpu_collective * piece.count
            else:
                launch += kernels.cpu_launch * self.operator(piece).launches
        totals: dict[Category, float] = {}
        clock = 0.0
        for category, _, exposed in timed:
            totals[category] = totals.get(category, 0.0) + exposed
            clock += exposed
        totals[Category.LAUNCH] = max(0.0, launch - clock)
        return BlockCost(
            seconds=clock + totals[Category.LAUNCH],
            by_category=totals,
            lay_out=partial(_in_turn, block, timed),
        )

    def _timed(self, block: Block) -> list[_Timed]:
        """Return the times of a block's pieces."""
        operators = [self.operator(p) for p in block.pieces if not isinstance(p, CommWork)]
        settled = self._settled(operators)
        slowdowns = self._slowdowns(operators)
        timed, known = [], iter(operators)
        for piece in block.pieces:
            if isinstance(piece, CommWork):
                seconds = self.comm_plan(piece).seconds * piece.count
                exposed = self._exposed(piece, seconds, settled, slowdowns)
                timed.append(_Timed(_COMM_CATEGORY[piece.axis], seconds, exposed))
            else:
                seconds = settled[piece.name]
                timed.append(_Timed(next(known).category, seconds, seconds))
        return timed

    def _slowdowns(self, operators: Sequence[OperatorCost]) -> dict[str, float]:
        """Return k of each operator that a collective hides behind, by name."""
        overlap = self.stack.overlap
        if not interferes(overlap):
            return {}
        return {o.operator.name: operator_slowdown(o.operator, overlap) for o in operators}

    def _exposed(
        self,
        comm: CommWork,
        seconds: float,
        operators: Mapping[str, float],
        slowdowns: Mapping[str, float],
    ) -> float:
        """Return the seconds by which a collective of `seconds` makes its block longer."""
        if not comm.hidden_by:
            return seconds
        window = sum([operators.get(name, 0.0) for name in comm.hidden_by])
        slowed = window
        if slowdowns:
            slowed = sum(
                operators.get(name, 0.0) * slowdowns.get(name, 1.0) for name in comm.hidden_by
            )
        return exposed_seconds(
            seconds,
            window,
            comm.hidden_fraction,
            slowed / window if window else 1.0,
            self.stack.overlap.comm_slowdown,
        )

    def _settled(self, operators: Sequence[OperatorCost]) -> dict[str, float]:
        """Return the seconds by name, with clocks settled to what the block does.

        `operator_seconds` is for matrix units that are always busy. Where they are busy for a
        share x of the time, clocks fall by x of the `throttle` of a GEMM's own constants.
        """
        matrix = sum([c.seconds for c in operators if c.category is not Category.MEMORY_BOUND])
        whole = sum([cost.seconds for cost in operators])
        share = matrix / whole if whole else 0.0
        settled = {
            kind: (1 + constants.throttle * share) / (1 + constants.throttle)
            for kind, constants in self.gemm_constants.items()
        }
        narrow, wide = settled[self.dtype], settled[self.wide]
        return {
            piece.name: seconds * (narrow if piece.narrow else wide)
            if isinstance(piece, Gemm)
            else seconds
            for piece, seconds, _, _ in operators
        }


def _in_turn(block: Block, timed: Sequence[_Timed]) -> Iterator[PieceCost]:
    """Yield a block's pieces in turn; one that hides ends with what it hides behind."""
    clock = 0.0
    for piece, (category, seconds, exposed) in zip(block.pieces, timed, strict=True):
        offset = clock + exposed - seconds if exposed < seconds else clock
        yield PieceCost(piece.name, category, max(0.0, offset), seconds, exposed)
        clock += exposed
