"""Sections about what a calibration measured: the machine, the points, rates, constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrate.rates import RateUnit
from calibrate.records import Fingerprint, Status
from calibrate.summary import Rated, Summary
from reports.quantities import gibibytes, number, percent
from reports.section import NONE, Section, facts_section, figures, share, words
from simulator.units import GB, TERA

MOST = 40
"""Lines of a list; the rest is counted."""
_GIGA, _MEGA = 1e9, 1e6
_RATE_UNITS = {
    RateUnit.BYTES: ((GB, "GB/s"), (_MEGA, "MB/s")),
    RateUnit.FLOPS: ((TERA, "TFLOP/s"), (_GIGA, "GFLOP/s")),
}
"""The largest first; the last one serves all that is smaller."""


def machine_section(summary: Summary) -> Section | None:
    """Return what was measured, when and with what."""
    if not summary.headers:
        return None
    first = summary.headers[0]
    makers = dict.fromkeys(header.made_by for header in summary.headers)
    facts = [("made by", maker) for maker in list(makers)[:MOST]]
    facts += [("begun", first.at), ("traincast", first.traincast)]
    facts += _machine([header.fingerprint for header in summary.headers])
    return facts_section("What was measured", facts, summary.notes)


def counts_section(summary: Summary) -> Section:
    """Return how many points of each family there are, and what became of them."""
    counts = summary.counts
    if not counts:
        return Section(title="Points", text=("The folder holds no measured point.",))
    seen = [kind for kind in Status if any(kind in found for found in counts.values())]
    columns = [
        figures(str(kind), [str(found.get(kind, 0)) for found in counts.values()]) for kind in seen
    ]
    return Section(title="Points", columns=(words("family", list(counts)), *columns))


def fit_section(summary: Summary) -> Section:
    """Return the blocks of constants of the profile and how they were come by."""
    records = summary.profile.constants.fit
    return Section(
        title=f"Constants of {summary.profile.name}",
        columns=(
            words("block", [record.what for record in records]),
            words("origin", [str(record.origin) for record in records]),
            figures("points", [str(record.points or NONE) for record in records]),
            figures("held-out median", [share(r.held_out_median_error) for r in records]),
            figures("p90", [share(record.held_out_p90_error) for record in records], 1),
            words("least certain", [_widest(record.uncertainty) for record in records], 2),
            words("source", [record.source for record in records], 3),
        ),
    )


def rates_section(summary: Summary) -> Section | None:
    """Return the best rate of each family beside the data sheet's and the fit's."""
    best: dict[str, Rated] = {}
    for rated in summary.rated:
        other = best.setdefault(rated.checked.family, rated)
        if rated.rate.value > other.rate.value:
            best[rated.checked.family] = rated
    if not best:
        return None
    rows = list(best.values())
    return Section(
        title="Best rates and the data sheet",
        text=(
            "Collectives: bus bandwidth as nccl-tests counts it, beside the rate of the link that "
            "limits it, which reduction inside the switch can exceed. Kernels: FLOP/s beside the "
            "dense peak, bytes/s beside the memory's.",
        ),
        columns=(
            words("family", list(best)),
            figures("measured", [_rate(row.rate.value, row) for row in rows]),
            figures("nominal", [_rate(row.rate.nominal, row) for row in rows], 1),
            figures("share", [share(row.rate.share) for row in rows]),
            figures("forecast", [_rate(row.fitted, row) for row in rows], 2),
            words("at", [row.checked.words for row in rows], 3),
        ),
    )


def rejected_section(summary: Summary) -> Section | None:
    """Return the points that do not count, each with its reason."""
    points = summary.not_counted
    if not points:
        return None
    shown = points[:MOST]
    rest = len(points) - len(shown)
    return Section(
        title="Points that do not count",
        text=(f"and {rest} more in the files of the folder",) if rest else (),
        columns=(
            words("family", [point.family for point in shown]),
            words("point", [point.words for point in shown], 2),
            words("origin", [point.record.origin or NONE for point in shown], 3),
            words("why", [point.reason for point in shown]),
        ),
    )


def rate_words(value: float, kind: RateUnit) -> str:
    """Return a rate in the unit in which it is easily read.

    >>> rate_words(2.5e9, RateUnit.BYTES), rate_words(25e9, RateUnit.FLOPS)
    ('2.500 GB/s', '25.00 GFLOP/s')
    """
    units = _RATE_UNITS[kind]
    size, unit = next((each for each in units if value >= each[0]), units[-1])
    return f"{number(value / size)} {unit}"


def _machine(found: Sequence[Fingerprint]) -> list[tuple[str, str]]:
    """Return what fingerprints say, each different value once."""
    known = [_fingerprint(each) for each in found]
    names = dict.fromkeys(name for each in known for name in each)
    return [
        (name, "; ".join(dict.fromkeys(each[name] for each in known if name in each)))
        for name in names
    ]


def _fingerprint(found: Fingerprint) -> dict[str, str]:
    memory = found.accelerator_memory
    known = {
        "accelerator": found.accelerator,
        "its memory": None if memory is None else f"{gibibytes(memory)} GiB",
        "accelerators a node": found.accelerators_per_node,
        "nodes": found.nodes,
        "ranks": found.world_size,
        "backend": found.backend,
        "its library": found.library,
        "driver": found.driver,
        "torch": found.torch,
        "CPU": found.cpu,
        "system": found.kernel,
    }
    facts = {name: str(value) for name, value in known.items() if value is not None}
    return facts | dict(sorted(found.environment.items()))


def _widest(uncertainty: Mapping[str, float]) -> str:
    if not uncertainty:
        return NONE
    name = max(uncertainty, key=lambda each: uncertainty[each])
    return f"{name} {percent(uncertainty[name])}"


def _rate(value: float | None, row: Rated) -> str:
    return NONE if value is None else rate_words(value, row.rate.unit)
