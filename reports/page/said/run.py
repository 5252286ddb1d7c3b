"""What a whole run says: its days and money, and what it loses to failures."""

from __future__ import annotations

from collections.abc import Iterator

from reports.page.said.shared import lasting_three
from reports.page.topics import Said, Topic
from reports.quantities import number, percent
from reports.result_files.goodput import GoodputFile, RunPlanFacts
from reports.words import Words


def of_goodput(found: GoodputFile, words: Words) -> Iterator[Said]:
    """Say how long the whole run takes, what it costs, and what it loses."""
    if not found.fits:
        yield Topic.RISK, words("The layout of the run does not fit in memory.")
    yield from whole_run(found.run, words)


def whole_run(run: RunPlanFacts, words: Words) -> Iterator[Said]:
    """Say the same of a run that stands by itself or in a plan."""
    template = (
        "The whole run takes {middle}, {low} to {high} in 80 of 100 cases, with failures and "
        "checkpoints; goodput {goodput}."
    )
    if run.failures is None and run.checkpoint is None:
        template = (
            "The whole run takes {middle}, {low} to {high} in 80 of 100 cases; neither failures "
            "nor checkpoints are counted."
        )
    days = lasting_three(run.days, words)
    yield Topic.PICK, words(template, **days, goodput=percent(run.goodput.p50))
    yield from _cost(run, words)
    yield from _failures(run, words)


def _cost(run: RunPlanFacts, words: Words) -> Iterator[Said]:
    if run.cost is None:
        return
    yield (
        Topic.PICK,
        words(
            "It costs {middle} {currency} ({low} to {high}).",
            middle=number(run.cost.p50),
            low=number(run.cost.p10),
            high=number(run.cost.p90),
            currency=run.currency,
        ),
    )


def _failures(run: RunPlanFacts, words: Words) -> Iterator[Said]:
    if run.failures is None:
        return
    yield (
        Topic.RISK,
        words(
            "Failures that stop the job: {count} in the middle case ({low} to {high} in 80 of "
            "100); spare nodes: {spares} are held, {best} would be cheapest.",
            count=number(run.failures.count.p50, 2),
            low=number(run.failures.count.p10, 2),
            high=number(run.failures.count.p90, 2),
            spares=run.failures.spares,
            best=run.failures.best_spares,
        ),
    )
