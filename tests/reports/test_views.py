"""What the tables show at 80 and at 160 characters, from real results."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import traincast
from reports.plan_view import print_plan
from reports.records import plan_record, step_record
from reports.step_view import print_step
from simulator.given_layout import scenario_layout

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(name="plan", scope="module")
def _plan() -> dict[str, Any]:
    scenario = traincast.load_scenario(EXAMPLES / "llama3.1-8b-dgx-h100.toml")
    return plan_record(scenario, traincast.plan(scenario))


@pytest.fixture(name="step", scope="module")
def _step() -> dict[str, Any]:
    scenario = traincast.load_scenario(EXAMPLES / "gpt3-175b-1024-a100.toml")
    return step_record(scenario, scenario_layout(scenario), traincast.estimate_step(scenario))


def show(draw: Any, record: dict[str, Any], width: int) -> str:
    out = io.StringIO()
    draw(Console(file=out, width=width, markup=False, highlight=False), record)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_plan_fits_the_terminal(plan: dict[str, Any], width: int) -> None:
    assert max(map(len, show(print_plan, plan, width).splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_step_fits_the_terminal(step: dict[str, Any], width: int) -> None:
    assert max(map(len, show(print_step, step, width).splitlines())) <= width


@pytest.mark.parametrize(
    "title",
    ["80 % interval", "tokens/s", "MFU [1]", "GiB [2]", "comm [3]", "bubble", "recompute", "ZeRO"],
)
def test_a_wide_plan_leaves_nothing_out(plan: dict[str, Any], title: str) -> None:
    text = show(print_plan, plan, 160)
    assert (title in text, "left out" in text) == (True, False)


def test_a_narrow_plan_says_what_it_leaves_out(plan: dict[str, Any]) -> None:
    assert "left out at 80 characters: tokens/s" in show(print_plan, plan, 80)


@pytest.mark.parametrize(
    "text", ["bottleneck", "runner-up", "layouts considered", "does not fit in memory", "sha"]
)
def test_a_plan_explains_itself(plan: dict[str, Any], text: str) -> None:
    shown = show(print_plan, plan, 120)
    assert text in shown or plan["provenance"]["profile_sha256"][:12] in shown


def test_a_plan_claims_no_more_of_what_it_left_open_than_is_proved(plan: dict[str, Any]) -> None:
    cut = {**plan, "searched": {**plan["searched"], "gap": 0.0312345}}
    whole, short = (" ".join(show(print_plan, each, 120).split()) for each in (plan, cut))
    assert "estimated exactly (the others cannot be better)" in whole
    assert "estimated exactly (cut short: the others could be better by up to 3.13%)" in short


def test_a_step_names_its_conventions(step: dict[str, Any]) -> None:
    shown = show(print_step, step, 200)
    assert step["step"]["mfu_convention"] in shown
    assert step["step"]["hfu_convention"] in shown


def test_days_follow_from_tokens_and_step_time(step: dict[str, Any]) -> None:
    steps = -(-300_000_000_000 // (1536 * 2048))
    assert step["run"]["steps"] == steps
    assert step["run"]["days"] == pytest.approx(steps * step["step"]["step_time_s"] / 86400)
    assert step["run"]["accelerator_hours"] == pytest.approx(step["run"]["days"] * 24 * 1024)


def test_memory_of_a_stage_adds_up(step: dict[str, Any]) -> None:
    for stage in step["memory"]["stages"]:
        parts = ("weights", "gradients", "optimizer", "activations", "transient", "logits")
        assert stage["allocated"] == pytest.approx(sum(stage[part] for part in parts))
        margin = stage["fragmentation"] + stage["context"]
        assert stage["reserved"] == pytest.approx(stage["allocated"] + margin)
