"""The shipped hardware profiles are complete, consistent and as published."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simulator.files import parse_record, read_toml
from simulator.hardware.accelerator import Dtype
from simulator.hardware.cluster import ScaleUpKind
from simulator.hardware.profile import PROFILE_FOLDER, ProfileFile, load_profile, profile_names
from simulator.units import GB, GIB, TERA

NAMES = profile_names()
MACHINES = {
    name: parse_record(ProfileFile, read_toml(PROFILE_FOLDER / f"{name}.toml"), name)
    for name in NAMES
}
LAYOUT = ["name", "title", "aliases", "constants", "accelerator", "node", "fabric", "source"]

# Both directions together, as vendors print it.
PUBLISHED_SCALE_UP_GB = {
    "dgx-a100-80gb": 600,
    "dgx-a100-40gb": 600,
    "a800-node": 400,
    "dgx-h100": 900,
    "h100-efa": 900,
    "dgx-h200": 900,
    "h800-node": 400,
    "dgx-b200": 1800,
    "gb200-nvl72": 1800,
    "gb300-nvl72": 1800,
    "mi300x-node": 896,
    "tpu-v5p-pod": 1200,
    "tpu-v6e-pod": 800,
    "ascend-910b-node": 392,
}
PUBLISHED_NIC_GBIT_A_NODE = {
    "dgx-a100-80gb": 1600,
    "a100-4nic": 800,
    "a100-opa": 400,
    "dgx-h100": 3200,
    "h100-efa": 3200,
    "dgx-b200": 3200,
    "gb200-nvl72": 1600,
    "gb300-nvl72": 3200,
    "lan-workstations": 10,
}
DENSE_BF16_TFLOPS = {
    "dgx-a100-80gb": 312,
    "dgx-h100": 989.4,
    "dgx-h200": 989.4,
    "h800-node": 989.4,
    "dgx-b200": 2250,
    "gb200-nvl72": 2500,
    "mi300x-node": 1307.4,
    "mi355x-node": 2516.6,
    "tpu-v5p-pod": 459,
    "tpu-v6e-pod": 918,
}
MEASURED_HARDWARE = {
    "NVIDIA A100 SXM": "dgx-a100-80gb",
    "A100-SXM4-40G": "dgx-a100-40gb",
    "NVIDIA H100 SXM": "dgx-h100",
    "NVIDIA H100": "h100-efa",
    "NVIDIA B200 SXM": "dgx-b200",
    "NVIDIA GB200 NVL72": "gb200-nvl72",
    "AMD MI355X": "mi355x-node",
    "Google TPU v5p": "tpu-v5p-pod",
}


def profile_paths(machine: ProfileFile) -> set[str]:
    """Return every key path that the profile's file sets."""
    return dotted(read_toml(PROFILE_FOLDER / f"{machine.name}.toml"))


def dotted(data: dict[str, Any], prefix: str = "") -> set[str]:
    paths = set()
    for key, value in data.items():
        paths.add(prefix + key)
        if isinstance(value, dict):
            paths |= dotted(value, f"{prefix}{key}.")
    return paths


def sourced_paths(machine: ProfileFile) -> set[str]:
    return {path.strip() for source in machine.source for path in source.what.split(",")}


