"""A run that goes on plans what its first part planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.batches import DeviceFacts, World
from calibrate.kept_facts import FACTS_FILE, keep_facts
from calibrate.plan import expand, load_plan
from calibrate.records import Fingerprint
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype

FIRST = DeviceFacts(
    device="cpu",
    devices=1,
    memory=16e9,
    dtypes=(Dtype.FP32,),
    flops=100e9,
    bandwidth=10e9,
    fingerprint=Fingerprint(cpu="made up"),
)
SLOWER = FIRST.model_copy(update={"flops": 60e9, "memory": 14e9})


def test_a_slower_second_look_plans_the_same_points(tmp_path: Path) -> None:
    plan = load_plan("quick")
    first = expand(plan, World(), keep_facts(tmp_path, FIRST))

    assert expand(plan, World(), SLOWER) != first
    assert expand(plan, World(), keep_facts(tmp_path, SLOWER)) == first


def test_another_kind_of_device_is_looked_at_anew(tmp_path: Path) -> None:
    other = FIRST.model_copy(update={"device": "cuda"})
    keep_facts(tmp_path, FIRST)

    assert keep_facts(tmp_path, other) == other
    assert keep_facts(tmp_path, SLOWER.model_copy(update={"device": "cuda"})) == other


def test_a_broken_file_of_facts_is_named(tmp_path: Path) -> None:
    (tmp_path / FACTS_FILE).write_text('{"device": "tpu"}')
    with pytest.raises(InputError, match=FACTS_FILE):
        keep_facts(tmp_path, FIRST)
