"""The sections of a fit: its blocks, the check on held-out points, what was rejected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrate.fit import Fitted
from calibrate.fit_blocks import Block, summary_of
from calibrate.log_fit import Array
from reports.section import Section, facts_section, figures, share, words

_SHOWN = 20
"""Records that are listed one by one."""


def fit_sections(fitted: Fitted) -> tuple[Section, ...]:
    """Return what a fit found as sections."""
    made = (
        _blocks(fitted),
        _uncertainty(fitted),
        _check(fitted),
        _rejected(fitted),
        _notes(fitted),
    )
    return tuple(section for section in made if section is not None)


def fit_table(fitted: Fitted) -> dict[str, Any]:
    """Return what a fit found as a record for JSON; errors are |predicted / measured - 1|."""
    check = fitted.check
    return {
        "profile": fitted.profile.name,
        "sha256": fitted.profile.sha256,
        "base": fitted.base,
        "spread": fitted.profile.constants.spread,
        "blocks": [_block(block) for block in fitted.blocks],
        "held_out": None
        if check is None
        else {
            "points": check.points,
            "median": check.median,
            "p90": check.p90,
            "base_median": check.default_median,
            "base_p90": check.default_p90,
        },
        "rejected": [
            {"point": each.record.point.model_dump(mode="json"), "reason": each.reason}
            for each in fitted.rejected
        ],
        "notes": list(fitted.notes),
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "name": block.name,
        "points": len(block.records),
        "fitted": block.is_fitted,
        "left_out": _errors(block.judgement.fitted),
        "left_out_base": _errors(block.judgement.default),
        "held_out": _errors(block.held_out),
        "held_out_base": _errors(block.default_held_out),
        "uncertainty": block.uncertainty,
    }


def _errors(values: Array) -> dict[str, float] | None:
    summary = summary_of(values)
    if summary is None:
        return None
    return {"points": int(values.size), "median": summary[0], "p90": summary[1]}


def _blocks(fitted: Fitted) -> Section:
    blocks = fitted.blocks
    return Section(
        title=f"Fit of {fitted.profile.name}, from {fitted.base}",
        text=(
            "left-out: errors on points left out in turn; base: those of the base's constants on "
            "the same points; held-out: on a random fifth that only the check has seen",
        ),
        columns=(
            words("block", [block.name for block in blocks]),
            figures("points", [str(len(block.records)) for block in blocks]),
            words("constants", ["fitted" if block.is_fitted else "kept" for block in blocks]),
            *_error_columns("left-out", [block.judgement.fitted for block in blocks], rank=0),
            *_error_columns("base", [block.judgement.default for block in blocks], rank=1),
            *_error_columns("held-out", [block.held_out for block in blocks], rank=2),
        ),
    )


def _error_columns(name: str, errors: list[Array], *, rank: int) -> Iterator[Any]:
    summaries = [summary_of(values) for values in errors]
    yield figures(f"{name} median", [share(s[0] if s else None) for s in summaries], rank)
    yield figures(f"{name} p90", [share(s[1] if s else None) for s in summaries], rank)


def _uncertainty(fitted: Fitted) -> Section | None:
    known = [(block.name, _ranked(block)) for block in fitted.blocks if block.uncertainty]
    if not known:
        return None
    return facts_section("Uncertainty of the constants (standard deviation of the log)", known)


def _ranked(block: Block) -> str:
    """Return all constants of a block, those that the points settle best first."""
    ranked = sorted(block.uncertainty.items(), key=lambda item: item[1])
    return ", ".join(f"{name} {share(value)}" for name, value in ranked)


def _check(fitted: Fitted) -> Section | None:
    check = fitted.check
    if check is None:
        return None
    facts = [
        ("points that the fit did not use", str(check.points)),
        ("median error", f"{share(check.median)} (base {share(check.default_median)})"),
        ("90th percentile", f"{share(check.p90)} (base {share(check.default_p90)})"),
        ("added to a stack's spread", share(fitted.profile.constants.spread)),
    ]
    return facts_section(
        "Check on held-out points", facts, ["then the constants were fitted to all points"]
    )


def _rejected(fitted: Fitted) -> Section | None:
    if not fitted.rejected:
        return None
    lines = list(map(str, fitted.rejected))
    more = len(lines) - _SHOWN
    shown = [*lines[:_SHOWN], f"and {more} more (see --json)"] if more > 0 else lines
    return Section(title=f"Not fitted: {len(lines)}", text=tuple(shown))


def _notes(fitted: Fitted) -> Section | None:
    return Section(title="Notes", text=fitted.notes) if fitted.notes else None
