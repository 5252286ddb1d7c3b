"""The base of a fit is found by what a driver calls the accelerator."""

from __future__ import annotations

import pytest

from calibrate.fit_base import base_profile
from calibrate.points import CollectivePoint
from calibrate.records import Fingerprint, Record
from simulator.errors import InputError
from simulator.parallel.groups import Collective
from simulator.units import GIB, MIB

NAMES = {
    "NVIDIA H200": "dgx-h200",
    "NVIDIA H100 80GB HBM3": "dgx-h100",
    "NVIDIA A100-SXM4-80GB": "dgx-a100-80gb",
    "NVIDIA A100-SXM4-40GB": "dgx-a100-40gb",
    "NVIDIA B200": "dgx-b200",
    "NVIDIA GB200": "gb200-nvl72",
    "NVIDIA GH200 480GB": "gh200-node",
    "NVIDIA L40S": "l40s-node",
    "AMD Instinct MI300X": "mi300x-node",
}


def found(name: str | None, **facts: float | str) -> str:
    fingerprint = Fingerprint(accelerator=name, **facts)  # type: ignore[arg-type]
    return base_profile(None, fingerprint, [])[0].name


@pytest.mark.parametrize(("name", "profile"), NAMES.items())
def test_names_of_drivers_find_their_profile(name: str, profile: str) -> None:
    assert found(name) == profile


def test_without_an_accelerator_the_cpu_is_it() -> None:
    assert found(None, cpu="Some CPU, 2 cores") == "local-cpu"


def test_an_unknown_accelerator_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match="no shipped profile has an accelerator") as raised:
        found("NVIDIA V100-SXM2-32GB")
    assert "--base" in str(raised.value)


def test_a_name_that_is_only_like_a_shipped_one_is_noted() -> None:
    _, notes = base_profile(None, Fingerprint(accelerator="NVIDIA H100 PCIe"), [])
    assert "--base names another" in notes[0]


def test_accelerators_memory_and_name_are_those_that_were_found() -> None:
    machine = Fingerprint(
        accelerator="NVIDIA H200", accelerators_per_node=4, accelerator_memory=100 * GIB
    )
    profile, notes = base_profile(None, machine, [])
    assert (profile.node.accelerators, profile.node.scale_up.domain_size) == (4, 4)
    assert profile.accelerator.memory == 100 * GIB
    assert profile.accelerator.name == "NVIDIA H200"
    assert len(notes) == 2


def test_memory_within_two_percent_stays_the_data_sheets() -> None:
    shipped = base_profile("dgx-h200", Fingerprint(), [])[0].accelerator.memory
    machine = Fingerprint(accelerator="NVIDIA H200", accelerator_memory=0.99 * shipped)
    assert base_profile(None, machine, [])[0].accelerator.memory == shipped


def test_a_machine_without_a_card_gets_the_best_that_was_measured() -> None:
    point = CollectivePoint(collective=Collective.SEND_RECV, ranks=2, nodes=2, bytes=MIB)
    small = point.model_copy(update={"bytes": 1.0})
    records = [Record(point=point, seconds=0.01), Record(point=small, seconds=1e-4)]
    profile, notes = base_profile("local-cpu", Fingerprint(), records)
    nic = profile.node.nic
    assert nic is not None
    assert (nic.bandwidth, nic.latency) == (pytest.approx(MIB / 0.01, rel=1e-3), 1e-4)
    assert "has no network card" in notes[0]
