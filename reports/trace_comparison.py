"""A measured step beside its forecast: the seconds of every class, and what explains most.

The forecast's categories are compared with what a trace shows. A trace cannot tell some of them
apart (recomputed kernels look like others; waiting for another stage looks like its transfer), so
classes that must be read together are also summed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median_low
from typing import Any

from calibrate.import_kineto_labels import GROUP_COMM, OTHER, UNKNOWN_COMM
from calibrate.import_kineto_steps import IDLE, MeasuredStep
from reports.quantities import percent, seconds
from reports.result_files.kinds import ResultKind, result_of
from reports.trace_forecast import TraceForecast
from simulator.errors import InputError, Problem
from simulator.results import Category

_COMPUTE = (Category.GEMM, Category.ATTENTION, Category.MEMORY_BOUND, Category.RECOMPUTE, OTHER)
_WAITING = (
    *(Category.TENSOR_COMM, Category.CONTEXT_COMM, Category.EXPERT_COMM, Category.HOST_COMM),
    *(Category.PIPELINE_COMM, Category.DATA_COMM, Category.BUBBLE),
    *(Category.LAUNCH, IDLE, UNKNOWN_COMM),
)
_NAMES_SHOWN = 20
_SAID = 3
_MATTERS = 0.01
"""Share of the measured step below which no sentence is said of a class."""


def chosen_step(steps: Sequence[MeasuredStep], number: int | None) -> MeasuredStep:
    """Return the step of the number asked for that has the median time, or of all steps.

    Of an even count it is the shorter one of the two in the middle: a step that was measured, so
    that its classes add up.

    Raises:
        InputError: no trace holds a step of that number.
    """
    found = [step for step in steps if number is None or step.number == number]
    if not found:
        known = sorted({step.number for step in steps})
        rule = "must be a step of the traces"
        fix = "one of: " + ", ".join(map(str, known[:_NAMES_SHOWN]))
        raise InputError(Problem(key="--step", found=str(number), rule=rule, fix=fix))
    middle = median_low(step.time for step in found)
    return next(step for step in found if step.time == middle)


def comparison_record(
    forecast: TraceForecast,
    steps: Sequence[MeasuredStep],
    chosen: MeasuredStep,
    notes: Iterable[str],
) -> dict[str, Any]:
    """Return the comparison as a result file holds it; `notes` say what was left out, and how.

    `steps` are all that were measured: their classes give the spread.
    """
    classes = _classes(forecast, steps, chosen)
    together = [
        _together("computing", _COMPUTE, forecast.seconds, chosen.seconds),
        _together("communication and waiting", _WAITING, forecast.seconds, chosen.seconds),
    ]
    times = [step.time for step in steps]
    return result_of(
        ResultKind.TRACE_COMPARISON,
        {
            "title": forecast.title,
            "simulated": forecast.path,
            "stage": forecast.stage,
            "measured": list(dict.fromkeys(step.path for step in steps)),
            "step": _step_name(chosen),
            "steps": len(steps),
            "simulated_step_s": forecast.step_time,
            "measured_step_s": chosen.time,
            "low_s": min(times),
            "high_s": max(times),
            "classes": classes,
            "together": together,
            "unclassified": _unclassified(chosen),
            "samples": [_sample(step) for step in steps],
            "sentences": list(_sentences(forecast, chosen, classes, together)),
            "notes": [*notes, *_cautions(forecast.seconds)],
        },
    )


def _step_name(step: MeasuredStep) -> str:
    rank = "" if step.rank is None else f" of rank {step.rank}"
    return f"step {step.number}{rank}"


def _classes(
    forecast: TraceForecast, steps: Sequence[MeasuredStep], chosen: MeasuredStep
) -> list[dict[str, Any]]:
    """Return forecast and measured seconds of each class, the largest difference first."""
    names = dict.fromkeys([*forecast.seconds, *(name for step in steps for name in step.seconds)])
    found = []
    for name in names:
        measured = [step.seconds.get(name, 0.0) for step in steps]
        simulated = forecast.seconds.get(name, 0.0)
        if simulated == 0 and max(measured) == 0:
            continue
        difference = chosen.seconds.get(name, 0.0) - simulated
        found.append(
            {
                "name": str(name),
                "simulated_s": forecast.seconds.get(name),
                "measured_s": chosen.seconds.get(name),
                "difference_s": difference,
                "difference_share": difference / chosen.time,
                "low_s": min(measured),
                "high_s": max(measured),
            }
        )
    return sorted(found, key=lambda each: (-abs(each["difference_s"]), each["name"]))


def _together(
    name: str, parts: Iterable[str], simulated: Mapping[str, float], measured: Mapping[str, float]
) -> dict[str, Any]:
    """Return classes that a trace does not tell apart as one."""
    own = set(parts)

    def total(found: Mapping[str, float]) -> float:
        return sum(
            value
            for key, value in found.items()
            if key in own or (UNKNOWN_COMM in own and key.startswith(GROUP_COMM))
        )

    forecast, real = total(simulated), total(measured)
    return {
        "name": name,
        "simulated_s": forecast,
        "measured_s": real,
        "difference_s": real - forecast,
    }


def _unclassified(step: MeasuredStep) -> list[dict[str, Any]]:
    """Return work of no known class by its names, longest first; the rest as one entry."""
    items = list(step.unclassified.items())
    shown = [{"name": name, "seconds": value} for name, value in items[:_NAMES_SHOWN]]
    rest = items[_NAMES_SHOWN:]
    if rest:
        name = f"{len(rest)} more names"
        shown.append({"name": name, "seconds": sum(value for _, value in rest)})
    return shown


def _sample(step: MeasuredStep) -> dict[str, Any]:
    return {
        "path": step.path,
        "rank": step.rank,
        "step": step.number,
        "seconds": step.time,
        "classes": {str(name): value for name, value in step.seconds.items()},
    }


def _sentences(
    forecast: TraceForecast,
    chosen: MeasuredStep,
    classes: Sequence[Mapping[str, Any]],
    together: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield what explains most of the difference, in words."""
    gap = chosen.time - forecast.step_time
    word = "longer" if gap > 0 else "shorter"
    yield (
        f"The measured step takes {seconds(chosen.time)}, {seconds(abs(gap))} {word} than the "
        f"forecast's {seconds(forecast.step_time)} ({percent(abs(gap) / chosen.time)} of it)."
    )
    for each in classes[:_SAID]:
        if abs(each["difference_share"]) >= _MATTERS:
            yield f"{each['name']}: {_more(each['difference_s'], chosen.time)}."
    for each in together:
        if abs(each["difference_s"]) >= _MATTERS * chosen.time:
            yield f"All {each['name']} together: {_more(each['difference_s'], chosen.time)}."


def _more(difference: float, step: float) -> str:
    word = "more" if difference > 0 else "less"
    share = percent(abs(difference) / step)
    return f"{seconds(abs(difference))} {word} than forecast ({share} of the step)"


def _cautions(simulated: Mapping[str, float]) -> Iterator[str]:
    """Yield which of the forecast's categories a trace cannot show as such."""
    if simulated.get(Category.RECOMPUTE):
        yield "a trace shows recomputation as gemm, attention and memory_bound"
    if simulated.get(Category.BUBBLE):
        yield "a trace shows the bubble as pipeline communication, or as idle"
