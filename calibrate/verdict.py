"""Why a task ended too early: from the reports of all ranks, the point that is lost and why."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.crew import Ending, Report
from calibrate.records import Status
from calibrate.worker_messages import Trouble

_WAITS_IN = "distributed_c10d"
"""Where torch waits for other ranks; a rank that hangs elsewhere keeps them waiting there."""
_FRAME = 'File "'
_OWN_LOSSES = (Ending.DIED, Ending.RAISED)
"""The surer cause first: where a worker is killed, others raise as they lose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is lost, and why."""

    index: int | None
    """Point in progress on rank 0; None where there was none."""
    status: Status
    reason: str
    started: bool
    """Whether all workers had found each other."""


def judge(reports: Sequence[Report]) -> Verdict | None:
    """Return what was lost; None where every worker ended by itself or the budget was over.

    The first report is rank 0's.
    """
    own = reports[0]
    culprit = _culprit(reports)
    started = all(report.ready for report in reports)
    if culprit is not None:
        memory = culprit.trouble is Trouble.MEMORY
        status = Status.OUT_OF_MEMORY if memory else Status.FAILED
        return Verdict(index=own.index, status=status, reason=_words(culprit), started=started)
    if any(report.ending is Ending.LATE for report in reports):
        reason = _late(own, reports) if started else _never_started(reports)
        return Verdict(index=own.index, status=Status.TIMEOUT, reason=reason, started=started)
    return None


def _culprit(reports: Sequence[Report]) -> Report | None:
    """Return the report of the rank that took the others along; None where none was lost."""
    for report in reports:
        if report.trouble in (Trouble.DISK, Trouble.MEMORY):
            return report
    for ending in _OWN_LOSSES:
        for report in reports:
            if report.ending is ending:
                return report
    return None


def _words(report: Report) -> str:
    """Return what became of a rank's worker, with its last words."""
    code = report.exit_code
    if report.reason:
        what = report.reason
    elif code is not None and code < 0:
        what = f"the process was killed by {_signal(-code)}"
    elif code == 0:
        what = "the process ended by itself before its work was done"
    else:
        what = f"the process ended with exit code {code}"
    if report.trouble is Trouble.MEMORY and report.exit_code is not None:
        what += " while the system was killing processes for lack of memory"
    return _with_lines(f"{_name(report)}: {what}", report)


def _late(own: Report, reports: Sequence[Report]) -> str:
    """Return that a point took too long, and which rank kept the others waiting."""
    suspect, why = _suspect(own, reports)
    return _with_lines(f"not done in time; {_name(suspect)} {why}", suspect)


def _suspect(own: Report, reports: Sequence[Report]) -> tuple[Report, str]:
    for report in reports:
        if report.state:
            return report, f"is {report.state}"
    for report in reports:
        if report.index != own.index:
            return report, "had not come to it"
    waiting = [_WAITS_IN in _top_frame(report) for report in reports]
    if any(waiting) and not all(waiting):
        return reports[waiting.index(False)], "kept the others waiting"
    return own, "was still at it, as all others were" if len(reports) > 1 else "was still at it"


def _never_started(reports: Sequence[Report]) -> str:
    suspect = next((report for report in reports if not report.ready), reports[0])
    missing = ", ".join(_name(report) for report in reports if not report.ready)
    return _with_lines(f"workers did not find each other in time; not ready: {missing}", suspect)


def _top_frame(report: Report) -> str:
    return next((line for line in report.lines if _FRAME in line), "")


def _name(report: Report) -> str:
    return f"rank {report.rank} ({report.host})"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _with_lines(text: str, report: Report) -> str:
    lines = " | ".join(line.strip() for line in report.lines)
    return f"{text}; last lines of its log: {lines}" if lines else f"{text}; its log is empty"
