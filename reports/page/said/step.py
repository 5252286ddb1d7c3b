"""What a forecast step says."""

from __future__ import annotations

from collections.abc import Iterator

from reports.layout_words import layout_words
from reports.page.said.shared import all_tokens, interval, machines, reserved
from reports.page.topics import Said, Topic
from reports.quantities import number, percent, seconds
from reports.report_figures.labels import CATEGORIES, named
from reports.result_files.step import StepFile
from reports.words import Words
from simulator.units import GIB


def of_step(step: StepFile, words: Words) -> Iterator[Said]:
    """Say the step's numbers, what most of it goes into, and how full the memory is."""
    if not step.memory.fits:
        text = "This layout cannot run: the numbers are of a step that would run out of memory."
        yield Topic.PICK, words(text)
    yield from _numbers(step, words)
    yield from all_tokens(step.run, words)
    yield from _pace(step, words)
    yield from _memory(step, words)
    for cause in step.network.causes:
        what, lost = words.held(cause.what), seconds(cause.seconds)
        yield Topic.RISK, words("{what} costs {lost} a step.", what=what, lost=lost)
    for note in (*step.model.notes, *step.network.notes):
        yield Topic.ASSUMED, words.sentence(note)


def _numbers(step: StepFile, words: Words) -> Iterator[Said]:
    facts = step.step
    yield (
        Topic.PICK,
        words(
            "{model} on {gpus} as the scenario lays it out ({layout}): a step takes {step}, "
            "between {low} and {high} with 80 % certainty; {tokens} tokens/s at an MFU of {mfu}.",
            layout=layout_words(step.layout, words),
            model=step.model.name,
            gpus=machines(step.cluster, words),
            tokens=f"{facts.tokens_per_second:,.0f}",
            mfu=percent(facts.mfu),
            **interval(facts.step_time_s, facts.low_s, facts.high_s),
        ),
    )


def _pace(step: StepFile, words: Words) -> Iterator[Said]:
    facts = step.step
    kind, most = max(step.breakdown.seconds.items(), key=lambda item: item[1])
    yield (
        Topic.WHY,
        words(
            "{share} of the step of stage {stage}, which sets the pace, goes into {category}; "
            "{exposed} into communication that nothing hides, {bubble} into the pipeline bubble.",
            share=percent(most / facts.step_time_s),
            stage=step.breakdown.stage,
            category=named(CATEGORIES, kind, words),
            exposed=percent(facts.exposed_communication_s / facts.step_time_s),
            bubble=percent(facts.bubble_s / facts.step_time_s),
        ),
    )


def _memory(step: StepFile, words: Words) -> Iterator[Said]:
    memory = step.memory
    rooms = memory.stage_capacity_bytes or (memory.capacity_bytes,) * len(memory.stages)
    peak, capacity = max(
        ((stage.reserved, room) for stage, room in zip(memory.stages, rooms, strict=True)),
        key=lambda pair: pair[0] / pair[1],
    )
    if memory.fits:
        yield Topic.RISK, reserved(peak, capacity, words)
        return
    yield (
        Topic.RISK,
        words(
            "It does not fit: the fullest rank needs {peak} GiB of {capacity} GiB, or more "
            "host memory than there is.",
            peak=number(peak / GIB),
            capacity=number(capacity / GIB),
        ),
    )
