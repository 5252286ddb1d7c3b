"""`traincast trace compare`: a forecast beside traces of ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.result_files.loading import load_results
from tests.calibrate.kineto_traces import GEMM, NCCL, kernel, mark, write_trace
from traincast.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "lan-ddp.toml"


@pytest.fixture(name="forecast", scope="module")
def _forecast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a hand-made forecast: 100 us, of which 65 gemm, 22 data_comm and 13 recompute."""
    path = tmp_path_factory.mktemp("forecast") / "forecast.json"
    seconds = {"gemm": 65e-6, "data_comm": 22e-6, "recompute": 13e-6}
    other = {
        "title": "by hand",
        "step_time_s": 100e-6,
        "busiest_stage": 0,
        "breakdowns": [{"stage": 0, "seconds": seconds}],
    }
    name = {"ph": "M", "pid": 0, "tid": 0, "ts": 0, "name": "process_name"}
    events = [{**name, "args": {"name": "stage 0"}}]
    path.write_text(json.dumps({"traceEvents": events, "otherData": other}))
    return path


def rank(folder: Path, number: int, lengths: list[float]) -> Path:
    """Write a trace with a step of each length: all gemm, but 30 us of communication."""
    events: list[dict[str, Any]] = []
    start = 1000.0
    for step, length in enumerate(lengths):
        events += [
            mark(f"ProfilerStep#{step}", start, length),
            kernel(GEMM, start, length - 30),
            kernel(NCCL, start + length - 30, 30, 20, **{"Process Group Name": "ddp"}),
        ]
        start += length
    return write_trace(folder / f"rank{number}.json", events, rank=number)


def test_the_median_step_is_compared_class_by_class(
    forecast: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps of 130, 110 and 150 us: the median one has 100 of gemm and 30 of communication."""
    out = tmp_path / "c.json"
    real = rank(tmp_path, 2, [130, 110, 150])
    assert main(["trace", "compare", str(forecast), str(real), "--json", str(out)]) == 0
    record = json.loads(out.read_text())
    rows = [
        (each["name"], *(round(1e6 * each[key], 3) for key in ("difference_s", "low_s", "high_s")))
        for each in record["classes"]
    ]
    assert rows == [
        ("gemm", 35.0, 80.0, 120.0),
        ("recompute", -13.0, 0.0, 0.0),
        ("data_comm", 8.0, 30.0, 30.0),
    ]
    assert record["step"] == "step 0 of rank 2"
    assert list(record)[:2] == ["kind", "format"]
    (loaded,) = load_results([out])
    assert loaded.kind == "trace_comparison"
    printed = capsys.readouterr().out
    assert "All computing together: 22.00 us more than forecast (16.9 % of the step)." in printed


def test_both_stand_in_one_trace_from_time_0(forecast: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.json"
    ranks = [str(rank(tmp_path, number, [130])) for number in (0, 1)]
    assert main(["trace", "compare", str(forecast), *ranks, "--out", str(out)]) == 0
    events = json.loads(out.read_text())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    bars = [(e["pid"], e["ts"], e["dur"], e["cat"]) for e in events if e["ph"] == "X"]
    assert names == [
        "forecast: stage 0",
        "measured: rank 0, step 0",
        "measured: rank 1, step 0",
    ]
    assert sorted(bars) == [
        *((1, 0.0, 100.0, "gemm"), (1, 100.0, 30.0, "data_comm")),
        *((2, 0.0, 100.0, "gemm"), (2, 100.0, 30.0, "data_comm")),
    ]


def test_a_trace_and_a_result_of_one_forecast_say_the_same(tmp_path: Path) -> None:
    sources = {"--trace": tmp_path / "t.json", "--json": tmp_path / "r.json"}
    options = [str(part) for pair in sources.items() for part in pair]
    assert main(["simulate", str(EXAMPLE), *options]) == 0
    real = str(rank(tmp_path, 0, [130]))
    found = []
    for place, source in enumerate(sources.values()):
        out = tmp_path / f"out{place}.json"
        assert main(["trace", "compare", str(source), real, "--json", str(out)]) == 0
        found.append({**json.loads(out.read_text()), "simulated": ""})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--step", "9"], "--step: must be a step of the traces (found 9)\n    fix: one of: 0"),
        (["--stage", "4"], "--stage: must be a stage of forecast.json (found 4)\n    fix: one of"),
        (["--group", "x=y"], "--group: must be NAME=KIND, and KIND one of tensor, context"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    forecast: Path,
    tmp_path: Path,
    options: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = str(rank(tmp_path, 0, [130]))
    assert main(["trace", "compare", str(forecast), real, *options]) == 2
    assert words in capsys.readouterr().err


def test_all_bad_traces_are_named_at_once(
    forecast: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.json").write_text("{}")
    bad = [str(tmp_path / "empty.json"), str(tmp_path / "missing.json")]
    assert main(["trace", "compare", str(forecast), *bad]) == 2
    said = capsys.readouterr().err
    assert all(f"{path}: " in said for path in bad)


def test_a_real_trace_in_place_of_the_forecast_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = str(rank(tmp_path, 0, [130]))
    assert main(["trace", "compare", real, real]) == 2
    assert "must be a trace that traincast simulate wrote" in capsys.readouterr().err
