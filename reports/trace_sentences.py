"""What a comparison with a trace says in words: how far off, what explains it, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from calibrate.import_kineto_labels import GROUP_COMM, OTHER, UNKNOWN_COMM
from calibrate.import_kineto_steps import IDLE, MeasuredStep
from reports.quantities import counted, percent, seconds
from reports.report_figures.labels import CATEGORIES
from reports.trace_forecast import TraceForecast
from simulator.results import Category

_SAID = 3
_MATTERS = 0.01
"""Share of the measured step below which no sentence is said of a class."""
_MOST = 0.5
"""Share of a difference from which on it is most of it."""
_WORDS = {
    OTHER: "work of unknown names",
    IDLE: "nothing runs, and not for the CPU",
}
_OTHER_STAGES = "waiting for other stages"
_STAGES = (Category.PIPELINE_COMM, Category.BUBBLE)
"""What a trace cannot tell apart."""
_COLLECTIVES = (
    "measure the collectives of its groups on this cluster (traincast calibrate run) and fit; a "
    "kernel also waits for the slowest rank, so compare traces of other ranks too"
)
_KERNELS = (
    "measure its kernels on this accelerator at this run's shapes (traincast calibrate run, or "
    "calibrate import of this trace) and fit"
)
_EVERY_STAGE = (
    "compare a trace of every stage: one that is slower than forecast holds the others up"
)
_ADVICE: Mapping[str, str] = {
    Category.GEMM: _KERNELS,
    Category.ATTENTION: _KERNELS,
    Category.MEMORY_BOUND: ("check which operators the run fuses (the stack), then " + _KERNELS),
    Category.RECOMPUTE: "check that the run recomputes what the layout says",
    Category.LAUNCH: (
        "the CPU launches too slowly: measure the launch time of this stack (traincast calibrate "
        "run), or capture CUDA graphs, or use larger micro-batches"
    ),
    Category.TENSOR_COMM: _COLLECTIVES,
    Category.CONTEXT_COMM: _COLLECTIVES,
    Category.EXPERT_COMM: _COLLECTIVES + "; experts of uneven load do that as well",
    Category.DATA_COMM: _COLLECTIVES + "; check that the run overlaps what the stack says",
    Category.HOST_COMM: "measure copies to and from the host (traincast calibrate run) and fit",
    Category.OPTIMIZER: "check which optimizer kernels the run uses (fused, foreach, offloaded)",
    OTHER: "report the names below, so that their class becomes known",
    IDLE: "look at the trace: data loading, synchronisation with the CPU, or a checkpoint",
    UNKNOWN_COMM: "say what its groups are for: --group NAME=KIND",
    **dict.fromkeys((*_STAGES, _OTHER_STAGES), _EVERY_STAGE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Classes that must be read together, seconds of a step."""

    name: str
    simulated_s: float
    measured_s: float
    difference_s: float


def class_words(name: str) -> str:
    """Return what people call a class; one that is named by its group stays as it is."""
    return _WORDS.get(name) or CATEGORIES.get(name, name)


def sentences(
    forecast: TraceForecast,
    chosen: MeasuredStep,
    times: Sequence[float],
    together: Sequence[Together],
) -> Iterator[str]:
    """Yield how far the forecast is off, why, and what to do; `times` are those of all steps."""
    gap = chosen.time - forecast.step_time
    word = "longer" if gap > 0 else "shorter"
    yield (
        f"The measured step takes {seconds(chosen.time)}, {seconds(abs(gap))} {word} than the "
        f"forecast's {seconds(forecast.step_time)} ({percent(abs(gap) / chosen.time)} of it)."
    )
    yield from _interval(forecast, times)
    differences = _differences(forecast, chosen)
    yield from _verdict(differences, gap, chosen.time)
    for name, difference in differences[:_SAID]:
        if abs(difference) >= _MATTERS * chosen.time:
            yield f"{_capital(class_words(name))}: {_more(difference, chosen.time)}."
    for each in together:
        if abs(each.difference_s) >= _MATTERS * chosen.time:
            yield f"All {each.name} together: {_more(each.difference_s, chosen.time)}."
    yield from _launches(chosen)
    yield from _overlap(forecast, chosen)


