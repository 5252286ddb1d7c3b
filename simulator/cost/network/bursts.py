"""What passes send over the network, and the compute beside it, as bursts.

A collective of c seconds that may hide a share s of itself behind compute of w seconds is two
bursts. The pass waits for (1 - s) c of it. The other s c run beside s w of compute, and both
together take as long as the longer one, max(s c, s w): of a network by itself a pass then takes
w + c - s min(w, c), what its blocks say, and where others slow the burst it is first the rest of
the compute beside it that hides this. Where compute and communication slow each other both of the
second burst take longer by the same factor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from simulator.cost.blocks import PieceCost
from simulator.cost.network.groups import Together
from simulator.cost.plan import Burst, CommPlan, LinkKind
from simulator.parallel.work import CommWork


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFlow:
    """One phase of a collective inside a pass: where its bytes go, and what it is to the pass."""

    plan: CommPlan
    place: int
    """Of the phase in the plan."""
    groups: Together
    bursts: tuple[Burst, ...]
    """All runs of the pass's collective together."""
    sent: float
    """Wire bytes of a rank in one run of the pass."""


Inside = Mapping[int, tuple[tuple[PassFlow, ...], int]]
"""What passes send, by the number of their work, and in how many of their layers they do."""
NO_PASSES: Inside = MappingProxyType({})


def bursts_of(
    plan: CommPlan, comm: CommWork, priced: PieceCost, groups: Together, window: float
) -> Iterator[PassFlow]:
    """Yield the phases of a collective that leave the domain, all `count` runs of it together.

    `window` is the seconds of compute that it may hide behind.
    """
    share = comm.hidden_fraction if window else 0.0
    longer = max(priced.seconds, window)
    together = priced.exposed + window - (1 - share) * (priced.seconds + window)
    factor = together / (share * longer) if share else 1.0
    sending = [
        (place, phase, comm.count * phase.wire_bytes / phase.rate)
        for place, phase in enumerate(plan.phases)
        if phase.link is LinkKind.SCALE_OUT and phase.wire_bytes
    ]
    whole = sum(seconds for _, _, seconds in sending)
    for place, phase, seconds in sending:
        size, part = comm.count * phase.wire_bytes, seconds / whole
        waited = replace(phase, fixed=0.0, wire_bytes=(1 - share) * size)
        hidden = replace(
            phase,
            fixed=factor * share * part * (priced.seconds - whole),
            wire_bytes=share * size,
            rate=phase.rate / factor,
        )
        bursts = [
            Burst(category=priced.category, phase=waited),
            Burst(category=priced.category, phase=hidden, beside=factor * share * part * window),
        ]
        yield PassFlow(
            plan=plan,
            place=place,
            groups=groups,
            bursts=tuple(burst for burst in bursts if burst.phase.wire_bytes),
            sent=size,
        )


def only_counted(inside: Inside) -> Inside:
    """Return what passes send as bytes on links that meet nothing."""
    return {
        number: (tuple(replace(flow, bursts=()) for flow in flows), layers)
        for number, (flows, layers) in inside.items()
    }


def only_exposed(flow: PassFlow) -> PassFlow:
    """Return a flow of which what compute hides meets nothing."""
    kept = []
    for burst in flow.bursts:
        phase, left = burst.phase, burst.seconds - burst.beside
        if left > 0:
            share = min(1.0, left / (phase.seconds - phase.fixed))
            phase = replace(phase, fixed=0.0, wire_bytes=share * phase.wire_bytes)
            kept.append(replace(burst, phase=phase, beside=0.0))
    return replace(flow, bursts=tuple(kept))


def repeated(flow: PassFlow, count: int) -> PassFlow:
    """Return `count` runs of a flow."""
    bursts = tuple(_times(burst, count) for burst in flow.bursts)
    return replace(flow, bursts=bursts, sent=flow.sent * count)


def _times(burst: Burst, count: int) -> Burst:
    phase = burst.phase
    phase = replace(phase, fixed=phase.fixed * count, wire_bytes=phase.wire_bytes * count)
    return replace(burst, phase=phase, beside=burst.beside * count)


def merged(bursts: Iterable[Burst]) -> tuple[Burst, ...]:
    """Return bursts with those of the same links and category as one that takes as long alone.

    Seconds add up only of bursts of one kind: those that nothing runs beside, those that end after
    what runs beside them, and those that end before.
    """
    kinds: dict[tuple[object, ...], list[Burst]] = defaultdict(list)
    for burst in bursts:
        hidden = burst.beside >= burst.phase.seconds
        kinds[burst.category, burst.phase.over, burst.beside > 0, hidden].append(burst)
    return tuple(alike[0] if len(alike) == 1 else _sum(alike) for alike in kinds.values())


def _sum(bursts: Sequence[Burst]) -> Burst:
    phases = [burst.phase for burst in bursts]
    size, fixed = sum(phase.wire_bytes for phase in phases), sum(phase.fixed for phase in phases)
    flowing = sum(phase.seconds for phase in phases) - fixed
    phase = replace(phases[0], fixed=fixed, wire_bytes=size, rate=size / flowing)
    return replace(bursts[0], phase=phase, beside=sum(burst.beside for burst in bursts))
