"""Sections about the health of what was measured: slow ranks and links, clocks, throttling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrate.summary import Summary
from reports.quantities import number
from reports.section import NONE, Section, facts_section, figures, words

MOST = 40
"""Lines of a list."""
_GHZ = 1e9


def stragglers_section(summary: Summary) -> Section | None:
    """Return the ranks and links that are slower than the others, the slowest first."""
    ranks, pairs = summary.stragglers.ranks[:MOST], summary.stragglers.pairs[:MOST]
    if not ranks and not pairs:
        return None
    names = [f"rank {slow.rank}, {slow.part}" for slow in ranks]
    names += [f"ranks {slow.first} and {slow.second}, link between them" for slow in pairs]
    factors = [slow.factor for slow in ranks] + [slow.factor for slow in pairs]
    return Section(
        title="Slow ranks and links",
        text=("Times over those of the typical rank or pair, beyond the scatter of the others.",),
        columns=(
            words("where", names),
            figures("times as long", [number(factor, 3) for factor in factors]),
        ),
    )


def clocks_section(summary: Summary) -> Section | None:
    """Return clocks, power, heat and throttling while points ran."""
    notes = summary.clocks
    if notes is None:
        return None
    gpu = summary.profile.accelerator
    known = (
        ("points with clocks", str(notes.records)),
        ("clock, median", _ghz(notes.clock)),
        ("clock, lowest", _ghz(notes.slowest_clock)),
        ("clock, nominal", _ghz(gpu.clock)),
        ("power, highest mean", _unit(notes.power, "W")),
        ("power, limit", _unit(gpu.power, "W")),
        ("temperature, highest", _unit(notes.temperature, "C")),
        ("uncorrected ECC errors", _unit(notes.ecc_errors, "")),
    )
    throttled = _throttled(notes.throttled, notes.records)
    return facts_section("Clocks and power", [*known, *throttled])


def _throttled(reasons: Mapping[str, int], records: int) -> Sequence[tuple[str, str]]:
    return [
        (f"throttled: {reason}", f"{count} of {records} points")
        for reason, count in sorted(reasons.items())
    ]


def _ghz(value: float | None) -> str:
    return NONE if value is None else f"{number(value / _GHZ)} GHz"


def _unit(value: float | None, unit: str) -> str:
    return NONE if value is None else f"{number(value)} {unit}".strip()
