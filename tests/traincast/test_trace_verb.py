"""`traincast trace compare`: a forecast beside traces of ranks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.import_kineto_labels import OTHER, UNKNOWN_COMM
from calibrate.import_kineto_steps import IDLE, MeasuredStep
from reports.result_files.loading import load_results
from reports.trace_forecast import TraceForecast
from reports.trace_sentences import class_words, sentences
from simulator.results import Category
from tests.calibrate.kineto_traces import GEMM, NCCL, kernel, launch, mark, write_trace
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


@pytest.fixture(name="stages", scope="module")
def _stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a forecast of 2 stages of 4 ranks: 100 us, of which 90 and 70 us products.

    Of 40 us of gradient traffic 10 are exposed on stage 0; stage 1 waits 30 us for stage 0.
    """
    path = tmp_path_factory.mktemp("stages") / "forecast.json"
    other = {
        "title": "two stages",
        "step_time_s": 100e-6,
        "low_s": 90e-6,
        "high_s": 110e-6,
        "busiest_stage": 0,
        "layout": {"tp": 2, "cp": 1, "dp": 2, "pp": 2, "ep": 1},
        "stage_ranks": [{"stage": s, "first": 4 * s, "last": 4 * s + 3} for s in (0, 1)],
        "breakdowns": [
            {"stage": 0, "seconds": {"gemm": 60e-6, "recompute": 30e-6, "data_comm": 10e-6}},
            {"stage": 1, "seconds": {"gemm": 70e-6, "bubble": 30e-6}},
        ],
        "stage_totals": [
            {
                "stage": 0,
                "communication": {"data_comm": 40e-6, "tensor_comm": 5e-6},
                "recomputed": {"gemm": 10e-6, "attention": 5e-6},
            },
            {"stage": 1, "communication": {"tensor_comm": 5e-6}, "recomputed": {}},
        ],
    }
    path.write_text(json.dumps({"traceEvents": [], "otherData": other}))
    return path


def compared(folder: Path, *words: str | Path) -> dict[str, Any]:
    """Return what a comparison says."""
    out = folder / "compared.json"
    assert main(["trace", "compare", *map(str, words), "--json", str(out)]) == 0
    record: dict[str, Any] = json.loads(out.read_text())
    return record


def rank(
    folder: Path, number: int, lengths: list[float], name: str = "rank{}.json", **said: Any
) -> Path:
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
    return write_trace(folder / name.format(number), events, rank=number, **said)


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
    assert "matrix products" in printed
    assert not {"gemm", "data_comm", "memory_bound"} & set(printed.split())


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


