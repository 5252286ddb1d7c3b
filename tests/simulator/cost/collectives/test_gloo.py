"""gloo's own algorithms, bursts, and ranks that take turns, with round numbers."""

from __future__ import annotations

import pytest

from simulator.cost.collectives.select import CollectiveCosts, plan_collective
from simulator.errors import InputError
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import GB
from tests.simulator.cost.collectives.machines import CONSTANTS, machine

GLOO = CONSTANTS.model_copy(
    update={
        "algorithms": {
            "reduce_scatter": "gloo_reduce_scatter",
            "broadcast": "gloo_broadcast",
            "all_reduce": "ring",
        },
        "apart": {"all_gather": 1.5, "sendrecv": 2.0},
    }
)
FOUR = GroupShape(size=4, per_domain=1)
TWO = GroupShape(size=2, per_domain=1)
SHARE, PAYLOAD = 10 * GB, 1 * GB


def gloo(**network: float) -> Profile:
    """Return a machine with gloo's algorithms and no latency in its network."""
    changed = GLOO.network.model_copy(update=network)
    return machine(constants=GLOO.model_copy(update={"network": changed}))


def wire_seconds(profile: Profile, collective: Collective, group: GroupShape) -> float:
    (phase,) = plan_collective(collective, PAYLOAD, group, profile).phases
    return phase.wire_bytes / phase.rate


def test_a_reduce_scatter_takes_as_long_as_an_all_reduce() -> None:
    assert wire_seconds(gloo(), Collective.REDUCE_SCATTER, FOUR) == wire_seconds(
        gloo(), Collective.ALL_REDUCE, FOUR
    )


def test_a_root_that_feeds_two_children_at_once_delays_the_grandchild() -> None:
    # 2 s for both children, then 1 s for the child of one of them.
    assert wire_seconds(gloo(), Collective.BROADCAST, FOUR) == pytest.approx(3 * PAYLOAD / SHARE)


@pytest.mark.parametrize(("ranks", "copies"), [(2, 1), (3, 2), (5, 4), (6, 5), (7, 5), (8, 6)])
def test_a_tree_that_is_not_full_has_fewer_children(ranks: int, copies: int) -> None:
    # Of 6: the root feeds 1, 2 and 4 (3 s), then 1 feeds 3 and 5 (2 s).
    group = GroupShape(size=ranks, per_domain=1)
    seconds = wire_seconds(gloo(), Collective.BROADCAST, group)
    assert seconds == pytest.approx(copies * PAYLOAD / SHARE)


def test_an_all_reduce_of_the_library_is_never_a_tree() -> None:
    assert plan_collective(Collective.ALL_REDUCE, 1.0, FOUR, gloo()).algorithm == "ring"


def test_an_unknown_algorithm_of_the_library_is_refused() -> None:
    wrong = machine(constants=GLOO.model_copy(update={"algorithms": {"all_reduce": "rign"}}))
    with pytest.raises(InputError, match=r"rign: is not a collective algorithm\n.*'ring'"):
        plan_collective(Collective.ALL_REDUCE, 1.0, FOUR, wrong)


def test_a_burst_passes_at_once_and_loads_nothing() -> None:
    burst = 0.2 * GB
    (phase,) = plan_collective(Collective.SEND_RECV, PAYLOAD, TWO, gloo(burst=burst)).phases
    assert (phase.wire_bytes, phase.rate) == (PAYLOAD - burst, pytest.approx(SHARE))


def test_a_message_within_the_burst_takes_only_its_latency() -> None:
    plan = plan_collective(Collective.SEND_RECV, PAYLOAD, TWO, gloo(burst=2 * PAYLOAD))
    assert plan.seconds == pytest.approx(plan.phases[0].fixed)


@pytest.mark.parametrize(
    ("collective", "group", "factor"),
    [
        (Collective.ALL_GATHER, TWO, 1.5),
        (Collective.ALL_GATHER, FOUR, 1.0),
        (Collective.ALL_REDUCE, TWO, 1.0),
        (Collective.SEND_RECV, TWO, 1.0),
    ],
)
def test_two_ranks_that_come_apart_take_turns(
    collective: Collective, group: GroupShape, factor: float
) -> None:
    profile = gloo()
    (apart,) = CollectiveCosts(profile, apart=True).plan(collective, PAYLOAD, group).phases
    together = wire_seconds(profile, collective, group)
    assert apart.wire_bytes / apart.rate == pytest.approx(factor * together)


def test_two_ranks_that_send_both_ways_take_turns() -> None:
    costs = CollectiveCosts(gloo(), apart=True)
    send = costs.plan(Collective.SEND_RECV, PAYLOAD, TWO)
    fixed = send.phases[0].fixed
    assert costs.exchanged(send).seconds == pytest.approx(fixed + 2 * PAYLOAD / SHARE)
