"""What a fit reads: the records of a folder, sorted into those that count and those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.fingerprints import differences
from calibrate.journal import read_folder, read_journal
from calibrate.point_words import family_of, words_of
from calibrate.points import GemmPoint, MemoryBoundPoint
from calibrate.predict import AT_ONCE
from calibrate.records import Fingerprint, Header, Record, Status
from simulator.errors import InputError, Problem

_COUNT, _ENVIRONMENT = "accelerators_per_node", "environment"
_MACHINE = ("accelerator", "accelerator_memory", _COUNT, "backend")
"""What must agree in any case; the CPU too where there is no accelerator besides it."""
ACCEPT = "--accept-software-differences"
_SOFTWARE = ("driver", "torch", "library", _ENVIRONMENT)
OTHER_SOFTWARE = "other software than in files before it"
_IMPORT = "calibrate import"
"""How `Header.made_by` of a file begins whose environment is not known."""
_REASON_LENGTH = 300
"""Characters of a reason that are passed on; a rank's last words can be pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that was not fitted, and why."""

    record: Record
    reason: str

    def __str__(self) -> str:
        words = f"{family_of(self.record.point)}, {words_of(self.record.point)}"
        return f"{words}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The records of one machine."""

    fingerprint: Fingerprint
    """What all headers say together."""
    usable: tuple[Record, ...]
    rejected: tuple[Rejected, ...]
    files: tuple[str, ...]
    dates: tuple[str, ...]
    """Days (UTC) on which they were measured or imported, in order."""
    notes: tuple[str, ...]


def read_measurements(folder: Path, *, accept_software_differences: bool = False) -> Measurements:
    """Return the records of all files of a folder.

    Raises:
        InputError: the folder or a file cannot be read, the files are of different machines, or of
            different software where that is not accepted.
    """
    notes = list(read_folder(folder).notes)
    paths = sorted(folder.glob("*.jsonl"))
    lines = [(path, line) for path in paths for line in read_journal(path).lines]
    headers = [(path, line) for path, line in lines if isinstance(line, Header)]
    fingerprint, software = _joined(headers)
    unnamed = [path for path in paths if path not in {named for named, _ in headers}]
    notes += [f"{path}: no header says which machine this is" for path in unnamed]
    if software and not accept_software_differences:
        fix = f"measure again, keep one folder a machine, or {ACCEPT} to fit the mixture"
        raise InputError(*(Problem(where=str(folder), rule=each, fix=fix) for each in software))
    notes += [f"accepted: {each}" for each in software]
    records = [line for _, line in lines if isinstance(line, Record)]
    rejected = [Rejected(record=r, reason=why) for r in records if (why := _fault(r))]
    return Measurements(
        fingerprint=fingerprint,
        usable=tuple(record for record in records if not _fault(record)),
        rejected=tuple(rejected),
        files=tuple(path.name for path in paths),
        dates=tuple(sorted({header.at[:10] for _, header in headers})),
        notes=tuple(notes),
    )


def _joined(headers: Sequence[tuple[Path, Header]]) -> tuple[Fingerprint, list[str]]:
    """Return what the headers say together, and how their software differs.

    Raises:
        InputError: they are of different machines.
    """
    joined, software, wrong = Fingerprint(), list[str](), list[Problem]()
    said_by: dict[str, str] = {}
    for path, header in headers:
        own = _certain(header)
        machine = differences(_only(joined, _machine_of(own)), _only(own, _machine_of(own)))
        for difference in machine:
            first = said_by.get(difference.partition(" ")[0], "an earlier file")
            rule = f"is of another machine than {first}: {difference}"
            wrong.append(Problem(where=str(path), rule=rule, fix="keep one folder a machine"))
        names = _SOFTWARE if _ENVIRONMENT in said_by and not _is_import(header) else _SOFTWARE[:-1]
        other = () if machine else differences(_only(joined, names), _only(own, names))
        software += [f"{path.name}: {OTHER_SOFTWARE}: {each}" for each in other]
        added = {name: value for name, value in _known(own).items() if name not in said_by}
        if not _is_import(header):
            added.setdefault(_ENVIRONMENT, joined.environment)
        said_by = {**dict.fromkeys(added, path.name), **said_by}
        joined = joined.model_copy(update=added)
    if wrong:
        raise InputError(*wrong)
    return _with_count(joined, headers), list(dict.fromkeys(software))


def _certain(header: Header) -> Fingerprint:
    """Return what a header is sure of.

    A log counts the accelerators that its job used, not those of a node, and does not know all of
    the environment.
    """
    if not _is_import(header):
        return header.fingerprint
    return header.fingerprint.model_copy(update={_COUNT: None, _ENVIRONMENT: {}})


def _with_count(joined: Fingerprint, headers: Sequence[tuple[Path, Header]]) -> Fingerprint:
    """Return the fingerprint with the most accelerators a node of any log where no run says it."""
    if joined.accelerators_per_node is not None:
        return joined
    counts = [header.fingerprint.accelerators_per_node or 0 for _, header in headers]
    return joined.model_copy(update={_COUNT: max(counts, default=0) or None})


def _is_import(header: Header) -> bool:
    return header.made_by.startswith(_IMPORT)


def _known(fingerprint: Fingerprint) -> dict[str, object]:
    return {
        name: value
        for name in Fingerprint.model_fields
        if (value := getattr(fingerprint, name)) not in (None, {})
    }


def _machine_of(fingerprint: Fingerprint) -> tuple[str, ...]:
    return _MACHINE if fingerprint.accelerator else (*_MACHINE, "cpu")


def _only(fingerprint: Fingerprint, names: Sequence[str]) -> Fingerprint:
    return Fingerprint(**{name: getattr(fingerprint, name) for name in names})


def _fault(record: Record) -> str:
    """Return why a record does not count; empty where it does."""
    if record.status is not Status.OK:
        return ": ".join(filter(None, (record.status.value, record.reason[:_REASON_LENGTH])))
    point = record.point
    if isinstance(point, GemmPoint | MemoryBoundPoint) and point.ranks > 1:
        return AT_ONCE.format(ranks=point.ranks)
    return "" if record.seconds is not None else "no time was recorded"
