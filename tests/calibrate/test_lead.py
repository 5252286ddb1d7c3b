"""What rank 0 does with workers that end well, hang, die, run out of memory or out of time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from calibrate.crew import Ending, Report
from calibrate.journal import read_journal
from calibrate.lead import measure_batch
from calibrate.points import HostCopyPoint
from calibrate.pulse import InterruptedRunError, RunEndedError
from calibrate.records import Record, Status
from calibrate.run_events import LeftOut, Note, PointEnded
from calibrate.worker_messages import Begun, Failed, Job, Ready, Trouble
from simulator.errors import InputError
from tests.calibrate.fake_crew import Script, Stage, batch, does, does_all


def recorded(folder: Path) -> list[tuple[float, Status]]:
    """Bytes and status of every record, in the order of the file."""
    lines = read_journal(folder / "measured.jsonl").lines
    found = []
    for line in lines:
        assert isinstance(line, Record)
        assert isinstance(line.point, HostCopyPoint)
        found.append((line.point.bytes, line.status))
    return found


def hangs_at(count: int) -> object:
    """A worker that does `count` points and hangs in the next one."""

    def script(job: Job) -> Script:
        done = does(job, count)
        return [*done, (done[-1][0], Begun(index=job.task.todo[count]))]

    return script


def fails_at(count: int, trouble: Trouble) -> object:
    """A worker that does `count` points and gives up in the next one."""

    def script(job: Job) -> Script:
        done = does(job, count)
        at = done[-1][0]
        failed = Failed(trouble=trouble, reason="no memory is left")
        return [*done, (at, Begun(index=job.task.todo[count])), (at + 1, failed)]

    return script


def never_ready(job: Job) -> Script:
    return []


def run(stage: Stage, count: int = 3) -> list[object]:
    return list(measure_batch(stage.lead(), batch(count)))


def test_all_points_of_a_batch_are_measured_by_one_worker(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [does_all])
    run(stage)
    assert (recorded(tmp_path), stage.workers[0].ended) == (
        [(1, "ok"), (2, "ok"), (3, "ok")],
        True,
    )


def test_a_hung_point_is_marked_and_the_rest_goes_on_in_a_new_worker(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [hangs_at(1), does_all])
    run(stage)
    assert recorded(tmp_path) == [(1, "ok"), (2, "timeout"), (3, "ok")]


def test_a_point_hangs_when_it_is_over_its_limit_by_a_tick(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [hangs_at(0), does_all])
    events = measure_batch(stage.lead(), batch(2))
    lost = next(e for e in events if isinstance(e, PointEnded))
    # Ready after 1 s, then 10 s of patience and 5 times the expected second.
    assert (lost.record.status, round(stage.clock.now())) == (Status.TIMEOUT, 16)


def test_a_hung_worker_says_where_it_is_before_it_is_ended(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [hangs_at(0), does_all])
    (lost, *_) = [e for e in run(stage) if isinstance(e, PointEnded)]
    assert lost.record.reason == (
        "not done in time; rank 0 (host0) was still at it; last lines of its log: "
        'File "measure.py", line 1 in measure'
    )


def test_out_of_memory_caps_the_larger_points_of_the_family(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [fails_at(1, Trouble.MEMORY)])
    run(stage, 4)
    assert recorded(tmp_path) == [(1, "ok"), (2, "oom"), (3, "oom"), (4, "oom")]


def test_three_lost_points_give_up_the_rest_of_a_batch(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [fails_at(0, Trouble.RAISED)] * 3)
    run(stage, 5)
    lines = read_journal(tmp_path / "measured.jsonl").lines
    reasons = [line.reason[:27] for line in lines if isinstance(line, Record)]
    assert reasons == ["rank 0 (host0): no memory i"] * 3 + ["given up: 3 points were los"] * 2


def test_a_worker_that_ends_without_a_word_loses_its_point(tmp_path: Path) -> None:
    def dies(job: Job) -> Script:
        return [(1.0, Ready()), (1.0, Begun(index=0)), (2.0, -9)]

    stage = Stage(tmp_path, [dies, does_all])
    (lost, *_) = [e for e in run(stage) if isinstance(e, PointEnded)]
    assert lost.record.reason == (
        "rank 0 (host0): the process was killed by SIGKILL; its log is empty"
    )


def test_workers_that_do_not_start_give_up_the_batch_after_two_tries(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [never_ready, never_ready])
    run(stage)
    assert recorded(tmp_path) == [(1, "failed"), (2, "failed"), (3, "failed")]


def test_a_full_disk_ends_the_run_and_says_that_nothing_is_lost(tmp_path: Path) -> None:
    def full(job: Job) -> Script:
        failed = Failed(trouble=Trouble.DISK, reason="No space left on device", errno=28)
        return [*does(job, 2), (4.0, failed)]

    with pytest.raises(InputError, match="disk is full; nothing is lost: 2 points are on disk"):
        run(Stage(tmp_path, [full]))


def test_points_with_a_record_are_not_measured_again(tmp_path: Path) -> None:
    run(Stage(tmp_path, [hangs_at(1), does_all]))
    again = Stage(tmp_path, [])
    run(again)
    assert again.jobs == []


def test_retry_measures_what_was_lost_and_only_that(tmp_path: Path) -> None:
    run(Stage(tmp_path, [hangs_at(1), does_all]))
    again = Stage(tmp_path, [does_all])
    lead = again.lead()
    lead.ledger.retry = True
    list(measure_batch(lead, batch(3)))
    assert again.jobs[0].task.todo == (1,)


def test_retry_measures_noisy_points_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [does_all])
    ledger = stage.lead().ledger
    for point, status in zip(batch(2).points, (Status.OK, Status.NOISY), strict=True):
        ledger.add(Record(point=point, status=status, seconds=1.0))
    again = stage.lead()
    again.ledger.retry = True
    list(measure_batch(again, batch(2)))
    assert stage.jobs[0].task.todo == (1,)


def test_retry_of_a_point_that_is_lost_again_ends(tmp_path: Path) -> None:
    run(Stage(tmp_path, [hangs_at(0)]), 1)
    again = Stage(tmp_path, [hangs_at(0)])
    lead = again.lead()
    lead.ledger.retry = True
    list(measure_batch(lead, batch(1)))
    assert recorded(tmp_path) == [(1, "timeout")]


def test_a_batch_that_cannot_begin_in_the_budget_is_left_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [], budget=1.5)
    assert run(stage) == [LeftOut(batch="all", points=3, expected=3.0)]


def test_the_budget_ends_a_point_that_takes_longer_than_it_should(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [hangs_at(1)], budget=5.0)
    events = run(stage)
    # At 5 s the budget is over, and the point may take 5 times its second more.
    assert (recorded(tmp_path), events[-1], round(stage.clock.now())) == (
        [(1, "ok")],
        LeftOut(batch="all", points=2, expected=2.0),
        10,
    )


def test_a_signal_ends_the_worker(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [hangs_at(0)])
    events = measure_batch(stage.lead(), batch(1))
    next(events)
    next(events)
    stage.signal = "SIGTERM"
    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        list(events)
    assert stage.workers[0].ended


@dataclass
class OtherRank:
    """A board on which rank 1 beats, and reports once rank 0 has stopped or all is done."""

    report: Report
    dead_after: int | None = None
    """Beats after which it is silent."""
    lost_after: int | None = None
    """Looks of rank 0 after which this rank has lost its worker."""
    looks: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    beats: int = 0

    def post(self, name: str, text: str) -> None:
        self.texts[name] = text

    def read(self, names: Sequence[str]) -> list[str | None]:
        return [self._one(name) for name in names]

    def _one(self, name: str) -> str | None:
        if name == "beat/1":
            if self.dead_after is None or self.beats < self.dead_after:
                self.beats += 1
            return str(self.beats)
        if name.startswith("lost/") and self.lost_after is not None:
            self.looks += 1
            return "died" if self.looks > self.lost_after else None
        if name.startswith("report/") and self.dead_after is None:
            return self.report.model_dump_json()
        return {"host/1": "host1", **self.texts}.get(name)


LOOKS = 15
"""Rank 0 looks every tenth of a second: half a second into the first point."""


def report_of(ending: Ending, **changes: object) -> Report:
    plain = {"rank": 1, "host": "host1", "ending": ending, "ready": True}
    return Report.model_validate({**plain, **changes})


def test_a_dead_rank_is_named_with_its_last_lines(tmp_path: Path) -> None:
    report = report_of(Ending.DIED, exit_code=-9, lines=("the end",))
    board = OtherRank(report, lost_after=LOOKS)
    stage = Stage(tmp_path, [hangs_at(0), hangs_at(0), hangs_at(0)], size=2, board=board)
    (lost, *_) = [e for e in run(stage) if isinstance(e, PointEnded)]
    assert lost.record.reason == (
        "rank 1 (host1): the process was killed by SIGKILL; last lines of its log: the end"
    )


def test_a_loss_elsewhere_stops_the_other_ranks_at_once(tmp_path: Path) -> None:
    board = OtherRank(report_of(Ending.DIED, exit_code=-9), lost_after=LOOKS)
    stage = Stage(tmp_path, [hangs_at(0)], size=2, board=board)
    events = measure_batch(stage.lead(), batch(1))
    list(events)
    assert (board.texts["stop/1"], stage.clock.now() < 2.0) == ("stopped", True)


def test_a_rank_that_hung_in_a_signal_is_named(tmp_path: Path) -> None:
    board = OtherRank(report_of(Ending.STOPPED, state="stopped", index=0))
    stage = Stage(tmp_path, [hangs_at(0), does_all], size=2, board=board)
    (lost, *_) = [e for e in run(stage) if isinstance(e, PointEnded)]
    assert (lost.record.status, lost.record.reason) == (
        "timeout",
        "not done in time; rank 1 (host1) is stopped; its log is empty",
    )


def test_a_silent_rank_ends_the_run(tmp_path: Path) -> None:
    board = OtherRank(report_of(Ending.DONE), dead_after=2)
    stage = Stage(tmp_path, [hangs_at(0)], size=2, board=board)
    with pytest.raises(RunEndedError, match=r"rank 1 \(host1\) gave no sign of life for 5 s"):
        run(stage)
    assert stage.workers[0].ended


def test_batches_of_all_ranks_are_given_up_when_workers_never_meet(tmp_path: Path) -> None:
    board = OtherRank(report_of(Ending.STOPPED, ready=False))
    stage = Stage(tmp_path, [never_ready, never_ready], size=2, board=board)
    lead = stage.lead()
    list(measure_batch(lead, batch(1)))
    later = batch(2, name="later")
    ended = [e for e in measure_batch(lead, later) if isinstance(e, PointEnded)]
    assert [e.record.reason.split(":")[0] for e in ended] == ["given up"]


def test_a_batch_for_one_rank_is_not_posted(tmp_path: Path) -> None:
    board = OtherRank(report_of(Ending.DONE))
    stage = Stage(tmp_path, [does_all, does_all], size=2, board=board)
    lead = stage.lead()
    list(measure_batch(lead, batch(1, name="one", ranks="one")))
    list(measure_batch(lead, batch(2)))
    posted = [name for name in board.texts if name.startswith("task/")]
    # The others count tasks themselves: the first that they are given is number 1.
    assert posted == ["task/1"]


def test_a_worker_lost_between_points_loses_none(tmp_path: Path) -> None:
    def dies_between(job: Job) -> Script:
        return [*does(job, 1), (2.5, -11)]

    stage = Stage(tmp_path, [dies_between, does_all])
    notes = [e.text for e in run(stage) if isinstance(e, Note)]
    assert (recorded(tmp_path), notes) == (
        [(1, "ok"), (2, "ok"), (3, "ok")],
        [
            "all: workers were lost between points: rank 0 (host0): the process was killed by "
            "SIGSEGV; its log is empty"
        ],
    )


def test_a_line_that_a_killed_worker_has_cut_is_repaired_and_measured_again(tmp_path: Path) -> None:
    def cuts(job: Job) -> Script:
        with (tmp_path / "measured.jsonl").open("a") as file:
            file.write('{"line":"record","poi')
        return [(1.0, Ready()), (1.0, -9)]

    stage = Stage(tmp_path, [cuts, does_all])
    notes = [e.text for e in run(stage) if isinstance(e, Note)]
    assert "line 1 was cut; its 21 bytes are kept in measured.jsonl.broken" in notes[0]
    assert len((tmp_path / "measured.jsonl").read_text().splitlines()) == 3


def test_every_job_holds_all_that_a_worker_needs_as_json(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [does_all])
    run(stage)
    text = stage.jobs[0].model_dump_json()
    assert Job.model_validate_json(text) == stage.jobs[0]
    assert json.loads(text)["task"]["todo"] == [0, 1, 2]
