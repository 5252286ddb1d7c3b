"""Rank 0 gathers what became of the other ranks' workers, and ends those that still run."""

from __future__ import annotations

from calibrate.board import lost_name, report_name, stop_name
from calibrate.crew import Crew, Ending, Report
from calibrate.pulse import RunEndedError
from calibrate.worker_messages import Task

_END_SECONDS = 60.0
"""For a supervisor to end its worker and say so."""


def collect(crew: Crew, task: Task, own: Report) -> list[Report]:
    """Return the reports of all ranks, rank 0's own first.

    Where rank 0's worker has ended by itself the others get a while to end too.

    Raises:
        RunEndedError: a rank is gone, or does not end its worker.
    """
    waiting = {rank: report_name(task.number, rank) for rank in range(1, crew.identity.world.size)}
    reports = [own]
    stopped = own.ending is not Ending.DONE
    since = crew.now()
    while True:
        texts = crew.board.read(list(waiting.values()))
        found = {rank: text for rank, text in zip(waiting, texts, strict=True) if text is not None}
        reports += [Report.model_validate_json(text) for text in found.values()]
        waiting = {rank: name for rank, name in waiting.items() if rank not in found}
        if not waiting:
            return sorted(reports, key=lambda report: report.rank)
        waited = crew.now() - since
        if not stopped and (waited > crew.patience.point or _is_lost(crew, task)):
            crew.board.post(stop_name(task.number), Ending.LATE.value)
            stopped, since = True, crew.now()
        elif stopped and waited > _END_SECONDS:
            raise RunEndedError(f"rank {min(waiting)} does not say that its worker has ended")
        crew.pulse.tick()


def _is_lost(crew: Crew, task: Task) -> bool:
    return crew.board.read([lost_name(task.number)]) != [None]