def test_profiles_are_shipped() -> None:
    assert {"dgx-a100-80gb", "dgx-h100", "dgx-b200", "gb200-nvl72", "mi300x-node"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_profile_is_named_as_its_file(name: str) -> None:
    assert MACHINES[name].name == name


@pytest.mark.parametrize("name", NAMES)
def test_profile_keeps_the_common_order_of_keys(name: str) -> None:
    assert list(read_toml(PROFILE_FOLDER / f"{name}.toml")) == LAYOUT


@pytest.mark.parametrize("name", NAMES)
def test_profile_loads_with_its_constants(name: str) -> None:
    if not (PROFILE_FOLDER / MACHINES[name].constants).is_file():
        pytest.skip("its constants are not shipped")
    assert load_profile(name).machine == MACHINES[name]


def test_every_alias_names_one_profile() -> None:
    names = [alias for machine in MACHINES.values() for alias in (machine.name, *machine.aliases)]
    assert {name for name, count in Counter(names).items() if count > 1} == set()


@pytest.mark.parametrize("hardware", sorted(MEASURED_HARDWARE))
def test_names_in_measurement_tables_find_their_machine(hardware: str) -> None:
    found = [name for name, machine in MACHINES.items() if hardware in machine.aliases]
    assert found == [MEASURED_HARDWARE[hardware]]


@pytest.mark.parametrize("name", NAMES)
def test_narrower_formats_are_not_slower(name: str) -> None:
    peak = MACHINES[name].accelerator.peak
    order = [Dtype.FP32, Dtype.TF32, Dtype.BF16, Dtype.FP8, Dtype.FP4]
    rates = [peak[dtype] for dtype in order if dtype in peak]
    assert rates == sorted(rates)


@pytest.mark.parametrize("name", sorted(DENSE_BF16_TFLOPS))
def test_bf16_peak_is_the_dense_one(name: str) -> None:
    peak = MACHINES[name].accelerator.peak[Dtype.BF16]
    assert peak == pytest.approx(DENSE_BF16_TFLOPS[name] * TERA)


@pytest.mark.parametrize("name", sorted(PUBLISHED_SCALE_UP_GB))
def test_scale_up_bandwidth_is_per_direction(name: str) -> None:
    bandwidth = MACHINES[name].node.scale_up.bandwidth
    assert bandwidth == pytest.approx(PUBLISHED_SCALE_UP_GB[name] * GB / 2)


@pytest.mark.parametrize("name", sorted(PUBLISHED_NIC_GBIT_A_NODE))
def test_network_cards_add_up_to_the_published_rate(name: str) -> None:
    nic = MACHINES[name].node.nic
    assert nic is not None
    assert nic.per_node * nic.bandwidth == pytest.approx(PUBLISHED_NIC_GBIT_A_NODE[name] * GB / 8)


@pytest.mark.parametrize("name", NAMES)
def test_sources_name_keys_that_the_profile_sets(name: str) -> None:
    machine = MACHINES[name]
    assert sourced_paths(machine) - profile_paths(machine) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_accelerator_links_and_host_has_a_source(name: str) -> None:
    machine = MACHINES[name]
    sourced = sourced_paths(machine)
    needed = {
        f"{table}.{key}"
        for table, keys in {
            "accelerator": "memory memory_bandwidth l2 compute_units clock power",
            "node.scale_up": "bandwidth latency",
            "node.nic": "per_node bandwidth efficiency latency" if machine.node.nic else "",
            "node.host": "memory pcie_bandwidth power",
        }.items()
        for key in keys.split()
    } | {f"accelerator.peak.{dtype}" for dtype in machine.accelerator.peak}
    assert {path for path in needed if not covers(sourced, path)} == set()


def covers(sourced: set[str], path: str) -> bool:
    parts = path.split(".")
    return any(".".join(parts[: end + 1]) in sourced for end in range(len(parts)))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_of_a_plausible_size(name: str) -> None:
    machine = MACHINES[name]
    accelerator, link = machine.accelerator, machine.node.scale_up
    assert 15 * GIB <= accelerator.memory <= 400 * GIB
    assert 0.4e12 <= accelerator.memory_bandwidth <= 10e12
    assert 1e9 <= accelerator.clock <= 4e9
    assert link.bandwidth < accelerator.memory_bandwidth
    assert 0.1e-6 <= link.latency <= 10e-6


@pytest.mark.parametrize("name", NAMES)
def test_only_nvlink_switches_reduce(name: str) -> None:
    link = MACHINES[name].node.scale_up
    assert link.kind is ScaleUpKind.NVSWITCH or not link.in_network_reduction


@pytest.mark.parametrize("name", NAMES)
def test_profile_ships_no_price(name: str) -> None:
    assert MACHINES[name].price.per_accelerator_hour is None


@pytest.mark.parametrize("path", sorted(PROFILE_FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_profile_is_plain_text_of_bounded_width(path: Path) -> None:
    comments = [line for line in path.read_text("ascii").splitlines() if line.startswith("#")]
    assert max(len(line) for line in comments) <= 100
