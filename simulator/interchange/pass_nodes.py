"""A pass as nodes: compute between its collectives, and collectives beside compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from simulator.cost.blocks import BlockCost
from simulator.cost.step_costs import StepCosts
from simulator.parallel.layout import Axis
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import WHOLE_CHUNK, Segment
from simulator.parallel.split_backward import split_backward
from simulator.parallel.work import Block, CommWork
from simulator.results import Category
from simulator.schedule.tasks import Work, WorkKind

_NO_TIME = 1e-12
"""Seconds below which two moments of a pass are one: far below the step of any clock."""


class PassNode(NamedTuple):
    """Compute, or one run of a collective where `comm` is given; `after` counts from the pass."""

    name: str
    seconds: float
    flops: float
    comm: CommWork | None
    after: tuple[int, ...]


class PassNodes(NamedTuple):
    """The nodes of a pass; nodes after nothing wait for what the pass waits for."""

    nodes: tuple[PassNode, ...]
    last: tuple[int, ...]
    """What has to end before the pass has."""


class _Mark(NamedTuple):
    """A place in the compute of a pass at which a collective starts or is waited for."""

    position: float
    order: int
    comm: int
    starts: bool


@dataclass(slots=True)
class _Strip:
    """The compute of a pass laid end to end, with what lies beside it."""

    seconds: list[float] = field(default_factory=lambda: [0.0])
    flops: list[float] = field(default_factory=lambda: [0.0])
    comms: list[tuple[CommWork, float]] = field(default_factory=list)
    """Each collective with the seconds of one run."""
    marks: list[_Mark] = field(default_factory=list)

    def compute(self, seconds: float, flops: float = 0.0) -> None:
        self.seconds.append(self.seconds[-1] + seconds)
        self.flops.append(self.flops[-1] + flops)

    def beside(self, comm: CommWork, seconds: float, start: float, wait: float) -> None:
        number, order = len(self.comms), len(self.marks)
        self.comms.append((comm, seconds / comm.count))
        self.marks.append(_Mark(start, order, number, starts=True))
        self.marks.append(_Mark(wait, order + 1, number, starts=False))


def pass_nodes(costs: StepCosts, program: StepProgram, work: Work) -> PassNodes:
    """Return what a pass does, in order: its seconds add up to the cost of `work`.

    Compute that no collective interrupts is one node. A collective that compute hides for h
    seconds starts h seconds of compute before it is waited for: before its place in the block, or
    behind it where what hides it comes later.
    """
    strip = _Strip()
    for block, cost in _blocks(costs, program, work):
        _lay(strip, block, cost)
    return _cut(strip, work.kind.name.lower())


def _blocks(
    costs: StepCosts, program: StepProgram, work: Work
) -> Iterator[tuple[Block, BlockCost]]:
    """Yield the blocks of a pass in the order in which they run."""
    parts = costs.parts(program, _segment(program, work))
    if work.kind is WorkKind.FORWARD:
        for priced, count in parts:
            yield from [(priced.passes.forward, priced.forward)] * count
        return
    for priced, count in reversed(parts):
        passes = priced.passes
        again = (passes.recompute, priced.recompute)
        if work.kind is WorkKind.BACKWARD:
            yield from [again, (passes.backward, priced.backward)] * count
            continue
        halves = tuple(zip(split_backward(passes.backward), costs.split_pass(priced), strict=True))
        if work.kind is WorkKind.BACKWARD_INPUT:
            yield from [again, halves[0]] * count
        else:
            yield from [halves[1]] * count


def _segment(program: StepProgram, work: Work) -> Segment:
    chunk = program.chunks[work.chunk]
    return chunk.whole if work.segment == WHOLE_CHUNK else chunk.segments[work.segment]


def _lay(strip: _Strip, block: Block, cost: BlockCost) -> None:
    """Lay a block behind what is there."""
    begin = strip.seconds[-1]
    for place, (piece, priced) in enumerate(zip(block.pieces, cost.pieces, strict=True)):
        if not isinstance(piece, CommWork):
            strip.compute(priced.seconds, piece.flops)
            continue
        if piece.group.size == 1 and piece.axis is not Axis.HOST:
            continue
        now = strip.seconds[-1]
        hidden = max(0.0, priced.seconds - priced.exposed)
        later = {other.name for other in block.pieces[place:]}.intersection(piece.hidden_by)
        start = now if later else max(begin, now - hidden)
        strip.beside(piece, priced.seconds, start, start + hidden)
        # Running beside compute may take longer than one after the other (interference).
        strip.compute(max(0.0, priced.exposed - priced.seconds))
    strip.compute(cost.by_category.get(Category.LAUNCH, 0.0))


def _cut(strip: _Strip, name: str) -> PassNodes:
    """Cut the compute at the marks, and let nodes wait for each other as those say."""
    nodes: list[PassNode] = []
    ends: dict[int, tuple[int, ...]] = {}
    now: tuple[int, ...] = ()
    at = 0.0

    def compute_to(position: float) -> None:
        nonlocal now, at
        if position - at > _NO_TIME:
            flops = np.interp([at, position], strip.seconds, strip.flops)
            seconds, done = position - at, float(flops[1] - flops[0])
            nodes.append(PassNode(name, seconds, done, None, now))
            now, at = (len(nodes) - 1,), position

    for mark in sorted(strip.marks):
        compute_to(min(mark.position, strip.seconds[-1]))
        if mark.starts:
            ends[mark.comm] = _runs(nodes, *strip.comms[mark.comm], now)
        else:
            now = _both(nodes, now, ends[mark.comm])
    compute_to(strip.seconds[-1])
    return PassNodes(tuple(nodes), now)


def _runs(
    nodes: list[PassNode], comm: CommWork, seconds: float, after: tuple[int, ...]
) -> tuple[int, ...]:
    """Append all runs of a collective, one after another; return the last."""
    for _ in range(comm.count):
        nodes.append(PassNode(comm.name, seconds, 0.0, comm, after))
        after = (len(nodes) - 1,)
    return after


def _both(nodes: list[PassNode], some: Iterable[int], others: Iterable[int]) -> tuple[int, ...]:
    """Return both, without those that another of them has waited for directly."""
    found = sorted({*some, *others})
    waited_for = {before for number in found for before in nodes[number].after}
    return tuple(number for number in found if number not in waited_for)
