"""`traincast goodput`: what it prints, writes and refuses, and the page of published runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.goodput.replicate import Quantiles
from planner.goodput.shape import Cause
from reports.goodput_view import CAUSE_WORDS
from tests.traincast.command_line import run
from traincast.docs.goodput_output import GOODPUT, RUN
from traincast.docs.published import PAGE, published_figures, rows_of, verdict
from traincast.forecasts import plan_run

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
model = "gpt2"
[cluster]
profile = "dgx-a100-80gb"
nodes = 1
[job]
global_batch_size = 64
seq_length = 1024
tokens = 1_000_000_000
{layout}
[run]
replications = 20
price = 2.0
{run}
"""
FAILURES = """
[run.checkpoint]
write_bandwidth = "1 GB/s"
[run.failures]
rates = ["opt-175b"]
"""


def written(folder: Path, table: str = FAILURES, layout: str = "[layout]\ndp = 8") -> Path:
    """Return a small scenario with a run table."""
    path = folder / "run.toml"
    path.write_text(SMALL.format(run=table, layout=layout))
    return path


def test_every_section_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    outcome = run("goodput", written(tmp_path))
    headings = ("Where the time goes", "Checkpoints", "Failures", "Energy and data")
    assert (outcome.code, outcome.err) == (0, "")
    assert [text for text in headings if text not in outcome.out] == []


def test_the_keys_of_goodput_json_are_those_described(tmp_path: Path) -> None:
    outcome = run("goodput", written(tmp_path), "--json", "-")
    assert (outcome.code, outcome.err) == (0, "")
    assert (list(outcome.record), list(outcome.record["run"])) == (list(GOODPUT), list(RUN))


def test_a_seed_on_the_command_line_is_the_one_of_the_answer(tmp_path: Path) -> None:
    seeds = [
        run("goodput", written(tmp_path), "--seed", seed, "--json", "-").record["run"]["seed"]
        for seed in (0, 7)
    ]
    assert seeds == [0, 7]


def test_without_a_run_table_nothing_fails(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text(SMALL.format(run="", layout="[layout]\ndp = 8").partition("[run]")[0])
    record = run("goodput", path, "--json", "-").record["run"]
    assert (record["goodput"]["p50"], record["failures"], record["checkpoint"]) == (1.0, None, None)


def test_without_a_layout_the_fastest_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path, layout="[search]\ntp = [1]\npp = [1]")
    layout, _, _ = plan_run(path)
    assert (layout.tp, layout.dp) == (1, 8)


def test_rates_of_ones_own_are_found_beside_the_scenario(tmp_path: Path) -> None:
    shipped = ROOT / "hardware_profiles" / "reliability" / "opt-175b.toml"
    (tmp_path / "ours.toml").write_text(shipped.read_text().replace("opt-175b", "ours"))
    path = written(tmp_path, FAILURES.replace('"opt-175b"', '"ours.toml"'))
    assert run("goodput", path, "--json", "-").record["run"]["failures"]["rates"] == ["ours"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[run.failures]\nrates = []", "run.failures.rates: must have at least 1 entry"),
        ("[run.checkpoint]\nintervall = 3", "run.checkpoint.intervall: unknown key"),
        ("steps = 5", "run.steps: both say how much is trained"),
        ('[run.failures]\nrates = ["none.toml"]', "none.toml: "),
        (
            '[run.checkpoint]\ninterval = "1 min"\ninterval_steps = 3',
            "run.checkpoint: interval and interval_steps say the same",
        ),
        ("[run.maintenance]\nevery = 3\nlasts = 4", "needs a unit"),
        (
            '[run.maintenance]\nevery = "1 us"\nlasts = "1 s"',
            "run.maintenance.every: at most 10,000 planned stops",
        ),
        (
            '[run.checkpoint]\nwrite_bandwidth = "1e-300 B/s"',
            "run.checkpoint: its bandwidths are so low that no checkpoint ever ends",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, table: str, said: str) -> None:
    outcome = run("goodput", written(tmp_path, table))
    assert (outcome.code, said in outcome.err, "Traceback" in outcome.err) == (2, True, False)


def test_planned_stops_are_made_although_nothing_fails(tmp_path: Path) -> None:
    record = run(
        *("goodput", written(tmp_path, '[run.maintenance]\nevery = "100 s"\nlasts = "100 s"')),
        *("--json", "-"),
    ).record
    assert record["run"]["wall_shares"]["maintenance"] == pytest.approx(0.5, abs=0.05)


def test_a_plan_has_the_whole_run_of_its_best_layout(tmp_path: Path) -> None:
    path = written(tmp_path, layout="[search]\ntp = [1]\npp = [1]\ntop = 1")
    record = run("plan", path, "--json", "-").record
    assert record["whole_run"]["steps"] == record["run"]["steps"]
    assert "Whole run, with [run]" in run("plan", path).out


def test_a_number_that_overflows_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace("price = 2.0", "price = 1.7e308"))
    outcome = run("goodput", path)
    assert (outcome.code, "not finite" in outcome.err) == (2, True)


def test_every_cause_has_words() -> None:
    assert set(CAUSE_WORDS) == {cause.value for cause in Cause}


def test_the_page_of_published_runs_is_what_the_examples_give() -> None:
    """One run of it is computed again; of the others every published figure stands there."""
    text = (ROOT / "docs" / PAGE).read_text()
    figures = published_figures(ROOT)
    fresh = [" | ".join(row) for row in rows_of(ROOT, "bloom-176b", figures)]
    assert [row for row in fresh if row not in text] == []
    assert [each.published for each in figures if each.published not in text] == []


def test_every_described_run_has_published_figures() -> None:
    scenarios = {path.stem for path in (ROOT / "examples" / "runs").glob("*.toml")}
    assert scenarios - {"published"} == {figure.run for figure in published_figures(ROOT)}


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (11.0, 11.0, "within (-9.1 %)"),
        (20.0, None, "off (-50.0 %)"),
        (None, 5.0, "off (+100.0 %)"),
        (9.0, None, "within (+0.0 %)"),
    ],
)
def test_a_published_figure_is_judged_by_the_interval(
    low: float | None, high: float | None, said: str
) -> None:
    assert verdict(Quantiles(p10=8.0, p50=10.0, p90=12.0), low, high) == said
