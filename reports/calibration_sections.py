"""The sections of a calibration report and of a check, in order: one line here adds one."""

from __future__ import annotations

from collections.abc import Callable

from calibrate.check import Check
from calibrate.records import Status
from calibrate.summary import Summary
from reports.calibration_errors import (
    errors_section,
    memory_section,
    skipped_section,
    worst_section,
)
from reports.calibration_facts import (
    counts_section,
    fit_section,
    machine_section,
    rates_section,
    rejected_section,
)
from reports.calibration_health import clocks_section, stragglers_section
from reports.section import Section


def report_sections(summary: Summary) -> tuple[Section, ...]:
    """Return the sections of a report; those with nothing to say are left out."""
    made = (build(summary) for build in SECTIONS.values())
    return tuple(section for section in made if section is not None)


def check_sections(check: Check) -> tuple[Section, ...]:
    """Return the sections of a check by itself."""
    made = (
        errors_section(check),
        memory_section(check),
        worst_section(check),
        skipped_section(check.points),
    )
    return tuple(section for section in made if section is not None)


def _missing(summary: Summary) -> Section | None:
    """Return why good points were not compared; the others have a section of their own."""
    return skipped_section([p for p in summary.check.points if p.record.status is Status.OK])


SECTIONS: dict[str, Callable[[Summary], Section | None]] = {
    "machine": machine_section,
    "points": counts_section,
    "stragglers": stragglers_section,
    "errors": lambda summary: errors_section(summary.check, summary.base_check),
    "memory": lambda summary: memory_section(summary.check),
    "rates": rates_section,
    "constants": fit_section,
    "worst": lambda summary: worst_section(summary.check),
    "rejected": rejected_section,
    "missing": _missing,
    "clocks": clocks_section,
}
"""In the order of a report."""
