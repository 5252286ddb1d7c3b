"""What forecasts side by side say: the fastest, those that cannot run, and what is warned of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.page.topics import Said, Topic
from reports.result_files.sweep import CompareFile, RowFacts, SweepFile
from reports.sweep_view import value_text
from reports.words import Words


def of_comparison(found: CompareFile, words: Words) -> Iterator[Said]:
    """Say which scenario is the fastest, and against what."""
    runs = [(row.title, row) for row in found.scenarios if row.runs]
    yield from _fastest(runs, len(found.scenarios), words)
    for row in found.scenarios[1:]:
        ratio = row.against_first.get("tokens_per_s")
        if ratio is not None and ratio.ratio is not None:
            yield (
                Topic.WHY,
                words(
                    "{title} trains {ratio} times as many tokens/s as {first}.",
                    title=row.title,
                    ratio=f"{ratio.ratio:.3g}",
                    first=found.scenarios[0].title,
                ),
            )
    yield from _warned(found.scenarios, words)
    for note in found.notes:
        yield Topic.RISK, words.sentence(note)


def of_sweep(found: SweepFile, words: Words) -> Iterator[Said]:
    """Say which combination is the fastest, and how many cannot run."""
    runs = [
        (", ".join(f"{key} {value_text(value)}" for key, value in row.values.items()), row)
        for row in found.rows
        if row.runs
    ]
    yield from _fastest(runs, len(found.rows), words)
    yield from _warned(found.rows, words)
    for note in found.notes:
        yield Topic.RISK, words.sentence(note)


def _fastest(runs: Sequence[tuple[str, RowFacts]], count: int, words: Words) -> Iterator[Said]:
    if not runs:
        yield Topic.PICK, words("None of {count} can run.", count=count)
        return
    name, best = max(runs, key=lambda run: run[1].tokens_per_s or 0.0)
    yield (
        Topic.PICK,
        words(
            "Most tokens/s: {name}, with {tokens} tokens/s on {gpus} accelerators ({layout}).",
            name=name,
            tokens=f"{best.tokens_per_s or 0.0:,.0f}",
            gpus=f"{best.accelerators:,}",
            layout=best.layout,
        ),
    )
    if len(runs) < count:
        lost = count - len(runs)
        yield Topic.RISK, words("{lost} of {count} cannot run.", lost=lost, count=count)


def _warned(rows: Sequence[RowFacts], words: Words) -> Iterator[Said]:
    """Say each warning of the rows once, and of how many it is where it is not of all."""
    for text in dict.fromkeys(warning for row in rows for warning in row.warnings):
        count = sum(text in row.warnings for row in rows)
        if count == len(rows):
            yield Topic.RISK, words.sentence(text)
        else:
            said = words(
                "{count} of {all}: {what}", count=count, all=len(rows), what=words.held(text)
            )
            yield Topic.RISK, words.sentence(said)
