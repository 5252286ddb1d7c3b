"""A run as rank 0 leads it: who is there, what the machine is, what to measure, and the batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from calibrate.batches import Batch, DeviceFacts
from calibrate.board import host_name, task_name
from calibrate.crew import Crew
from calibrate.fingerprints import differences
from calibrate.follow import END
from calibrate.kept_facts import keep_facts
from calibrate.lead import Lead, measure_batch
from calibrate.ledger import Ledger
from calibrate.losses import expected_seconds
from calibrate.plan import expand, load_plan
from calibrate.probe import probe_all
from calibrate.pulse import RunEndedError
from calibrate.records import Fingerprint, Header, Status
from calibrate.run_events import Event, Finished, LeftOut, Note, Planned
from calibrate.run_settings import RunSettings
from calibrate.worker_messages import Task
from simulator.errors import InputError, Problem

_USABLE = (Status.OK,)
"""What a fit takes."""


def lead_run(crew: Crew, settings: RunSettings, notes: Sequence[str]) -> Iterator[Event]:
    """Measure a plan with all ranks, and yield what happens.

    Raises:
        InputError: wrong settings, another machine than the folder's, a full disk.
        RunEndedError: a rank is gone.
    """
    began = crew.now()
    plan = load_plan(settings.plan)
    ledger = Ledger(path=Path(crew.journal), retry=settings.retry)
    yield from map(_note, (*notes, *ledger.begin()))
    _await_all(crew)
    probed = probe_all(crew, Task(number=0, device=settings.device))
    fingerprint = _fingerprint(probed.facts, crew, settings)
    _check_machine(ledger, fingerprint)
    facts = keep_facts(settings.folder, probed.facts)
    batches = expand(plan, crew.identity.world, facts, settings.model)
    planned = _planned(batches, ledger, fingerprint)
    yield planned
    if planned.points or not ledger.headers:
        ledger.add(_header(settings, fingerprint))
    lead = Lead(
        crew=crew,
        ledger=ledger,
        device=probed.facts.device,
        backend=fingerprint.backend or "",
        limits=plan.limits,
        deadline=None if settings.budget is None else began + settings.budget,
        start_seconds=probed.seconds,
        number=1,
    )
    yield from _measure(lead, batches, settings, began)
    crew.board.post(task_name(lead.number), END)


def _measure(
    lead: Lead, batches: Sequence[Batch], settings: RunSettings, began: float
) -> Iterator[Event]:
    left_out = 0
    for batch in batches:
        for event in measure_batch(lead, batch):
            if isinstance(event, LeftOut):
                left_out += event.points
            yield event
    records = lead.ledger.records.values()
    yield Finished(
        folder=str(settings.folder),
        journal=str(lead.ledger.path),
        seconds=lead.crew.now() - began,
        counts=lead.ledger.counts(),
        left_out=left_out,
        fitted=sum(record.status in _USABLE for record in records),
    )


def _await_all(crew: Crew) -> None:
    """Return when every rank has said on which host it is.

    Raises:
        RunEndedError: some never came; it names them.
    """
    names = [host_name(rank) for rank in range(crew.identity.world.size)]
    end = crew.now() + crew.patience.start
    while None in (texts := crew.board.read(names)):
        if crew.now() > end:
            missing = ", ".join(str(rank) for rank, text in enumerate(texts) if text is None)
            seconds = crew.patience.start
            raise RunEndedError(f"within {seconds:.0f} s these ranks did not come: {missing}")
        crew.pulse.tick()


def _fingerprint(facts: DeviceFacts, crew: Crew, settings: RunSettings) -> Fingerprint:
    """Return the machine's fingerprint with what only the ranks together know."""
    world = crew.identity.world
    backend = settings.backend_of(facts.device) if world.size > 1 else None
    return facts.fingerprint.model_copy(
        update={"backend": backend, "world_size": world.size, "nodes": world.nodes}
    )


def _check_machine(ledger: Ledger, fingerprint: Fingerprint) -> None:
    """Refuse to mix machines in a folder."""
    for header in ledger.headers:
        unlike = differences(header.fingerprint, fingerprint)
        if unlike:
            raise InputError(
                Problem(
                    where=str(ledger.path),
                    rule="a folder holds one machine and one set of libraries",
                    found=f"measured on {header.at[:10]} and now: " + "; ".join(unlike),
                    fix="another folder with --out, or the same environment as then",
                )
            )


def _planned(batches: Sequence[Batch], ledger: Ledger, fingerprint: Fingerprint) -> Planned:
    points = [point for batch in batches for point in batch.points]
    todo = [point for point in points if not ledger.has(point)]
    return Planned(
        machine=fingerprint.accelerator or fingerprint.cpu or "this machine",
        points=len(todo),
        done=len(points) - len(todo),
        seconds=sum(_seconds(batch, ledger) for batch in batches),
    )


def _seconds(batch: Batch, ledger: Ledger) -> float:
    """Return what a batch should take: its points to measure, and the start of its workers."""
    todo = [index for index, point in enumerate(batch.points) if not ledger.has(point)]
    start = batch.seconds - expected_seconds(batch, range(len(batch.points)))
    return expected_seconds(batch, todo) + max(0.0, start) if todo else 0.0


def _header(settings: RunSettings, fingerprint: Fingerprint) -> Header:
    return Header(
        traincast=_version(),
        made_by=settings.made_by,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        fingerprint=fingerprint,
    )


def _version() -> str:
    try:
        return version("traincast")
    except PackageNotFoundError:
        return "not installed"


def _note(text: str) -> Note:
    return Note(text=text)
