"""What each kind of result contributes to the decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from reports.page.sections.forecasts import layout_words
from reports.page.topics import Said, Topic
from reports.quantities import number, percent, seconds, signed_percent
from reports.report_figures.labels import CATEGORIES, named
from reports.result_files.calibration import CalibrationFile
from reports.result_files.explain import ExplainFile
from reports.result_files.goodput import GoodputFile, RunPlanFacts
from reports.result_files.parts import ClusterFacts, RunFacts
from reports.result_files.plan import PlanFile
from reports.result_files.step import StepFile
from reports.result_files.sweep import CompareFile, RowFacts, SweepFile
from reports.result_files.trace_comparison import TraceComparisonFile
from reports.result_files.validation import ValidationFile
from reports.step_view import CLOSE_TO_FULL
from reports.words import Words
from simulator.units import GIB

_LEVERS = 3
_CLASSES = 3


def of_step(step: StepFile, words: Words) -> Iterator[Said]:
    """Say the step's numbers, what most of it goes into, and how full the memory is."""
    facts, memory = step.step, step.memory
    if not memory.fits:
        text = "This layout cannot run: the numbers are of a step that would run out of memory."
        yield Topic.PICK, words(text)
    yield (
        Topic.PICK,
        words(
            "{model} on {gpus} as the scenario lays it out ({layout}): a step takes {step}, "
            "between {low} and {high} with 80 % certainty; {tokens} tokens/s at an MFU of {mfu}.",
            layout=layout_words(step.layout),
            model=step.model.name,
            gpus=_gpus(step.cluster),
            step=seconds(facts.step_time_s),
            low=seconds(facts.low_s),
            high=seconds(facts.high_s),
            tokens=f"{facts.tokens_per_second:,.0f}",
            mfu=percent(facts.mfu),
        ),
    )
    yield from _run(step.run, words)
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
    rooms = memory.stage_capacity_bytes or (memory.capacity_bytes,) * len(memory.stages)
    peak, capacity = max(
        ((s.reserved, room) for s, room in zip(memory.stages, rooms, strict=True)),
        key=lambda pair: pair[0] / pair[1],
    )
    if memory.fits:
        yield Topic.RISK, _memory(peak, capacity, words)
    else:
        yield (
            Topic.RISK,
            words(
                "It does not fit: the fullest rank needs {peak} GiB of {capacity} GiB, or more "
                "host memory than there is.",
                peak=number(peak / GIB),
                capacity=number(capacity / GIB),
            ),
        )
    for cause in step.network.causes:
        lost = seconds(cause.seconds)
        yield Topic.RISK, words("{what} costs {lost} a step.", what=cause.what, lost=lost)


