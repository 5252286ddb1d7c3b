"""The page of what a calibration leaves behind: lines of measurements, the output of a check."""

from __future__ import annotations

from typing import get_args

from pydantic import BaseModel

from calibrate.points import Point
from calibrate.records import FORMAT, VALUES, Header, Record
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import TrainingJob
from traincast.docs.markdown import code, page, table
from traincast.docs.records import Pages, record_sections

_KINDS: tuple[type[BaseModel], ...] = get_args(get_args(Point)[0])
_ELSEWHERE: dict[type[BaseModel], str] = {TrainingJob: "job.md", ParallelLayout: "layout.md"}
_NOTHING: frozenset[str] = frozenset()
_STATISTICS = "table or null: `count`, `median`, `mean`, `p90`, `worst` (signed), `bias` (median)"
CHECK = {
    "profile": ("text", "its name"),
    "profile_sha256": ("text", "of all that was read of it"),
    "knows_its_fit": ("`true` or `false`", "whether the profile lists the points that fitted it"),
    "families": ("list", "errors of each family of points"),
    "total": ("table", "errors of all points"),
    "points": ("list", "every record of the folder, in its order"),
    "broken_limits": ("list of text", "limits that were asked for and are not kept"),
}
FAMILY = {
    "family": ("text", "kind of point, and what its forecast depends on most"),
    "records": ("integer", "records of the family"),
    "compared": ("integer", "with both a measurement that counts and a forecast"),
    "used_by_the_fit": ("integer", "of those, seen by the fit of the profile"),
    "skipped": ("integer", "the others"),
    "noise": ("number or null", "median spread of the compared points"),
    "errors": (_STATISTICS, "of the compared points"),
    "held_out_errors": (
        _STATISTICS,
        "of those that the fit has not seen; null where that is not known",
    ),
    "memory_errors": (_STATISTICS, "of the memory peaks of steps"),
}
POINT = {
    "point": ("table", "what was measured, as above"),
    "digest": ("text", "as a profile lists it under `[[constants.fit]]` in `used`"),
    "family": ("text", "as above"),
    "words": ("text", "the point on one line"),
    "status": ("text", "as above"),
    "reason": ("text", "why it was not compared; empty where it was"),
    "used_by_the_fit": ("`true` or `false`", "whether the fit of the profile has seen it"),
    "measured_s": ("number or null", "seconds; of interference, of the kernel beside"),
    "predicted_s": ("number or null", "seconds"),
    "signed_error": ("number or null", "forecast / measured - 1"),
    "noise": ("number or null", "spread of the repeats"),
    "measured_memory_bytes": ("number or null", "peak of the allocator; steps only"),
    "predicted_memory_bytes": ("number or null", "the same, forecast"),
    "origin": ("text", "file and line of an imported record"),
}


def calibration_page() -> str:
    """Return the page of every file that calibration reads or writes."""
    points = {kind: f"#{_what(kind)}" for kind in _KINDS}
    return page(
        "Files of a calibration",
        "A folder of measurements holds `*.jsonl` files: JSON lines, each a header or a record, in "
        "the order in which they were measured. `calibrate run` and `calibrate import` append to "
        "them; `fit`, `check` and `report` read all of a folder. Times are seconds, sizes bytes. "
        "What is measured stands in a plan: [measuring-plan.md](measuring-plan.md).",
        f"Format {FORMAT}. A reader refuses a later one. A last line that was cut is repaired by "
        "`calibrate run` and skipped, with a note, by the others.",
        "## The header",
        _keys(Header, _ELSEWHERE),
        "## A record",
        _keys(Record, _ELSEWHERE | points),
        "Names in `values`, by kind of point:",
        table(["point", "values"], [[code(k), " ".join(map(code, v))] for k, v in VALUES.items()]),
        "A point says what was measured; two equal points are the same measurement.",
        *(_point(kind) for kind in _KINDS),
        "## Output of `traincast calibrate check --json`",
        "Keys are never renamed or removed without a major version; new ones may be added. Errors "
        "are fractions, |forecast / measured - 1| unless signed.",
        _output(CHECK),
        "Each of `families`, and `total`:",
        _output(FAMILY),
        "Each of `points`:",
        _output(POINT),
    )


def _output(keys: dict[str, tuple[str, str]]) -> str:
    return table(["key", "value", "meaning"], [[code(key), *words] for key, words in keys.items()])


def _point(kind: type[BaseModel]) -> str:
    return f"## {_what(kind)}\n\n{_keys(kind, _ELSEWHERE)}"


def _keys(record: type[BaseModel], elsewhere: Pages) -> str:
    pages = {other: target for other, target in elsewhere.items() if other is not record}
    return record_sections(record, pages, _NOTHING)


def _what(kind: type[BaseModel]) -> str:
    return str(kind.model_fields["what"].default)
