"""The script for one GPU: everything up to the device is there, and it runs through on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from calibrate.batches import DeviceFacts, World
from calibrate.plan import expand, load_plan
from calibrate.points import StepPoint
from calibrate.predict_steps import predict_step
from calibrate.records import Fingerprint
from calibrate.step_support import check_step
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import load_profile
from simulator.units import GIB, TERA
from simulator.workload.load import load_model

HERE = Path(__file__).resolve().parents[2] / "examples" / "calibration"
H200 = DeviceFacts(
    device="cuda",
    devices=1,
    memory=139 * GIB,
    dtypes=(Dtype.FP32, Dtype.BF16, Dtype.FP16),
    flops=700 * TERA,
    bandwidth=4.8e12,
    fingerprint=Fingerprint(accelerator="NVIDIA H200", accelerator_memory=139 * GIB),
)
CONFIGURATIONS = 8


def steps() -> list[StepPoint]:
    batches = expand(load_plan(str(HERE / "one-gpu-steps.toml")), World(), H200, None)
    return [p for batch in batches for p in batch.points if isinstance(p, StepPoint)]


def test_eight_configurations_are_run_that_no_calibration_holds() -> None:
    quick = {p for batch in expand(load_plan("quick"), World(), H200, None) for p in batch.points}
    assert len(set(steps()) - quick) == CONFIGURATIONS


@pytest.mark.parametrize("point", steps(), ids=lambda p: f"{p.model}-{p.layers}")
def test_each_configuration_can_be_run_and_forecast_on_one_gpu(point: StepPoint) -> None:
    check_step(point, load_model(point.model).spec, 1)
    _, memory = predict_step(point, load_profile("dgx-h200"))
    assert memory < H200.memory


def test_the_script_runs_through_without_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "[limits]\nblocks = 3\nmax_seconds = '300 ms'\nspread = 9.0\n"
        "[model]\ndefault = ['gpt2']\nseq_length = 64\n"
        "[training]\nlayers = [1]\n[memory_bound]\noperators = ['add']\n"
    )
    job = "{global_batch_size = 1, seq_length = 64, precision = 'fp32', stack = 'pytorch-gloo'}"
    own = tmp_path / "steps.toml"
    own.write_text(
        "[limits]\nblocks = 3\nmax_seconds = '300 ms'\nspread = 9.0\n"
        f"[model]\ndefault = ['gpt2']\n[[step]]\nlayers = 2\njob = {job}\nlayout = {{}}\n"
    )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PLAN": str(plan),
        "STEPS": str(own),
        "DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", str(HERE / "one-gpu.sh"), str(tmp_path / "out")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert len(result["points"]) == 1
