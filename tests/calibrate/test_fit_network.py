"""Points over nodes: rates, latencies and starts are found, whatever the base assumes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrate.fit import Fitted, fit_folder
from calibrate.fit_collective_blocks import network_model, why_not
from calibrate.points import CollectivePoint, GroupKind, Timing
from calibrate.predict import predict
from calibrate.records import Fingerprint, Record
from simulator.hardware.cluster import Nic
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.groups import Collective
from simulator.units import MIB, US
from tests.calibrate.fit_folders import measured, write_folder

HOSTS = Fingerprint(cpu="a CPU", accelerators_per_node=1, backend="gloo", torch="2.9.0")
COLLECTIVES = (Collective.ALL_REDUCE, Collective.ALL_GATHER)


def emulated_hosts() -> Profile:
    """Return hosts of one rank, joined by 500 Mbit/s, with slow starts."""
    base = load_profile("local-cpu")
    scale_up = base.node.scale_up.model_copy(update={"domain_size": 1})
    nic = Nic(per_node=1, bandwidth=62.5e6, efficiency=0.93, latency=120 * US)
    node = base.node.model_copy(update={"accelerators": 1, "nic": nic, "scale_up": scale_up})
    collectives = base.constants.collectives
    slow = {
        name.value: getattr(collectives, name.value).model_copy(update={"start": start * US})
        for name, start in zip(COLLECTIVES, (150, 90), strict=True)
    }
    constants = {"collectives": collectives.model_copy(update=slow)}
    return base.model_copy(
        update={
            "machine": base.machine.model_copy(update={"node": node}),
            "constants": base.constants.model_copy(update=constants),
        }
    )


TRUE = emulated_hosts()


def point(collective: Collective, ranks: int, size: float) -> CollectivePoint:
    return CollectivePoint(collective=collective, ranks=ranks, nodes=ranks, bytes=size)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    points = [
        point(collective, ranks, 1024.0 * 4**power)
        for collective in COLLECTIVES
        for ranks in (2, 4)
        for power in range(7)
    ]
    folder = tmp_path_factory.mktemp("hosts")
    return fit_folder(write_folder(folder, measured(points, TRUE, noise=0.01), machine=HOSTS))


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("ranks", "size"), [(3, 3e4), (8, 1e6), (2, 16 * MIB)])
def test_other_sizes_and_rank_counts_are_predicted(
    fitted: Fitted, collective: Collective, ranks: int, size: float
) -> None:
    record = Record(point=point(collective, ranks, size))
    found, true = (predict(record, machine).seconds for machine in (fitted.profile, TRUE))
    assert found == pytest.approx(true, rel=0.05)


def test_the_rate_is_found_though_the_base_has_no_card(fitted: Fitted) -> None:
    assert fitted.profile.nic_bandwidth == pytest.approx(TRUE.nic_bandwidth, rel=0.02)


def test_the_rate_is_settled_better_than_anything_else(fitted: Fitted) -> None:
    (block,) = fitted.blocks
    assert min(block.uncertainty, key=lambda name: block.uncertainty[name]) == "nic.efficiency"
    assert block.uncertainty["nic.efficiency"] < 0.02


def test_effects_that_the_base_has_not_stay_away(fitted: Fitted) -> None:
    network = fitted.profile.constants.collectives.network
    assert (network.fill, network.packet_factor, network.bulk_step) == (0.0, 0.0, 0.0)


def test_a_fabric_of_its_own_is_fitted_to_a_node_of_eight(tmp_path: Path) -> None:
    base = load_profile("dgx-h100")
    nic = base.node.nic
    assert nic is not None
    slow = nic.model_copy(update={"latency": 3 * nic.latency, "efficiency": 0.8})
    node = base.node.model_copy(update={"nic": slow})
    machine = base.model_copy(update={"machine": base.machine.model_copy(update={"node": node})})
    points = [
        CollectivePoint(
            collective=Collective.ALL_REDUCE, ranks=8 * nodes, nodes=nodes, bytes=64.0 * 8**power
        )
        for nodes in (2, 4)
        for power in range(9)
    ]
    found = fit_folder(write_folder(tmp_path, measured(points, machine)), base="dgx-h100")
    own = found.profile.node.nic
    assert own is not None
    assert own.efficiency == pytest.approx(0.8, rel=0.02)
    assert found.profile.constants.collectives.network.hop_factor == pytest.approx(3, rel=0.1)


def test_groups_with_another_share_of_the_cards_are_not_fitted() -> None:
    machine = load_profile("a100-4nic")
    whole = CollectivePoint(collective=Collective.ALL_REDUCE, ranks=16, nodes=2, bytes=MIB)
    alone = whole.model_copy(update={"ranks": 2, "group": GroupKind.ONE_A_NODE})
    halves = whole.model_copy(update={"group": GroupKind.HALVES})
    isolated = whole.model_copy(update={"timing": Timing.ISOLATED})
    takes = network_model(machine).takes
    points = (whole, alone, halves, isolated)
    assert [takes(Record(point=each, seconds=1.0)) for each in points] == [True, *3 * [False]]
    assert "another share of the links" in why_not(alone, machine)
    assert "timed alone" in why_not(isolated, machine)


def test_a_group_that_no_node_can_hold_is_listed_with_the_reason(tmp_path: Path) -> None:
    good = measured([point(Collective.ALL_REDUCE, 2, 1024.0 * 4**p) for p in range(6)], TRUE)
    odd = CollectivePoint(collective=Collective.ALL_REDUCE, ranks=3, nodes=2, bytes=MIB)
    records = [*good, Record(point=odd, seconds=1.0)]
    fitted = fit_folder(write_folder(tmp_path, records, machine=HOSTS))
    assert [each.reason for each in fitted.rejected] == ["3 ranks do not divide over 2 nodes"]
    assert np.isfinite(fitted.profile.constants.spread)


def test_sums_of_integers_are_left_out() -> None:
    machine = load_profile("dgx-h100")
    whole = CollectivePoint(collective=Collective.ALL_REDUCE, ranks=16, nodes=2, bytes=MIB)
    counts = whole.model_copy(update={"dtype": "int8"})
    assert not network_model(machine).takes(Record(point=counts, seconds=1.0))
    assert "integers" in why_not(counts, machine)


def test_a_start_that_one_host_tells_is_left_to_it() -> None:
    """Two ranks of a host measure the start of an all-reduce; the network has no say in it."""
    near = CollectivePoint(collective=Collective.ALL_REDUCE, ranks=2, nodes=1, bytes=MIB)
    pair = TRUE.node.scale_up.model_copy(update={"domain_size": 2})
    nic = TRUE.node.nic
    assert nic is not None
    two_cards = nic.model_copy(update={"per_node": 2})
    node = {"accelerators": 2, "scale_up": pair, "nic": two_cards}
    machine = TRUE.machine.model_copy(update={"node": TRUE.node.model_copy(update=node)})
    hosts = TRUE.model_copy(update={"machine": machine})
    far = [
        CollectivePoint(collective=collective, ranks=4, nodes=2, bytes=1024.0 * 4**power)
        for collective in COLLECTIVES
        for power in range(6)
    ]
    records = measured([near, *far], hosts)
    model = network_model(hosts, records)
    own = [record for record in records if model.takes(record)]
    names = model.fit(own, hosts).uncertainty
    assert (len(own), "all_gather.start" in names, "all_reduce.start" in names) == (12, True, False)
