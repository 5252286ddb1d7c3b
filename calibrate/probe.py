"""Before anything is planned: a short worker on every rank finds out what its device is."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.attend import attend
from calibrate.batches import DeviceFacts
from calibrate.board import facts_name, task_name
from calibrate.crew import Crew, Ending, Report
from calibrate.fingerprints import differences
from calibrate.pulse import RunEndedError
from calibrate.verdict import judge
from calibrate.worker_messages import Facts, Task
from simulator.errors import InputError, Problem
from simulator.files import FileRecord


class Answer(FileRecord):
    """What one rank has found out."""

    host: str
    facts: DeviceFacts | None = None
    reason: str = ""
    """Why there are no facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What all ranks have found out together."""

    facts: DeviceFacts
    """Rank 0's, with the least free memory and the lowest speed of any rank."""
    seconds: float
    """That rank 0's worker took, from its start to its end."""


def probe_all(crew: Crew, task: Task) -> Probed:
    """Return what the devices of all ranks are; for rank 0.

    Raises:
        InputError: a rank has no usable device, or not the same one as rank 0.
        RunEndedError: a rank is gone.
    """
    crew.board.post(task_name(task.number), task.model_dump_json())
    crew.await_starts()
    began = crew.now()
    answers = [probe_here(crew, task)]
    seconds = crew.now() - began
    answers += _others(crew)
    problems = [p for rank, answer in enumerate(answers) for p in _problems(rank, answer, answers)]
    if problems:
        raise InputError(*problems)
    found = [answer.facts for answer in answers if answer.facts is not None]
    facts = found[0].model_copy(
        update={
            "memory": min(each.memory for each in found),
            "flops": min(each.flops for each in found),
        }
    )
    return Probed(facts=facts, seconds=seconds)


def probe_here(crew: Crew, task: Task) -> Answer:
    """Return what this rank's device is, and post it for rank 0."""
    crew.await_starts()
    facts, report = _ask(crew, task)
    host = crew.identity.host
    if facts is not None and report.ending is Ending.DONE:
        answer = Answer(host=host, facts=facts)
    else:
        answer = Answer(host=host, reason=_reason(report))
    crew.board.post(facts_name(crew.identity.rank), answer.model_dump_json())
    return answer


def _ask(crew: Crew, task: Task) -> tuple[DeviceFacts | None, Report]:
    facts: DeviceFacts | None = None
    messages = attend(crew, task, shared=False)
    while True:
        try:
            message = next(messages)
        except StopIteration as end:
            return facts, end.value
        if isinstance(message, Facts):
            facts = message.facts


def _reason(report: Report) -> str:
    verdict = judge([report])
    return verdict.reason if verdict else f"the worker has said nothing ({report.ending})"


def _others(crew: Crew) -> list[Answer]:
    names = [facts_name(rank) for rank in range(1, crew.identity.world.size)]
    end = crew.now() + 2 * crew.patience.start
    while True:
        texts = crew.board.read(names)
        if None not in texts:
            return [Answer.model_validate_json(text) for text in texts if text is not None]
        if crew.now() > end:
            raise RunEndedError(f"rank {texts.index(None) + 1} does not say what its device is")
        crew.pulse.tick()


def _problems(rank: int, answer: Answer, answers: list[Answer]) -> list[Problem]:
    where = f"rank {rank} ({answer.host})"
    if answer.facts is None:
        return [Problem(where=where, rule="its device cannot be used", found=answer.reason)]
    first = answers[0].facts
    if first is None:
        return []
    mine = answer.facts
    if mine.device != first.device:
        rule = f"all ranks must measure the same kind of device; rank 0 has {first.device}"
        return [Problem(where=where, rule=rule, found=mine.device, fix="--device cpu")]
    unlike = differences(first.fingerprint, mine.fingerprint)
    rule = f"all ranks must be the same machine as rank 0 ({answers[0].host})"
    return [Problem(where=where, rule=rule, found="; ".join(unlike))] if unlike else []
