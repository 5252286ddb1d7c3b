"""Changed scenarios: the keys that change and no other, and every error of a change at once."""

from __future__ import annotations

from typing import Any

import pytest

from planner.changes import changed
from simulator.errors import InputError
from simulator.scenario import Scenario
from simulator.units import GIB
from tests.planner.scenarios import gpt, scenario
from tests.planner.test_mixed import two_generations


def given() -> Scenario:
    """Return a small scenario on the made-up machine."""
    return scenario(gpt(8, 1024), nodes=2)


@pytest.mark.parametrize(
    ("key", "value", "read", "expected"),
    [
        ("accelerator.memory", "x2", lambda s: s.profile.accelerator.memory, 160 * GIB),
        ("accelerator.memory", "96 GiB", lambda s: s.profile.accelerator.memory, 96 * GIB),
        ("node.nic.bandwidth", "x0.5", lambda s: s.profile.node.nic.bandwidth, 12.5e9),
        ("accelerator.peak", "x2", lambda s: [*s.profile.accelerator.peak.values()], [600e12]),
        ("node.scale_up.domain_size", 64, lambda s: s.profile.node.scale_up.domain_size, 64),
        (
            "constants.gemm.*.efficiency",
            "x0.5",
            lambda s: [each.efficiency for each in s.profile.constants.gemm.values()],
            [0.4],
        ),
        ("job.global_batch_size", "x4", lambda s: s.file.job.global_batch_size, 128),
        ("cluster.nodes", "x3", lambda s: s.world_size, 48),
        ("stack.kernels.cpu_launch", "8 us", lambda s: s.stack.kernels.cpu_launch, 8e-6),
        ("model.num_hidden_layers", 4, lambda s: s.model.spec.num_hidden_layers, 4),
    ],
)
def test_a_key_takes_its_value_or_is_multiplied(
    key: str, value: Any, read: Any, expected: Any
) -> None:
    assert read(changed(given(), {key: value})) == pytest.approx(expected)


def test_a_change_and_its_inverse_leave_everything_as_it_was() -> None:
    there = changed(given(), {"accelerator.memory_bandwidth": "x2", "job.seq_length": "x2"})
    back = changed(there, {"accelerator.memory_bandwidth": "x0.5", "job.seq_length": "x0.5"})
    assert back.file == given().file
    assert back.profile.machine == given().profile.machine


def test_another_machine_has_another_hash() -> None:
    assert changed(given(), {"node.nic.latency": "x2"}).profile.sha256 != given().profile.sha256


def test_all_errors_of_a_change_come_at_once() -> None:
    change = {"node.nik.bandwidth": "x2", "job.seq_length": "x0.3", "gpu.memory": "x2"}
    with pytest.raises(InputError) as caught:
        changed(given(), change, "wrong")
    assert str(caught.value) == (
        "scenario.toml: what_if 'wrong': job.seq_length: must be a whole number, and 1024 x 0.3 = "
        "307.2\n    fix: another factor\n"
        "scenario.toml: what_if 'wrong': node.nik.bandwidth: there is no 'nik' here\n"
        "    fix: did you mean 'nic'?\n"
        "scenario.toml: what_if 'wrong': gpu.memory: no key starts with 'gpu'\n"
        "    fix: one of: accelerator, cluster, constants, fabric, job, layout, model, node, "
        "price, search, stack"
    )


def test_a_changed_record_obeys_the_rules_of_its_file() -> None:
    with pytest.raises(InputError, match=r"must divide or be a multiple of node\.accelerators 8"):
        changed(given(), {"node.scale_up.domain_size": 12})


def test_a_change_of_the_machine_is_one_of_every_part_of_a_mixed_cluster() -> None:
    given = two_generations(memory="40 GiB")
    doubled = changed(given, {"accelerator.memory": "x2", "cluster.nodes": "x2"})
    assert [part.profile.accelerator.memory for part in doubled.parts] == [160 * GIB, 80 * GIB]
    assert [part.nodes for part in doubled.parts] == [2, 2]
    set_anew = changed(given, {"accelerator.memory": "96 GiB", "constants.gemm.*.efficiency": 0.5})
    assert {part.profile.accelerator.memory for part in set_anew.parts} == {96 * GIB}
    assert {
        block.efficiency
        for part in set_anew.parts
        for block in part.profile.constants.gemm.values()
    } == {0.5}


def test_a_change_that_one_part_cannot_have_is_refused() -> None:
    with pytest.raises(InputError, match="whole scale-up domains of 72"):
        changed(two_generations(), {"node.scale_up.domain_size": 72})