def of_plan(plan: PlanFile, words: Words) -> Iterator[Said]:
    """Say which layout to take, by how much it wins, and what may upset it."""
    searched = plan.searched
    if not plan.layouts:
        yield (
            Topic.PICK,
            words(
                "No layout: of {considered} considered {legal} are legal and {fitting} fit.",
                considered=f"{searched.considered:,}",
                legal=f"{searched.legal:,}",
                fitting=f"{searched.fitting:,}",
            ),
        )
        yield from _remedies(plan, words)
        return
    best = plan.layouts[0]
    yield (
        Topic.PICK,
        words(
            "{model} on {gpus}: take {layout}. A step takes {step}, between {low} and {high} with "
            "80 % certainty; {tokens} tokens/s at an MFU of {mfu}.",
            model=plan.model.name,
            gpus=_gpus(plan.cluster, best.accelerators),
            layout=best.full_name,
            step=seconds(best.step_time_s),
            low=seconds(best.low),
            high=seconds(best.high),
            tokens=f"{best.tokens_per_s:,.0f}",
            mfu=percent(best.mfu),
        ),
    )
    yield from _run(plan.run, words)
    yield from _why(plan, words)
    if searched.gap is not None:
        yield (
            Topic.RISK,
            words(
                "The search was cut short: another layout could be better by up to {gap}.",
                gap=percent(searched.gap),
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
        yield Topic.RISK, _memory(best.peak_memory_bytes, plan.memory_capacity_bytes, words)
    if plan.whole_run is not None:
        yield from _whole_run(plan.whole_run, words)


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
        yield Topic.WHY, words("What decides: {reason}.", reason=plan.reason)
    if plan.bottleneck:
        yield Topic.WHY, words("Most of its step: {bottleneck}.", bottleneck=plan.bottleneck)
    if plan.runner_up_lost:
        yield Topic.WHY, words("The next one: {lost}.", lost=plan.runner_up_lost)


def _remedies(plan: PlanFile, words: Words) -> Iterator[Said]:
    if plan.beyond:
        yield Topic.WHY, f"{plan.beyond}."
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
            yield Topic.WHY, words("It would fit with: {what}.", what=remedy.what)


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
        named_gains = ", ".join(f"{name} (x {speedup:.2f})" for speedup, name in most)
        yield Topic.WHY, words("What would bring most: {gains}.", gains=named_gains)


def of_goodput(found: GoodputFile, words: Words) -> Iterator[Said]:
    """Say how long the whole run takes, what it costs, and what it loses."""
    if not found.fits:
        yield Topic.RISK, words("The layout of the run does not fit in memory.")
    yield from _whole_run(found.run, words)


def _whole_run(run: RunPlanFacts, words: Words) -> Iterator[Said]:
    days = {
        "middle": number(run.days.p50),
        "low": number(run.days.p10),
        "high": number(run.days.p90),
    }
    template = (
        "The whole run takes {middle} days, {low} to {high} in 80 of 100 cases, with failures and "
        "checkpoints; goodput {goodput}."
    )
    if run.failures is None and run.checkpoint is None:
        template = (
            "The whole run takes {middle} days, {low} to {high} in 80 of 100 cases; neither "
            "failures nor checkpoints are counted."
        )
    yield Topic.PICK, words(template, **days, goodput=percent(run.goodput.p50))
    if run.cost is not None:
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
    if run.failures is not None:
        yield (
            Topic.RISK,
            words(
                "{count} failures stop the job in the middle case ({low} to {high} in 80 of 100); "
                "spare nodes: {spares} are held, {best} would be cheapest.",
                count=number(run.failures.count.p50, 2),
                low=number(run.failures.count.p10, 2),
                high=number(run.failures.count.p90, 2),
                spares=run.failures.spares,
                best=run.failures.best_spares,
            ),
        )


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
    for note in found.notes:
        yield Topic.RISK, f"{note}."


def of_sweep(found: SweepFile, words: Words) -> Iterator[Said]:
    """Say which combination is the fastest, and how many cannot run."""
    runs = [
        (", ".join(f"{key} {value}" for key, value in row.values.items()), row)
        for row in found.rows
        if row.runs
    ]
    yield from _fastest(runs, len(found.rows), words)


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


def of_validation(found: ValidationFile, words: Words) -> Iterator[Said]:
    """Say how far forecasts are off the measured runs."""
    whole = found.groups[0] if found.groups else None
    if whole is None or whole.statistics is None:
        yield Topic.VALIDATED, words("No row could be compared.")
        return
    errors = whole.statistics
    yield (
        Topic.VALIDATED,
        words(
            "{compared} of {rows} measured runs were compared: median error {median}, 90th "
            "percentile {p90}, worst {worst}.",
            compared=whole.compared,
            rows=whole.rows,
            median=percent(errors.median),
            p90=percent(errors.p90),
            worst=percent(abs(errors.worst)),
        ),
    )
    for fitted in found.provenance.fitted_on_this_file:
        yield Topic.VALIDATED, words("Fitted on rows of this file: {what}.", what=fitted)


def of_calibration(found: CalibrationFile, words: Words) -> Iterator[Said]:
    """Say what was measured, and how far the profile is off its points."""
    compared = [
        abs(forecast / took - 1)
        for took, forecast, status in zip(
            found.checked.measured_s, found.checked.predicted_s, found.checked.status, strict=True
        )
        if took and forecast is not None and status == "ok"
    ]
    if compared:
        yield (
            Topic.VALIDATED,
            words(
                "{profile}: {count} measured points, forecast with a median error of {median}.",
                profile=found.profile,
                count=len(compared),
                median=percent(median(compared)),
            ),
        )


def of_trace(found: TraceComparisonFile, words: Words) -> Iterator[Said]:
    """Say how far the forecast is off the measured step, and where."""
    off = found.simulated_step_s / found.measured_step_s - 1
    yield (
        Topic.VALIDATED,
        words(
            "A measured step takes {measured}, its forecast {simulated} ({off}).",
            measured=seconds(found.measured_step_s),
            simulated=seconds(found.simulated_step_s),
            off=signed_percent(off),
        ),
    )
    for sentence in found.sentences[:_CLASSES]:
        yield Topic.WHY, sentence


def _gpus(cluster: ClusterFacts, count: int | None = None) -> str:
    return f"{count or cluster.accelerators:,} x {cluster.accelerator}"


def _run(run: RunFacts | None, words: Words) -> Iterator[Said]:
    """Say the days and the cost of all tokens."""
    if run is None:
        return
    yield (
        Topic.PICK,
        words(
            "All tokens take {days} days ({low} to {high}) and {hours} GPU-hours, without "
            "failures.",
            days=number(run.days),
            low=number(run.days_low),
            high=number(run.days_high),
            hours=number(run.accelerator_hours),
        ),
    )
    if run.cost is None:
        yield Topic.PICK, words("The profile names no price for these hours.")
    else:
        cost = number(run.cost)
        yield Topic.PICK, words("That costs {cost} {currency}.", cost=cost, currency=run.currency)


def _memory(peak: float, capacity: float, words: Words) -> str:
    sizes = {
        "peak": number(peak / GIB),
        "capacity": number(capacity / GIB),
        "room": percent(1 - peak / capacity),
    }
    if peak > CLOSE_TO_FULL * capacity:
        template = (
            "Memory is tight: {peak} GiB of {capacity} GiB are reserved, {room} are left; a run "
            "may run out of it."
        )
        return words(template, **sizes)
    return words("Memory: {peak} GiB of {capacity} GiB are reserved, {room} are left.", **sizes)
