"""Pictures and samples of output in the hand-written pages, from real runs of the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from reports.charts import Figure, Timeline
from reports.drawing.files import save_figure
from reports.records import step_record
from reports.report_figures.step import breakdown, timeline
from reports.result_files import StepFile
from reports.step_detail import timeline_record
from reports.words import english
from simulator.errors import InputError, Problem
from simulator.files import parse_record, read_text, write_atomic
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.scenario import load_scenario
from traincast.docs.blocks import filled
from traincast.forecasts import simulate_step

EXAMPLE = "examples/gpt3-175b-1024-a100.toml"
_COLUMNS = "100"
_BLOCK = "plan"
_PAGES = ("README.md", "README.zh-CN.md", "docs/tutorial.md")


def write_samples(docs: Path) -> None:
    """Write docs/images and fill the samples of output in."""
    root = docs.parent
    scenario = load_scenario(root / EXAMPLE)
    (docs / "images").mkdir(exist_ok=True)
    # The published layout with a quarter of the batch, so that single passes can be seen.
    job = scenario.file.job.model_copy(update={"global_batch_size": 256})
    smaller = scenario.model_copy(update={"file": scenario.file.model_copy(update={"job": job})})
    layout = ParallelLayout(tp=8, pp=8, dp=16, micro_batch_size=1, recompute=Recompute.FULL)
    title = "GPT-3 175B, 1024 A100, tp 8, pp 8, dp 16, 16 micro-batches"
    result = simulate_step(smaller, layout)
    record = {**step_record(smaller, layout, result), "timeline": timeline_record(result.spans)}
    step = parse_record(StepFile, record, EXAMPLE)
    save_figure(_overview(step, title), docs / "images" / "step.png")
    for page, text in _filled(root).items():
        write_atomic(page, text)


def drifted_samples(docs: Path) -> list[Path]:
    """Return the pages whose sample of output is not what the example prints today."""
    return [page for page, text in _filled(docs.parent).items() if read_text(page) != text]


def _filled(root: Path) -> dict[Path, str]:
    """Return the pages with a sample of output, with the one of today in its place."""
    body = f"```text\n{output_of(['plan', EXAMPLE], root)}\n```"
    pages = [root / page for page in _PAGES]
    return {page: filled(read_text(page), _BLOCK, body, str(page)) for page in pages}


def _overview(step: StepFile, title: str) -> tuple[Figure, ...]:
    """Return the timeline of a step, and what the time of its busiest stage goes into."""
    (passes,), (shares,) = timeline(step, english), breakdown(step, english)
    assert isinstance(passes, Timeline)
    return replace(passes, title=f"{title}: {step.step.step_time_s:.2f} s a step"), shares


def output_of(words: list[str], folder: Path) -> str:
    """Return what `traincast` with these words prints to standard output.

    Raises:
        InputError: it does not exit with 0.
    """
    done = subprocess.run(
        [sys.executable, "-m", "traincast", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        rule = f"exits with {done.returncode}: {done.stderr.strip()}"
        raise InputError(Problem(where=f"traincast {' '.join(words)}", rule=rule))
    lines = (line.rstrip() for line in done.stdout.splitlines())
    return "\n".join(lines).strip("\n")
