"""What stands behind the numbers: assumptions, the origin of constants, validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.page.topics import Said, Topic
from reports.result_files import ResultFile
from reports.result_files.parts import ProvenanceFacts
from reports.words import Words

_ORIGINS = ("measured", "fitted", "nominal")


def assumed(files: Sequence[ResultFile], words: Words) -> Iterator[Said]:
    """Say what planner, runs and forecasts took for granted, and what they warn of."""
    for file in files:
        result = getattr(file.result, "plan", file.result)
        run = getattr(result, "run", None) or getattr(result, "whole_run", None)
        for holder in (result, run):
            for text in getattr(holder, "assumptions", ()):
                yield Topic.ASSUMED, words.sentence(text)
            for text in getattr(holder, "warnings", ()):
                yield Topic.RISK, words.sentence(text)
        provenance = provenance_of(file)
        if provenance is not None:
            for text in provenance.warnings:
                yield Topic.RISK, words.sentence(text)


def calibrated(files: Sequence[ResultFile], words: Words) -> Iterator[Said]:
    """Count the constants that forecasts need by their origin, and name those only assumed."""
    for provenance in _distinct(files):
        needed = provenance.used or tuple(provenance.constants)
        by_origin: dict[str, list[str]] = {origin: [] for origin in _ORIGINS}
        for block in needed:
            origin = provenance.constants.get(block, "").partition(":")[0]
            by_origin.setdefault(origin, []).append(block)
        yield (
            Topic.CALIBRATED,
            words(
                "Groups of constants of {profile} that the forecast needs: {measured} measured, "
                "{fitted} fitted to measurements, {nominal} nominal.",
                profile=provenance.profile,
                measured=len(by_origin["measured"]),
                fitted=len(by_origin["fitted"]),
                nominal=len(by_origin["nominal"]),
            ),
        )
        if by_origin["nominal"]:
            named = ", ".join(by_origin["nominal"])
            yield Topic.CALIBRATED, words("Nominal, not calibrated: {blocks}.", blocks=named)


def validated(files: Sequence[ResultFile], words: Words) -> Iterator[Said]:
    """Say where the intervals come from; a forecast that says nothing is not validated."""
    for provenance in _distinct(files):
        if "assumed:" in provenance.validation.lower():
            text = words(
                "The 80 % interval of step times is not measured: {source}.",
                source=words.held(provenance.validation),
            )
        elif provenance.validation:
            text = words(
                "The 80 % interval of step times is taken from measured runs: {source}.",
                source=words.held(provenance.validation),
            )
        else:
            text = words("The result does not say how its interval was validated.")
        yield Topic.VALIDATED, text


def provenance_of(file: ResultFile) -> ProvenanceFacts | None:
    """Return what a result's forecasts were computed from; None where it holds no forecast."""
    found = getattr(getattr(file.result, "plan", file.result), "provenance", None)
    return found if isinstance(found, ProvenanceFacts) else None


def _distinct(files: Sequence[ResultFile]) -> Iterator[ProvenanceFacts]:
    seen: set[tuple[str, str, str]] = set()
    for file in files:
        found = provenance_of(file)
        if found is None:
            continue
        key = (found.profile_sha256, found.stack, found.validation)
        if key not in seen:
            seen.add(key)
            yield found
