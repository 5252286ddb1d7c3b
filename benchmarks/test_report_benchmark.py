"""How long a report takes: reading a large result, its figures, the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from reports.page.document import Document, document_of
from reports.page.html import MOST_BYTES, html_of
from reports.result_files import load_results
from simulator.files import parse_record
from simulator.scenario import ScenarioFile, resolve_scenario
from tests.reports.marks import marks_of
from traincast.forecasts import simulate_step, step_file

STAGES, MICRO_BATCHES = 64, 256
PASSES = 2 * STAGES * MICRO_BATCHES
SCENARIO = {
    "title": "64 stages",
    "model": "megatron-1008b",
    "cluster": {"profile": "dgx-a100-80gb", "nodes": 64},
    "job": {"global_batch_size": MICRO_BATCHES, "seq_length": 2048, "precision": "bf16"},
    "layout": {"tp": 8, "pp": STAGES, "micro_batch_size": 1},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = resolve_scenario(parse_record(ScenarioFile, SCENARIO, "64 stages"), "64 stages")
    path = tmp_path_factory.mktemp("result") / "step.json"
    path.write_text(json.dumps(step_file(scenario, simulate_step(scenario))))
    return path


def test_document_of_a_step_of_64_stages(benchmark: BenchmarkFixture, result: Path) -> None:
    document: Document = benchmark(lambda: document_of(load_results([result])))

    marks = {figure.name: marks_of(figure) for figure in document.parts[0].figures}
    assert marks["pipeline-timeline"] == PASSES + STAGES  # and an update a stage


def test_page_of_a_step_of_64_stages(benchmark: BenchmarkFixture, result: Path) -> None:
    document = document_of(load_results([result]))

    page: str = benchmark(html_of, document)

    assert len(page.encode()) < MOST_BYTES