def test_work_that_overlaps_on_one_stream_stands_on_lanes_of_its_own(
    forecast: Path, tmp_path: Path
) -> None:
    """A graph runs 20-60 beside 10-50 on one stream; 50.3-80 begins only seemingly before 50.4."""
    events = [
        mark("ProfilerStep#0", 1000, 100),
        *(kernel(GEMM, 1010, 40.4), kernel(GEMM, 1020, 40), kernel(GEMM, 1050.3, 29.7)),
    ]
    real, out = write_trace(tmp_path / "t.json", events), tmp_path / "m.json.gz"
    assert main(["trace", "compare", str(forecast), str(real), "--out", str(out)]) == 0
    found = json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    bars = [(threads[e["tid"]], e["ts"], e["dur"]) for e in found if e["ph"] == "X"]
    assert bars == [
        ("0: stream 7", 0.0, 40.3),
        ("0: stream 7 (2)", 10.0, 40.0),
        ("0: stream 7", 40.3, 29.7),
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
    assert "SIMULATED: must be the forecast: it is a profiler's trace" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rank{}.json", "rank{}.json.gz"])
def test_arguments_in_the_wrong_order_are_refused_with_the_right_one(
    forecast: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    real = rank(tmp_path, 0, [130], name)
    order = "\n    fix: traincast trace compare SIMULATED.json REAL..., the forecast first\n"
    assert main(["trace", "compare", str(real), str(forecast)]) == 2
    first = f"{real}: SIMULATED: must be the forecast: it is a profiler's trace of a real run"
    assert capsys.readouterr().err == first + order
    assert main(["trace", "compare", str(forecast), str(forecast)]) == 2
    other = f"{forecast}: must be a trace of a real run: it is a forecast that traincast simulate"
    assert capsys.readouterr().err == f"{other} wrote{order}"


def test_a_packed_forecast_says_the_same(forecast: Path, tmp_path: Path) -> None:
    packed = tmp_path / "forecast.json.gz"
    packed.write_bytes(gzip.compress(forecast.read_bytes()))
    real = rank(tmp_path, 0, [130])
    found = [{**compared(tmp_path, each, real), "simulated": ""} for each in (forecast, packed)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("number", "world", "options", "stage"),
    [
        (1, 8, [], (0, "that of rank 1")),
        (6, 8, [], (1, "that of rank 6")),
        (6, None, [], (1, "that of rank 6")),
        (6, 16, [], (0, "the busiest")),
        (6, 8, ["--stage", "0"], (0, "as asked for")),
    ],
)
def test_a_rank_is_compared_with_its_stage(
    request: pytest.FixtureRequest,
    number: int,
    world: int | None,
    options: list[str],
    stage: tuple[int, str],
) -> None:
    folder: Path = request.getfixturevalue("tmp_path")
    said: dict[str, Any] = {} if world is None else {"world_size": world}
    real = rank(folder, number, [130], **said)
    record = compared(folder, request.getfixturevalue("stages"), real, *options)
    assert (record["stage"], record["stage_from"]) == stage
    differs = [note for note in record["notes"] if "layouts differ" in note]
    assert len(differs) == (world == 16)


def test_recomputation_counts_as_what_is_recomputed_and_hidden_traffic_is_told(
    stages: Path, tmp_path: Path
) -> None:
    """30 us of recomputation are 2:1 products and attention; of 40 us sent 10 are exposed."""
    record = compared(tmp_path, stages, rank(tmp_path, 1, [130]))
    keys = ("simulated_s", "measured_s", "simulated_busy_s", "measured_busy_s")
    rows = {
        each["name"]: tuple(None if each[k] is None else round(1e6 * each[k]) for k in keys)
        for each in record["classes"]
    }
    assert rows == {
        "gemm": (80, 100, None, 100),
        "data_comm": (10, 30, 40, 30),
        "attention": (10, None, None, None),
        "tensor_comm": (None, None, 5, None),
    }
    lost = (
        "Data-parallel communication hides less than forecast: 0.0 % of its time runs under "
        "computing, not 75.0 %."
    )
    assert lost in record["sentences"]


def test_the_median_of_all_steps_is_set_beside_the_interval_of_the_forecast(
    stages: Path, tmp_path: Path
) -> None:
    """Of 100, 110, ... 200 us the percentiles are 110 and 190; 150 is 36.4 % above 110."""
    lengths = [100 + 10.0 * each for each in range(11)]
    record = compared(tmp_path, stages, rank(tmp_path, 1, lengths))
    spread = [round(1e6 * record[key], 3) for key in ("p10_s", "median_s", "p90_s")]
    assert spread == [110.0, 150.0, 190.0]
    assert record["sentences"][1] == (
        "The median of 11 steps (150.0 us) is 36.4 % above the 80 % interval of the forecast, "
        "90.00 us to 110.0 us."
    )


def test_a_verdict_says_which_class_explains_most(
    forecast: Path, stages: Path, tmp_path: Path
) -> None:
    """Products take 30 us less than a step.

    Of 130 us they are 35 above the forecast's 65, so 5 more than the gap of 30. Of 190 us they are
    80 of 90 above. At 100 us those of the stages are 10 below, and traffic 20 above.
    """
    found = [
        compared(tmp_path, file, rank(tmp_path, 1, [length]))["sentences"]
        for file, length in ((forecast, 130), (stages, 190), (stages, 100))
    ]
    assert (found[0][1], found[1][2], found[2][2].partition(" and ")[0]) == (
        "The difference is above all matrix products; other classes make up for 5.000 us of it.",
        "Most of the difference is matrix products: 88.9 % of it.",
        "The steps agree, but differences cancel out, above all of data-parallel communication",
    )
    advised = ["What to do about matrix products: measure its" in " ".join(said) for said in found]
    assert advised == [True, True, False]


def test_where_other_stages_are_waited_for_all_of_it_is_one_class(
    stages: Path, tmp_path: Path
) -> None:
    """Stage 1 waits 30 us in the forecast; measured it transfers for 60 us of 130."""
    events = [
        mark("ProfilerStep#0", 0, 130),
        kernel(GEMM, 0, 70),
        kernel(NCCL, 70, 60, 20, **{"Process Group Name": "pp"}),
    ]
    real = write_trace(tmp_path / "t.json", events, rank=5, world_size=8)
    record = compared(tmp_path, stages, real)
    assert record["sentences"][2:4] == [
        "Most of the difference is waiting for other stages: 100.0 % of it.",
        "What to do about waiting for other stages: compare a trace of every stage: one that is "
        "slower than forecast holds the others up.",
    ]


def test_launch_gaps_are_said_with_how_many_and_how_long(forecast: Path, tmp_path: Path) -> None:
    events = [
        mark("ProfilerStep#0", 0, 200),
        *(launch(1, 0), launch(2, 100), launch(3, 150)),
        *(kernel(GEMM, 0, 90, correlation=1), kernel(GEMM, 110, 30, correlation=2)),
        kernel(GEMM, 160, 40, correlation=3),
    ]
    record = compared(tmp_path, forecast, write_trace(tmp_path / "t.json", events))
    assert record["pauses"] == [{"name": "launch", "count": 2, "longest_s": pytest.approx(20e-6)}]
    assert (
        "The device waits for the CPU's launches in 2 gaps, 40.00 us together (20.0 % of the "
        "step), the longest 20.00 us." in record["sentences"]
    )


def test_all_outputs_are_written_or_none(forecast: Path, tmp_path: Path) -> None:
    json_out, real = tmp_path / "c.json", str(rank(tmp_path, 0, [130]))
    outputs = ["--json", str(json_out), "--out", str(tmp_path / "missing" / "m.json")]
    assert main(["trace", "compare", str(forecast), real, *outputs]) == 2
    assert not json_out.exists()


@pytest.mark.parametrize("name", [*Category, OTHER, IDLE, UNKNOWN_COMM])
def test_every_class_has_words_and_advice(name: str) -> None:
    """A forecast of 1 s of other work, and 2 s of that class: it explains all of the difference."""
    forecast = TraceForecast(
        path="",
        title="",
        stage=0,
        step_time=1.0,
        low=None,
        high=None,
        seconds={"base": 1.0},
        busy={},
        events=(),
    )
    chosen = MeasuredStep(
        path="",
        rank=0,
        number=0,
        start=0.0,
        stop=3.0,
        seconds={"base": 1.0, name: 2.0},
        unclassified={},
        slices=(),
        busy={},
        collectives=(),
        pauses={},
    )
    said = list(sentences(forecast, chosen, [3.0], ()))
    assert said[1] == f"Most of the difference is {class_words(name)}: 100.0 % of it."
    assert said[2].startswith(f"What to do about {class_words(name)}: ")
    assert "_" not in "".join(said)
