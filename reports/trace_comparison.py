"""A measured step beside its forecast: the seconds of every class, and what explains most.

The forecast's categories are compared with what a trace shows. A trace cannot tell some of them
apart (waiting for another stage looks like its transfer), so classes that must be read together
are also summed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, median_low, quantiles
from typing import Any

from calibrate.import_kineto_busy import CollectiveUse
from calibrate.import_kineto_labels import GROUP_COMM, OTHER, UNKNOWN_COMM
from calibrate.import_kineto_steps import IDLE, MeasuredStep
from reports.result_kinds import ResultKind, result_of
from reports.trace_forecast import TraceForecast
from reports.trace_sentences import Together, sentences
from simulator.errors import InputError, Problem
from simulator.results import Category

_COMPUTE = (Category.GEMM, Category.ATTENTION, Category.MEMORY_BOUND, Category.RECOMPUTE, OTHER)
_WAITING = (
    *(Category.TENSOR_COMM, Category.CONTEXT_COMM, Category.EXPERT_COMM, Category.HOST_COMM),
    *(Category.PIPELINE_COMM, Category.DATA_COMM, Category.BUBBLE),
    *(Category.LAUNCH, IDLE, UNKNOWN_COMM),
)
_NAMES_SHOWN = 20
_DECILES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the traces show: all their steps, and the one that is compared."""

    steps: Sequence[MeasuredStep]
    chosen: MeasuredStep
    notes: Sequence[str]
    """What was left out, and how."""
    stage_from: str
    """Why the forecast is that of its stage."""


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


def comparison_record(forecast: TraceForecast, measured: Measured) -> dict[str, Any]:
    """Return the comparison as a result file holds it.

    The differences are those of the chosen step, whose classes add up to its time; the least, the
    most and the quantiles are over all steps that were measured.
    """
    steps, chosen = measured.steps, measured.chosen
    classes = _classes(forecast, steps, chosen)
    together = [
        _together("computing", _COMPUTE, forecast.seconds, chosen.seconds),
        _together("communication and waiting", _WAITING, forecast.seconds, chosen.seconds),
    ]
    times = sorted(step.time for step in steps)
    return result_of(
        ResultKind.TRACE_COMPARISON,
        {
            "title": forecast.title,
            "simulated": forecast.path,
            "stage": forecast.stage,
            "stage_from": measured.stage_from,
            "measured": list(dict.fromkeys(step.path for step in steps)),
            "step": _step_name(chosen),
            "steps": len(steps),
            "simulated_step_s": forecast.step_time,
            "simulated_low_s": forecast.low,
            "simulated_high_s": forecast.high,
            "measured_step_s": chosen.time,
            "low_s": times[0],
            "high_s": times[-1],
            **_spread(times),
            "classes": classes,
            "together": [asdict(each) for each in together],
            "collectives": [_collective(use) for use in chosen.collectives],
            "pauses": [
                {"name": label, "count": each.count, "longest_s": each.longest}
                for label, each in chosen.pauses.items()
            ],
            "unclassified": _unclassified(chosen),
            "samples": [_sample(step) for step in steps],
            "sentences": list(sentences(forecast, chosen, times, together)),
            "notes": [*measured.notes, *_cautions(forecast.seconds)],
        },
    )


def _step_name(chosen: MeasuredStep) -> str:
    rank = "" if chosen.rank is None else f" of rank {chosen.rank}"
    return f"step {chosen.number}{rank}"


def _spread(times: Sequence[float]) -> dict[str, float]:
    """Return median, 10th and 90th percentile of some times; of one it is each of them."""
    if len(times) == 1:
        return dict.fromkeys(("median_s", "p10_s", "p90_s"), times[0])
    cuts = quantiles(times, n=_DECILES, method="inclusive")
    return {"median_s": median(times), "p10_s": cuts[0], "p90_s": cuts[-1]}


def _classes(
    forecast: TraceForecast, steps: Sequence[MeasuredStep], chosen: MeasuredStep
) -> list[dict[str, Any]]:
    """Return forecast and measured seconds of each class, the largest difference first."""
    names = dict.fromkeys(
        [
            *(*forecast.seconds, *forecast.busy),
            *(name for step in steps for name in (*step.seconds, *step.busy)),
        ]
    )
    found = []
    for name in map(str, names):
        measured = [step.seconds.get(name, 0.0) for step in steps]
        simulated = forecast.seconds.get(name, 0.0)
        hidden = forecast.busy.get(name, 0.0) + chosen.busy.get(name, 0.0)
        if simulated == 0 and max(measured) == 0 and hidden == 0:
            continue
        difference = chosen.seconds.get(name, 0.0) - simulated
        found.append(
            {
                "name": name,
                "simulated_s": forecast.seconds.get(name),
                "measured_s": chosen.seconds.get(name),
                "difference_s": difference,
                "difference_share": difference / chosen.time,
                "low_s": min(measured),
                "high_s": max(measured),
                "simulated_busy_s": forecast.busy.get(name),
                "measured_busy_s": chosen.busy.get(name),
            }
        )
    return sorted(found, key=lambda each: (-abs(each["difference_s"]), each["name"]))


def _together(
    name: str, parts: Iterable[str], simulated: Mapping[str, float], measured: Mapping[str, float]
) -> Together:
    """Return classes that a trace does not tell apart as one."""
    own = set(parts)

    def total(found: Mapping[str, float]) -> float:
        return sum(
            value
            for key, value in found.items()
            if key in own or (UNKNOWN_COMM in own and key.startswith(GROUP_COMM))
        )

    forecast, real = total(simulated), total(measured)
    return Together(name=name, simulated_s=forecast, measured_s=real, difference_s=real - forecast)


def _collective(use: CollectiveUse) -> dict[str, Any]:
    return {
        "collective": use.collective,
        "class": use.label,
        "calls": use.calls,
        "busy_s": use.busy,
        "exposed_s": use.exposed,
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


def _cautions(simulated: Mapping[str, float]) -> Iterable[str]:
    """Yield which of the forecast's categories a trace cannot show as such."""
    if simulated.get(Category.RECOMPUTE):
        yield (
            "a trace shows recomputation as matrix products, attention and memory-bound operators"
        )
    if simulated.get(Category.BUBBLE):
        yield "a trace shows the bubble as pipeline transfers, or as time in which nothing runs"
