"""Tables of one simulated step, and of the constants behind a forecast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.layout_words import layout_words
from reports.page.said.shared import machines
from reports.quantities import number, percent, seconds
from reports.report_figures.labels import CATEGORIES, MEMORY_PARTS, PASSES, named
from reports.result_files.step import StepFile
from reports.section import NONE, Section, facts_section, figures
from reports.section import words as text_column
from reports.words import Words
from simulator.units import GB, GIB, TERA


def step(found: StepFile, words: Words) -> Iterator[Section]:
    """Yield the numbers of a step."""
    facts = found.step
    rows = [
        (words("Model"), f"{found.model.name}, {found.model.parameters:,} parameters"),
        (words("Cluster"), machines(found.cluster, words)),
        (words("Layout"), layout_words(found.layout, words)),
        (words("Method"), words.held(found.method)),
        (words("Step time"), seconds(facts.step_time_s)),
        (words("80 % interval"), f"{seconds(facts.low_s)} - {seconds(facts.high_s)}"),
        (words("Tokens a step"), f"{facts.tokens:,}"),
        (words("Tokens/s"), f"{facts.tokens_per_second:,.0f}"),
        (words("Tokens/s an accelerator"), f"{facts.tokens_per_second_per_accelerator:,.0f}"),
        (words("MFU"), percent(facts.mfu)),
        (words("MFU counts"), words.held(facts.mfu_convention)),
        (
            words("Dense peak an accelerator"),
            f"{number(facts.dense_peak_flops_per_second / TERA)} TFLOP/s",
        ),
        (words("HFU"), percent(facts.hfu)),
        (words("Exposed communication"), seconds(facts.exposed_communication_s)),
        (words("Pipeline bubble"), seconds(facts.bubble_s)),
    ]
    yield facts_section(words("The step in numbers"), rows)


def memory(found: StepFile, words: Words) -> Iterator[Section]:
    """Yield the memory of every stage, in GiB."""
    stages = found.memory.stages
    parts = [
        figures(named(MEMORY_PARTS, kind, words), [number(getattr(s, kind) / GIB) for s in stages])
        for kind in MEMORY_PARTS
    ]
    yield Section(
        title=words("Memory of one rank of each stage, GiB"),
        columns=(
            figures(words("stage"), [str(stage.stage) for stage in stages]),
            *parts,
            figures(words("allocated"), [number(stage.allocated / GIB) for stage in stages]),
            figures(words("reserved"), [number(stage.reserved / GIB) for stage in stages]),
            text_column(words("peak at"), [words.held(stage.moment) for stage in stages]),
        ),
    )


def operators(found: StepFile, words: Words) -> Iterator[Section]:
    """Yield what one rank of the busiest stage runs, longest first."""
    uses = found.operators
    if not uses:
        return
    yield Section(
        title=words("Operators and collectives of a step"),
        text=(
            words(
                "Of one rank of stage {stage}; exposed is what makes the passes longer.",
                stage=found.breakdown.stage,
            ),
        ),
        columns=(
            text_column(words("pass"), [named(PASSES, use.phase, words) for use in uses]),
            text_column(words("operator"), [words.held(use.name) for use in uses]),
            text_column(
                words("category"), [named(CATEGORIES, use.category, words) for use in uses]
            ),
            figures(words("calls"), [f"{use.calls:,.0f}" for use in uses]),
            figures(words("seconds"), [number(use.seconds) for use in uses]),
            figures(words("exposed, s"), [number(use.exposed_s) for use in uses]),
            figures("TFLOP", [_amount(use.flops / TERA) for use in uses]),
            figures("GB", [_amount(use.bytes / GB) for use in uses]),
            figures("TFLOP/s", [_amount(_rate(use.flops, use.seconds) / TERA) for use in uses]),
            figures("GB/s", [_amount(_rate(use.bytes, use.seconds) / GB) for use in uses]),
        ),
    )


def _amount(value: float) -> str:
    return number(value) if value else NONE


def _rate(amount: float, took: float) -> float:
    return amount / took if took else 0.0


def links(found: StepFile, words: Words) -> Iterator[Section]:
    """Yield what the links of the network carried, the busiest first."""
    uses = found.network.links
    if not uses:
        return
    yield Section(
        title=words("Links of the network"),
        columns=(
            text_column(words("link"), [words.held(use.name) for use in uses]),
            figures(words("alike"), [f"{use.alike:,}" for use in uses]),
            figures("GB/s", [number(use.capacity_bytes_per_second / GB) for use in uses]),
            figures(words("carried, GB"), [number(use.carried_bytes / GB) for use in uses]),
            figures(words("utilisation"), [percent(use.utilisation) for use in uses]),
        ),
    )


def constants(found: Any, words: Words) -> Iterator[Section]:
    """Yield the origin of every group of constants, those that are needed first."""
    provenance = found.provenance
    blocks = sorted(provenance.constants, key=lambda block: (block not in provenance.used, block))
    origins = [provenance.constants[block].partition(":") for block in blocks]
    needed = [words("yes") if block in provenance.used else NONE for block in blocks]
    yield Section(
        title=words("Where the constants come from"),
        text=(
            words(
                "traincast {version}, profile {profile} ({hash}), stack {stack}.",
                version=provenance.traincast,
                profile=provenance.profile,
                hash=provenance.profile_sha256[:12],
                stack=provenance.stack,
            ),
        ),
        columns=(
            text_column(words("constants"), blocks),
            text_column(words("needed here"), needed),
            text_column(words("origin"), [words.held(kind) for kind, _, _ in origins]),
            text_column(words("from"), [source.strip() for _, _, source in origins]),
        ),
    )
