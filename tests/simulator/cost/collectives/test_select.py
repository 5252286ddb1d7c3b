"""The choice of the algorithm, its errors, and the correction by measured points."""

from __future__ import annotations

import math

import pytest

from simulator.cost.collectives.select import CollectiveCosts, plan_collective
from simulator.errors import InputError
from simulator.hardware.collective_constants import CollectiveConstants, ResidualCurve
from simulator.parallel.groups import Collective, GroupShape
from tests.simulator.cost.collectives.machines import (
    CONSTANTS,
    machine,
    machine_without_nic,
)

NODE = GroupShape(size=4, per_domain=4)
TWO_NODES = GroupShape(size=16, per_domain=8)


def curve(ranks: int, *points: tuple[float, float]) -> ResidualCurve:
    payload, log_ratio = zip(*points, strict=True)
    return ResidualCurve(op="all_gather", ranks=ranks, payload=payload, log_ratio=log_ratio)


def correction(payload: float, group: GroupShape, *curves: ResidualCurve) -> float:
    """Return log of the time with the curves over the time without."""
    with_curves = machine(constants=CONSTANTS.model_copy(update={"residual": curves}))
    corrected = plan_collective(Collective.ALL_GATHER, payload, group, with_curves)
    plain = plan_collective(Collective.ALL_GATHER, payload, group, machine())
    return math.log(corrected.seconds / plain.seconds)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (1e2, 0.1),  # below the points: as at the first
        (1e3, 0.1),
        (1e4, 0.2),  # half-way in log payload
        (1e5, 0.3),
        (2e5, 0.2),  # beyond them it fades within three doublings
        (1e9, 0.0),
    ],
)
def test_correction_is_linear_in_log_payload(payload: float, expected: float) -> None:
    points = curve(4, (1e3, 0.1), (1e5, 0.3))
    assert correction(payload, NODE, points) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("ranks", "expected"), [(2, 0.1), (4, 0.2), (8, 0.3), (9, 0.0)])
def test_correction_is_linear_in_log_ranks_and_ends_at_the_largest_group(
    ranks: int, expected: float
) -> None:
    group = GroupShape(size=ranks, per_domain=ranks)
    curves = (curve(8, (1e3, 0.3)), curve(2, (1e3, 0.1)))
    assert correction(1e3, group, *curves) == pytest.approx(expected, abs=1e-12)


def test_groups_over_several_domains_are_not_corrected() -> None:
    assert correction(1e3, TWO_NODES, curve(16, (1e3, 0.3))) == 0


def test_corrected_plans_keep_their_bytes() -> None:
    constants = CONSTANTS.model_copy(update={"residual": (curve(4, (1e3, 0.3)),)})
    plan = plan_collective(Collective.ALL_GATHER, 1e3, NODE, machine(constants=constants))
    assert [phase.wire_bytes for phase in plan.phases] == [750.0]


def test_a_plan_is_computed_once() -> None:
    costs = CollectiveCosts(machine())
    first = costs.plan(Collective.ALL_REDUCE, 1e6, NODE)
    assert costs.plan(Collective.ALL_REDUCE, 1e6, NODE) is first


def test_profiles_that_differ_only_in_a_link_are_not_confused() -> None:
    slow, fast = machine(bandwidth=1e9), machine(bandwidth=1e12)
    times = [plan_collective(Collective.ALL_GATHER, 1e9, NODE, m).seconds for m in (slow, fast)]
    assert times[0] > 100 * times[1]


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ("rign", "did you mean 'ring'?"),
        ("tree", "does not serve all_reduce over 4 ranks, 4 in each of 1 scale-up domains"),
        ("pairwise", "one of: ring, parameter_server"),
    ],
)
def test_an_algorithm_that_cannot_be_used_is_refused(algorithm: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        plan_collective(Collective.ALL_REDUCE, 1e6, NODE, machine(), algorithm=algorithm)
    assert message in str(error.value)


def test_a_machine_without_nic_cannot_span_domains() -> None:
    with pytest.raises(InputError, match="no NIC"):
        plan_collective(Collective.ALL_REDUCE, 1e6, TWO_NODES, machine_without_nic())


@pytest.mark.parametrize(("payload", "log_ratio"), [((1.0, 1.0), (0.0, 0.0)), ((1.0,), (0.0, 0.0))])
def test_a_residual_curve_must_rise_and_be_whole(
    payload: tuple[float, ...], log_ratio: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="payload"):
        ResidualCurve(op="alltoall", ranks=2, payload=payload, log_ratio=log_ratio)


def test_constants_survive_a_round_trip_through_json() -> None:
    text = CONSTANTS.model_dump_json()
    assert CollectiveConstants.model_validate_json(text) == CONSTANTS
