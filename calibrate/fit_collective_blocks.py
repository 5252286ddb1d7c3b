"""The two blocks of collectives: inside one scale-up domain, and over the network between nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from calibrate.collective_points import Point, adds_integers
from calibrate.fit_apart import PAIR
from calibrate.fit_block import BlockModel, Fitting
from calibrate.fit_domain import fit_domain
from calibrate.fit_network import fit_network
from calibrate.fit_priors import prior_spread
from calibrate.log_fit import Array
from calibrate.point_groups import UnpredictedError, group_of, has_its_share
from calibrate.points import CollectivePoint, GroupKind, Timing
from calibrate.predict import OTHER_SHARE
from calibrate.predict_steps import launches_itself
from calibrate.records import Record
from simulator.cost.collectives.request import Request, links_of
from simulator.cost.collectives.residual import log_residual
from simulator.cost.collectives.select import fastest_plan
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective

DOMAIN, NETWORK = "collectives", "network"
_FITTED = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
    Collective.SEND_RECV,
)
"""Broadcast and reduce have no constants of their own."""
_SEVERAL = 2
_ONE_GROUP = (GroupKind.FIRST, GroupKind.PAIR)
"""Groups that have the scale-up links for themselves."""


def domain_model(machine: Profile, records: Sequence[Record] = ()) -> BlockModel:
    """Return the block of collectives in one scale-up domain of a machine."""
    timing = timing_that_counts(machine, records)

    def takes(record: Record) -> bool:
        point = _collective(record, timing)
        if point is None or point.group not in _ONE_GROUP:
            return False
        return _domains(point, machine) == 1

    return BlockModel(
        name=DOMAIN, takes=takes, fit=_fit_domain, predict=_predict, together=_payload
    )


def network_model(machine: Profile, records: Sequence[Record] = ()) -> BlockModel:
    """Return the block of collectives over several scale-up domains of a machine.

    Among `records` are those that tell how a collective starts inside one domain.
    """
    inside = domain_model(machine, records).takes
    timing = timing_that_counts(machine, records)
    told = {
        point.collective
        for record in records
        if inside(record) and (point := _collective(record, timing))
    }

    def takes(record: Record) -> bool:
        point = _collective(record, timing)
        if point is None or _domains(point, machine) < _SEVERAL:
            return False
        return has_its_share(point, machine)

    def fit(records: Sequence[Record], profile: Profile) -> Fitting:
        return fit_network(_points(records, profile), profile, told)

    return BlockModel(name=NETWORK, takes=takes, fit=fit, predict=_predict, together=_payload)


def why_not(point: CollectivePoint, machine: Profile) -> str:
    """Return why no block takes a collective that was measured without a fault."""
    try:
        group_of(point, machine)
    except UnpredictedError as error:
        return str(error)
    if point.timing is Timing.APART:
        return "" if point.ranks == PAIR else "ranks start apart: only two of them are fitted"
    if point.timing is Timing.ISOLATED and not launches_itself(machine):
        return "timed alone: it holds the launch, and constants are of device time"
    if point.timing is Timing.DEVICE and launches_itself(machine) and point.collective in _FITTED:
        return "timed back to back: calls of a CPU run into each other, those timed alone count"
    if adds_integers(point.collective, point.dtype):
        return "reductions of integers are not part of training"
    if point.collective not in _FITTED:
        return f"{point.collective.value} takes the constants of another collective"
    return OTHER_SHARE.format(kind=point.group.value)


def timing_that_counts(machine: Profile, records: Sequence[Record]) -> Timing:
    """Return how the collectives are timed that constants are of: back to back.

    Calls of a CPU, which launches itself, run into each other so; those that were timed alone
    count, where there are any.
    """
    timings = {r.point.timing for r in records if isinstance(r.point, CollectivePoint)}
    alone = launches_itself(machine) and Timing.ISOLATED in timings
    return Timing.ISOLATED if alone else Timing.DEVICE


def _collective(record: Record, timing: Timing) -> CollectivePoint | None:
    """Return the point of a record that a block may take."""
    point = record.point
    if not isinstance(point, CollectivePoint) or point.timing is not timing:
        return None
    sums = adds_integers(point.collective, point.dtype)
    return point if point.collective in _FITTED and not sums else None


def _domains(point: CollectivePoint, machine: Profile) -> int:
    """Return the scale-up domains that a group spans; 0 where the machine cannot have it."""
    try:
        return group_of(point, machine).domains
    except UnpredictedError:
        return 0


def _fit_domain(records: Sequence[Record], profile: Profile) -> Fitting:
    links = links_of(profile)
    spread = prior_spread(profile.constants, DOMAIN)
    fitted, uncertainty = fit_domain(_points(records, profile), links, spread)
    constants = profile.constants.model_copy(update={"collectives": fitted.constants})
    return Fitting(
        profile=profile.model_copy(update={"constants": constants}), uncertainty=uncertainty
    )


def _predict(records: Sequence[Record], profile: Profile) -> Array:
    links = links_of(profile)
    seconds = []
    for point in _points(records, profile):
        request = Request(collective=point.collective, payload=point.payload, group=point.group)
        modelled = fastest_plan(request, links).seconds
        seconds.append(modelled * float(np.exp(log_residual(request, links))))
    return np.array(seconds)


def _payload(record: Record) -> Hashable:
    return record.point.bytes if isinstance(record.point, CollectivePoint) else None


def _points(records: Sequence[Record], profile: Profile) -> list[Point]:
    points = []
    for record in records:
        assert isinstance(record.point, CollectivePoint)
        assert record.seconds is not None
        group = group_of(record.point, profile)
        points.append(
            Point(
                collective=record.point.collective,
                ranks=group.size,
                per_domain=group.per_domain,
                payload=record.point.bytes,
                seconds=record.seconds,
            )
        )
    return points
