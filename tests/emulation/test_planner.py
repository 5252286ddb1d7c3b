"""The planner's first choice on four emulated hosts, beside every feasible layout run for real."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit

from calibrate.points import StepPoint
from calibrate.step_support import check_step
from planner.planning import plan
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario, load_scenario
from tests.emulation.bursts import CheckedSteps
from tests.emulation.machines import (
    CALIBRATED_AT,
    HERE,
    Machine,
    measure,
    records_of,
)
from tests.emulation.test_forecasts import show

RATE = CALIBRATED_AT
REGRET = 0.03
HOSTS = 4
MODEL = "tests/emulation/tiny.toml"
JOB = {"global_batch_size": 8, "seq_length": 128, "precision": "fp32", "stack": "pytorch-gloo"}
SEARCH = {
    "micro_batch_size": [2],
    "zero_stage": [0, 3],
    "schedule": ["1f1b"],
    "recompute": ["none"],
    "sequence_parallel": [False],
    "vpp": [1],
    "max_tp": HOSTS,
    "top": 100,
    "simulate": 100,
}

pytestmark = pytest.mark.alone


def test_the_first_choice_is_the_fastest_for_real_or_nearly(
    four_hosts: CheckedSteps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = scenario_of(four_hosts.machine, tmp_path)
    forecasts = {entry.layout: entry.step_time for entry in plan(scenario).layouts}
    layouts = [layout for layout in forecasts if runs(layout, scenario)]
    measured = run_all(layouts, tmp_path)
    lines = [
        f"{forecasts[layout] * 1e3:8.1f} ms forecast  {seconds * 1e3:8.1f} ms measured  {layout}"
        for layout, seconds in sorted(measured.items(), key=lambda pair: pair[1])
    ]
    choice = min(layouts, key=forecasts.__getitem__)
    regret = measured[choice] / min(measured.values()) - 1
    summary = f"first choice {choice}: {regret:.1%} over the fastest of {len(measured)}"
    show(capsys, "Layouts on four hosts, fastest first", "\n".join(lines), summary)
    assert len(measured) == len(layouts) >= 7
    assert regret <= REGRET, summary


def scenario_of(machine: Machine, folder: Path) -> Scenario:
    """Return the scenario of four hosts of a calibrated machine."""
    profile = folder / "profile.toml"
    machine.at(RATE)
    profile.write_text(machine.profile.with_name(f"at-{RATE:.0f}.toml").read_text())
    content = {
        "model": str(Path(MODEL).resolve()),
        "cluster": {"profile": str(profile), "nodes": HOSTS},
        "job": JOB,
        "search": SEARCH,
    }
    path = folder / "scenario.toml"
    path.write_text(tomlkit.dumps(content))
    return load_scenario(path)


def runs(layout: ParallelLayout, scenario: Scenario) -> bool:
    """Return whether plain PyTorch can run a layout (it takes no tensor parallelism under DDP)."""
    point = StepPoint(model=MODEL, job=scenario.file.job, layout=layout)
    try:
        check_step(point, scenario.model.spec, HOSTS)
    except InputError:
        return False
    return True


def run_all(layouts: list[ParallelLayout], folder: Path) -> dict[ParallelLayout, float]:
    """Return the measured seconds of a step of each layout."""
    content = {
        "limits": {"block_seconds": "10 ms", "blocks": 3, "max_seconds": "2 s"},
        "model": {"default": [MODEL]},
        "step": [
            {"job": JOB, "layout": layout.model_dump(mode="json", exclude_defaults=True)}
            for layout in layouts
        ],
    }
    plan_file = folder / "layouts.toml"
    plan_file.write_text(tomlkit.dumps(content))
    out = folder / "measured"
    measure(plan_file, out, hosts=HOSTS, rate=RATE)
    found = {}
    for record in records_of(out):
        assert isinstance(record.point, StepPoint)
        assert record.seconds is not None
        found[record.point.layout] = record.seconds
    return found


def test_the_plan_of_this_test_is_of_its_folder() -> None:
    assert (HERE / "tiny.toml").samefile(MODEL)
