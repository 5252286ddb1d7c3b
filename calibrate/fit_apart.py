"""How much longer two ranks that start apart take on the wire than the constants say: `apart`.

The forecast of the fitted constants is of ranks that start together. A barrier does not bring that
about for sure (one rank leaves it a moment before the other), so that no measured time stands for
it: what is measured apart, less the latency, is divided by the forecast's time on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from calibrate.fit_kernels import as_written
from calibrate.point_groups import UnpredictedError, group_of
from calibrate.points import CollectivePoint, GroupKind, Point, Timing
from calibrate.records import Record
from simulator.cost.collectives.select import plan_collective
from simulator.hardware.profile import Profile

PAIR = 2
"""Ranks of a group that the factor is of."""
LARGE = 16.0
"""Largest size over the smallest that counts."""
_MOSTLY = 0.5
"""Share of a call that must pass on the wire for it to tell a factor of the wire."""


def fit_apart(records: Iterable[Record], profile: Profile) -> dict[str, float]:
    """Return by collective the time on the wire of two ranks apart over that of two together.

    The median over large sizes; only what is above 1 by more than the points scatter. Groups that
    span the most nodes decide where several were measured.
    """
    found = {}
    for collective, ratios in _ratios(records, profile).items():
        factor = median(ratio.value for ratio in ratios)
        if factor > 1 + median(ratio.spread for ratio in ratios):
            found[collective] = as_written(factor)
    return found


def with_apart(records: Iterable[Record], profile: Profile) -> Profile:
    """Return the profile with the factors of what was measured apart, and the others' kept."""
    kept = tuple(records)
    measured = set(_ratios(kept, profile))
    constants = profile.constants
    base = {name: f for name, f in constants.collectives.apart.items() if name not in measured}
    own = fit_apart(kept, profile)
    changed = constants.collectives.model_copy(update={"apart": {**base, **own}})
    return profile.model_copy(
        update={"constants": constants.model_copy(update={"collectives": changed})}
    )


def is_apart(point: Point) -> bool:
    """Return whether a point is of two ranks that start apart."""
    if not isinstance(point, CollectivePoint) or point.timing is not Timing.APART:
        return False
    return point.ranks == PAIR and point.group in (GroupKind.FIRST, GroupKind.PAIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratio:
    """Apart over together at one size."""

    point: CollectivePoint
    value: float
    spread: float


def _ratios(records: Iterable[Record], profile: Profile) -> dict[str, list[_Ratio]]:
    """Return the ratios at large sizes of each collective that two ranks ran apart."""
    found: dict[str, list[_Ratio]] = {}
    for record in records:
        point = record.point
        if not is_apart(point) or record.seconds is None:
            continue
        assert isinstance(point, CollectivePoint)
        ratio = _ratio(point, record.seconds, record.spread or 0.0, profile)
        if ratio is not None:
            found.setdefault(point.collective.value, []).append(ratio)
    return {collective: _decisive(ratios) for collective, ratios in found.items()}


def _ratio(
    point: CollectivePoint, seconds: float, spread: float, profile: Profile
) -> _Ratio | None:
    """Return what one measurement says; None where the wire is not most of it."""
    try:
        group = group_of(point, profile)
    except UnpredictedError:
        return None
    plan = plan_collective(point.collective, point.bytes, group, profile)
    fixed = sum(phase.fixed for phase in plan.phases)
    wire = plan.seconds - fixed
    if wire < _MOSTLY * plan.seconds or seconds <= fixed:
        return None
    return _Ratio(point=point, value=(seconds - fixed) / wire, spread=spread)


def _decisive(ratios: list[_Ratio]) -> list[_Ratio]:
    """Return those of the groups that span the most nodes, at their large sizes."""
    nodes = max(ratio.point.nodes for ratio in ratios)
    widest = [ratio for ratio in ratios if ratio.point.nodes == nodes]
    largest = max(ratio.point.bytes for ratio in widest)
    return [ratio for ratio in widest if LARGE * ratio.point.bytes >= largest]
