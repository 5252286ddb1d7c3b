"""Verdicts, families of points, and what a run shows of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.crew import Ending, Report
from calibrate.point_sizes import is_larger
from calibrate.points import (
    CollectivePoint,
    Direction,
    GemmPoint,
    HostCopyPoint,
    LayerPart,
    LayerPoint,
    Point,
)
from calibrate.records import Record, Status
from calibrate.run_events import LeftOut, Note, Planned, PointEnded
from calibrate.run_settings import RunSettings
from calibrate.verdict import judge
from calibrate.worker_messages import Trouble
from simulator.hardware.accelerator import Dtype
from simulator.parallel.groups import Collective
from traincast.cli import main
from traincast.commands.run_screen import LineScreen, Pace

IN_COLLECTIVE = '  File "torch/distributed/distributed_c10d.py", line 9 in wait'
IN_SLEEP = '  File "measure.py", line 3 in prepare'


def report(rank: int, ending: Ending, **changes: object) -> Report:
    plain = {"rank": rank, "host": f"h{rank}", "ending": ending, "ready": True, "index": 4}
    return Report.model_validate({**plain, **changes})


def reason(*reports: Report) -> str:
    verdict = judge(reports)
    assert verdict is not None
    return verdict.reason


def test_nothing_is_lost_where_all_have_ended_by_themselves() -> None:
    assert judge([report(0, Ending.DONE), report(1, Ending.DONE)]) is None


def test_a_killed_rank_is_the_cause_of_errors_elsewhere() -> None:
    found = reason(
        report(0, Ending.RAISED, reason="connection closed by peer"),
        report(1, Ending.DIED, exit_code=-9),
    )
    assert found == "rank 1 (h1): the process was killed by SIGKILL; its log is empty"


def test_a_rank_without_memory_is_the_cause_of_what_else_died() -> None:
    verdict = judge(
        [
            report(0, Ending.DIED, exit_code=-6),
            report(1, Ending.RAISED, trouble=Trouble.MEMORY, reason="out of memory"),
        ]
    )
    assert verdict is not None
    assert (verdict.status, verdict.reason[:9]) == (Status.OUT_OF_MEMORY, "rank 1 (h")


def test_the_rank_that_is_not_in_a_collective_kept_the_others_waiting() -> None:
    found = reason(
        report(0, Ending.LATE, lines=(IN_COLLECTIVE,)),
        report(1, Ending.STOPPED, lines=(IN_SLEEP,)),
        report(2, Ending.STOPPED, lines=(IN_COLLECTIVE,)),
    )
    assert found.startswith("not done in time; rank 1 (h1) kept the others waiting;")


def test_a_rank_that_had_not_come_to_the_point_is_named() -> None:
    found = reason(report(0, Ending.LATE), report(1, Ending.STOPPED, index=3))
    assert found.startswith("not done in time; rank 1 (h1) had not come to it;")


def test_ranks_that_never_came_are_named() -> None:
    found = reason(
        report(0, Ending.LATE, ready=False, index=None),
        report(1, Ending.STOPPED, ready=False, index=None),
    )
    assert found.startswith("workers did not find each other in time; not ready: rank 0 (h0), ran")


def gemm(m: int, dtype: Dtype = Dtype.BF16) -> Point:
    return GemmPoint(dtype=dtype, m=m, n=64, k=64)


def collective(size: float, ranks: int = 2) -> Point:
    return CollectivePoint(collective=Collective.ALL_REDUCE, ranks=ranks, nodes=1, bytes=size)


def layer(micro_batch: int, seq: int = 128) -> Point:
    return LayerPoint(
        part=LayerPart.LAYER, model="m", micro_batch=micro_batch, seq=seq, dtype=Dtype.BF16
    )


@pytest.mark.parametrize(
    ("point", "than", "larger"),
    [
        (gemm(128), gemm(64), True),
        (gemm(64), gemm(128), False),
        (gemm(128, Dtype.FP8), gemm(64), False),
        (collective(2e6), collective(1e6), True),
        (collective(2e6, ranks=8), collective(1e6), False),
        (layer(4), layer(2), True),
        (layer(4, seq=256), layer(2), False),
        (gemm(128), HostCopyPoint(direction=Direction.TO_HOST, bytes=1.0), False),
    ],
)
def test_larger_points_of_a_family(point: Point, than: Point, larger: bool) -> None:
    assert is_larger(point, than=than) is larger


def test_rccl_is_what_torch_calls_nccl() -> None:
    assert RunSettings(folder=Path(), backend="rccl").backend_of("cuda") == "nccl"


@pytest.mark.parametrize(("device", "backend"), [("cuda", "nccl"), ("cpu", "gloo")])
def test_the_backend_follows_the_device(device: str, backend: str) -> None:
    assert RunSettings(folder=Path()).backend_of(device) == backend


def ended(expected: float, **changes: object) -> PointEnded:
    record = Record.model_validate({"point": gemm(64), "seconds": 1e-3, "spread": 0.01, **changes})
    return PointEnded(record=record, expected=expected)


def test_the_time_left_follows_the_pace_so_far() -> None:
    pace = Pace()
    pace.note(Planned(machine="m", points=4, done=0, seconds=40.0))
    pace.note(ended(10.0))
    pace.note(LeftOut(batch="b", points=1, expected=10.0))
    # 10 of 30 s are done, in 20 s: the other 20 s take 40 s.
    assert pace.left(pace.began + 20.0) == pytest.approx(40.0)


def test_piped_output_is_one_line_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    shown = LineScreen()
    shown.show(Planned(machine="m", points=2, done=1, seconds=40.0))
    shown.show(ended(10.0))
    shown.show(ended(10.0, seconds=None, status=Status.TIMEOUT, reason="not done"))
    shown.show(Note(text="a word"))
    assert capsys.readouterr().err == (
        "m: 2 points to measure, 1 done before, about 40 s\n"
        "[1/2] gemm bf16 64 x 64 x 64, forward: 1.000 ms, spread 1.0 %\n"
        "[2/2] gemm bf16 64 x 64 x 64, forward: timeout: not done\n"
        "note: a word\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "5"], "--budget: must be a number and a unit"),
        (["--device", "gpu"], "--device: must be cpu or cuda"),
        (["--point-limit", "0 s"], "--point-limit: must be greater than 0"),
    ],
)
def test_wrong_options_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], words: str
) -> None:
    pytest.importorskip("torch")
    code = main(["calibrate", "run", "--out", str(tmp_path / "out"), *options])
    assert (code, words in capsys.readouterr().err) == (2, True)


def test_an_unknown_plan_is_told_before_anything_is_started(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    code = main(["calibrate", "run", "--out", str(tmp_path / "out"), "--plan", "qiuck"])
    assert (code, "did you mean 'quick'?" in capsys.readouterr().err) == (2, True)