def _interval(forecast: TraceForecast, times: Sequence[float]) -> Iterator[str]:
    if forecast.low is None or forecast.high is None:
        return
    middle = median(times)
    where = "inside"
    if middle > forecast.high:
        where = f"{percent(middle / forecast.high - 1)} above"
    elif middle < forecast.low:
        where = f"{percent(1 - middle / forecast.low)} below"
    what = f"The median of {counted(len(times), 'step')} ({seconds(middle)})"
    yield (
        f"{what if len(times) > 1 else 'It'} is {where} the 80 % interval of the forecast, "
        f"{seconds(forecast.low)} to {seconds(forecast.high)}."
    )


def _differences(forecast: TraceForecast, chosen: MeasuredStep) -> list[tuple[str, float]]:
    """Return measured less forecast seconds by class, the largest first.

    Where the forecast has a bubble, waiting for other stages is one class: a trace shows the bubble
    as the transfer that ends it, or as nothing that runs.
    """
    totals: dict[str, float] = {}
    waits = bool(forecast.seconds.get(Category.BUBBLE))
    for found, sign in ((forecast.seconds, -1), (chosen.seconds, 1)):
        for name, value in found.items():
            as_one = waits and name in (*_STAGES, IDLE)
            key = _OTHER_STAGES if as_one else str(name)
            totals[key] = totals.get(key, 0.0) + sign * value
    return sorted(totals.items(), key=lambda each: (-abs(each[1]), each[0]))


def _verdict(differences: Sequence[tuple[str, float]], gap: float, step: float) -> Iterator[str]:
    """Yield which class explains most of the difference between the steps, and what to do."""
    if abs(gap) < _MATTERS * step:
        large = [name for name, value in differences if abs(value) >= _MATTERS * step]
        if large:
            names = " and ".join(class_words(name) for name in large[:2])
            yield f"The steps agree, but differences cancel out, above all of {names}."
        else:
            yield "The steps agree, class by class."
        return
    found = next((each for each in differences if each[1] * gap > 0), None)
    if found is None:
        return
    name, value = found
    share, words = value / gap, class_words(name)
    if abs(value) - abs(gap) >= _MATTERS * step:
        others = seconds(abs(value - gap))
        yield f"The difference is above all {words}; other classes make up for {others} of it."
    elif share >= _MOST:
        yield f"Most of the difference is {words}: {percent(share)} of it."
    else:
        yield f"The largest part of the difference is {words}: {percent(share)} of it."
    key = UNKNOWN_COMM if name.startswith(GROUP_COMM) else name
    yield f"What to do about {words}: {_ADVICE[key]}."


def _launches(chosen: MeasuredStep) -> Iterator[str]:
    """Yield how long the device waits for the CPU."""
    total, gaps = chosen.seconds.get(Category.LAUNCH, 0.0), chosen.pauses.get(Category.LAUNCH)
    if gaps is not None and total >= _MATTERS * chosen.time:
        yield (
            f"The device waits for the CPU's launches in {counted(gaps.count, 'gap')}, "
            f"{seconds(total)} together ({percent(total / chosen.time)} of the step), the longest "
            f"{seconds(gaps.longest)}."
        )


def _overlap(forecast: TraceForecast, chosen: MeasuredStep) -> Iterator[str]:
    """Yield where a kind of communication hides less behind computing than forecast."""
    for kind, sent in forecast.busy.items():
        real = chosen.busy.get(kind, 0.0)
        if not sent or not real:
            continue
        hidden = 1 - forecast.seconds.get(kind, 0.0) / sent
        found = 1 - chosen.seconds.get(kind, 0.0) / real
        lost = chosen.seconds.get(kind, 0.0) - (1 - hidden) * real
        if 0 <= hidden <= 1 and lost >= _MATTERS * chosen.time:
            yield (
                f"{_capital(class_words(kind))} hides less than forecast: {percent(found)} of its "
                f"time runs under computing, not {percent(hidden)}."
            )


def _more(difference: float, step: float) -> str:
    word = "more" if difference > 0 else "less"
    share = percent(abs(difference) / step)
    return f"{seconds(abs(difference))} {word} than forecast ({share} of the step)"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
