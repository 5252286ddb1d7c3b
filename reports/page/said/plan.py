"""What a plan says, and what changes to it would bring."""

from __future__ import annotations

from collections.abc import Iterator

from reports.page.said.run import whole_run
from reports.page.said.shared import all_tokens, interval, machines, reserved
from reports.page.topics import Said, Topic
from reports.quantities import number, percent
from reports.result_files.explain import ExplainFile
from reports.result_files.plan import PlanFile, PlannedFacts
from reports.words import Words
from simulator.units import GIB

_LEVERS = 3
"""Changes that are named, those that bring most first."""


def of_plan(plan: PlanFile, words: Words) -> Iterator[Said]:
    """Say which layout to take, by how much it wins, and what may upset it."""
    if not plan.layouts:
        yield from _nothing(plan, words)
        return
    best = plan.layouts[0]
    yield from _best(plan, best, words)
    yield from all_tokens(plan.run, words)
    yield from _why(plan, words)
    yield from _doubts(plan, best, words)
    for note in plan.model.notes:
        yield Topic.ASSUMED, words.sentence(note)
    if plan.whole_run is not None:
        yield from whole_run(plan.whole_run, words)


def _best(plan: PlanFile, best: PlannedFacts, words: Words) -> Iterator[Said]:
    yield (
        Topic.PICK,
        words(
            "{model} on {gpus}: take {layout}. A step takes {step}, between {low} and {high} with "
            "80 % certainty; {tokens} tokens/s at an MFU of {mfu}.",
            model=plan.model.name,
            gpus=machines(plan.cluster, words, best.accelerators),
            layout=best.full_name,
            tokens=f"{best.tokens_per_s:,.0f}",
            mfu=percent(best.mfu),
            **interval(best.step_time_s, best.low, best.high),
        ),
    )


def _why(plan: PlanFile, words: Words) -> Iterator[Said]:
    searched = plan.searched
    yield (
        Topic.WHY,
        words(
            "It is the best of {legal} legal layouts, of which {fitting} fit; {simulated} were "
            "played by the event engine.",
            legal=f"{searched.legal:,}",
            fitting=f"{searched.fitting:,}",
            simulated=searched.simulated,
        ),
    )
    if plan.reason:
        yield Topic.WHY, words("What decides: {reason}.", reason=words.held(plan.reason))
    if plan.bottleneck:
        yield Topic.WHY, words("Most of its step: {what}.", what=words.held(plan.bottleneck))
    if plan.runner_up_lost:
        yield Topic.WHY, words("The next one: {lost}.", lost=words.held(plan.runner_up_lost))


def _doubts(plan: PlanFile, best: PlannedFacts, words: Words) -> Iterator[Said]:
    """Say what may upset the choice: a search cut short, uncertain constants, little memory."""
    if plan.searched.gap is not None:
        yield (
            Topic.RISK,
            words(
                "The search was cut short: another layout could be better by up to {gap}.",
                gap=percent(plan.searched.gap),
            ),
        )
    if best.chance is not None:
        yield (
            Topic.RISK,
            words(
                "Over the uncertainty of the constants it is, of the {compared} layouts compared, "
                "the best with a probability of {chance}; choosing it costs {regret} on average.",
                compared=plan.drawn.compared if plan.drawn is not None else len(plan.layouts),
                chance=percent(best.chance.best),
                regret=percent(best.chance.regret),
            ),
        )
    if len(plan.cluster.parts) > 1:
        size = number(best.peak_memory_bytes / GIB)
        yield Topic.RISK, words("Memory: {peak} GiB are reserved on the fullest stage.", peak=size)
    else:
        yield Topic.RISK, reserved(best.peak_memory_bytes, plan.memory_capacity_bytes, words)


def _nothing(plan: PlanFile, words: Words) -> Iterator[Said]:
    """Say that no layout fits, by how much, and what would help."""
    searched = plan.searched
    yield (
        Topic.PICK,
        words(
            "No layout: of {considered} considered {legal} are legal and {fitting} fit.",
            considered=f"{searched.considered:,}",
            legal=f"{searched.legal:,}",
            fitting=f"{searched.fitting:,}",
        ),
    )
    if plan.beyond:
        yield Topic.WHY, words.sentence(plan.beyond)
    if plan.nearest:
        least = min(miss.peak_memory_bytes for miss in plan.nearest)
        yield (
            Topic.WHY,
            words(
                "The closest needs {least} GiB, {limit} GiB may be used.",
                least=number(least / GIB),
                limit=number(plan.memory_limit_bytes / GIB),
            ),
        )
    for remedy in plan.remedies:
        if remedy.fits:
            yield Topic.WHY, words("It would fit with: {what}.", what=words.held(remedy.what))


def of_explanation(found: ExplainFile, words: Words) -> Iterator[Said]:
    """Say what its plan says, and which changes would bring most."""
    yield from of_plan(found.plan, words)
    gains = [
        (each.best_layout.speedup, each.name)
        for each in found.what_if
        if each.best_layout.speedup is not None
    ]
    most = sorted(gains, key=lambda gain: -gain[0])[:_LEVERS]
    if most:
        named_gains = ", ".join(f"{words.held(name)} (x {speedup:.2f})" for speedup, name in most)
        yield Topic.WHY, words("What would bring most: {gains}.", gains=named_gains)
