"""What two ranks lose that do not start together, from times apart and a profile's forecasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.fit import fit_folder
from calibrate.fit_apart import fit_apart, with_apart
from calibrate.point_groups import group_of
from calibrate.points import CollectivePoint, Timing
from calibrate.records import Record
from simulator.cost.collectives.select import plan_collective
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.groups import Collective
from simulator.units import KIB, MIB
from tests.calibrate.fit_folders import write_folder

MACHINE = load_profile("dgx-h100")


def apart(
    kind: Collective, factor: float, size: float = 256 * MIB, *, ranks: int = 2, nodes: int = 1
) -> Record:
    """Return a call that takes `factor` times its forecast on the wire, with its latency once."""
    point = CollectivePoint(
        collective=kind, ranks=ranks, nodes=nodes, bytes=size, timing=Timing.APART
    )
    plan = plan_collective(kind, size, group_of(point, MACHINE), MACHINE)
    fixed = sum(phase.fixed for phase in plan.phases)
    seconds = fixed + factor * (plan.seconds - fixed)
    return Record(point=point, seconds=seconds, spread=0.04)


def test_the_factor_is_the_median_over_large_sizes() -> None:
    sizes = ((64, 1.4), (128, 1.5), (256, 1.6), (8, 1.0))
    records = [apart(Collective.ALL_GATHER, factor, size * MIB) for size, factor in sizes]
    assert fit_apart(records, MACHINE) == {"all_gather": pytest.approx(1.5)}


def test_what_is_within_the_scatter_is_left_out() -> None:
    records = [apart(Collective.ALL_TO_ALL, 1.03), apart(Collective.ALL_REDUCE, 1.05)]
    assert fit_apart(records, MACHINE) == {"all_reduce": pytest.approx(1.05)}


def test_a_call_that_is_mostly_latency_says_nothing() -> None:
    assert fit_apart([apart(Collective.ALL_GATHER, 9.0, 4 * KIB)], MACHINE) == {}


def test_ranks_on_two_nodes_decide_where_both_were_measured() -> None:
    records = [apart(Collective.ALL_GATHER, 1.1), apart(Collective.ALL_GATHER, 1.5, nodes=2)]
    assert fit_apart(records, MACHINE) == {"all_gather": pytest.approx(1.5)}


def test_more_than_two_ranks_say_nothing() -> None:
    assert fit_apart([apart(Collective.ALL_GATHER, 2.0, ranks=4)], MACHINE) == {}


def test_a_group_that_no_node_holds_says_nothing() -> None:
    point = CollectivePoint(
        collective=Collective.ALL_GATHER, ranks=2, nodes=3, bytes=MIB, timing=Timing.APART
    )
    assert fit_apart([Record(point=point, seconds=1.0)], MACHINE) == {}


def test_a_measurement_replaces_the_base_and_others_stay() -> None:
    given = {"all_gather": 1.5, "alltoall": 2.0}
    base = _with(MACHINE, given)
    changed = with_apart([apart(Collective.ALL_GATHER, 1.0)], base)
    assert with_apart([], base).constants.collectives.apart == given
    assert changed.constants.collectives.apart == {"alltoall": 2.0}


def test_a_fitted_profile_holds_the_factor_and_says_which_points_gave_it(tmp_path: Path) -> None:
    write_folder(tmp_path, [apart(Collective.ALL_TO_ALL, 1.9)])
    fitted = fit_folder(tmp_path, base="dgx-h100")
    assert fitted.profile.constants.collectives.apart == {"alltoall": pytest.approx(1.9)}
    (record,) = [r for r in fitted.profile.constants.fit if r.what == "collectives.apart"]
    assert record.points == 1


def _with(profile: Profile, factors: dict[str, float]) -> Profile:
    collectives = profile.constants.collectives.model_copy(update={"apart": factors})
    constants = profile.constants.model_copy(update={"collectives": collectives})
    return profile.model_copy(update={"constants": constants})
