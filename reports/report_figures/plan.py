"""Figures of a plan: the map of layouts, the best ones, the front, and what changes would bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp

from reports.charts import (
    Cell,
    Chart,
    Figure,
    LayoutMap,
    Part,
    Series,
    Stacks,
    Swing,
    Tornado,
)
from reports.quantities import number, seconds
from reports.report_figures.labels import CATEGORIES, OBJECTIVES, named, tone_of
from reports.result_files.explain import ExplainFile
from reports.result_files.plan import FrontFacts, MapCell, PlanFile
from reports.words import Words
from simulator.units import GIB

_MEMORY = "does not fit in memory"
_SIGNS = {
    "world size is not tp x cp x dp x pp": "W",
    "attention heads do not divide by tp": "H",
    "MLP width does not divide by tp": "M",
    "batch does not divide by dp x micro-batch": "B",
    "layers do not divide over the stages": "L",
    "schedule does not allow it": "S",
    _MEMORY: "X",
}
"""The sign of a cell that has no layout: memory where any is legal, else what refuses most."""
_OTHER = "O"


def layout_map(plan: PlanFile, words: Words) -> Iterator[Figure]:
    """Yield the step time of the best layout of every tp and pp, or why there is none."""
    if plan.map is None or not plan.map.cells:
        return
    cells = {(cell.tp, cell.pp): cell for cell in plan.map.cells}
    columns, rows = sorted({tp for tp, _ in cells}), sorted({pp for _, pp in cells})
    drawn = tuple(tuple(_cell(cells.get((tp, pp)), words) for tp in columns) for pp in rows)
    signs = {cell.sign: cell for row in drawn for cell in row if cell.value is None}
    meanings = {sign: reason for reason, sign in _SIGNS.items()}
    yield LayoutMap(
        name="layout-map",
        title=words("Best step of every tp x pp"),
        x_label=words("tensor parallel (tp)"),
        y_label=words("pipeline parallel (pp)"),
        unit=words("Seconds of a step"),
        columns=tuple(map(str, columns)),
        rows=tuple(map(str, rows)),
        cells=drawn,
        signs=tuple(
            (sign, words(meanings.get(sign, "refused for several reasons"))) for sign in signs
        ),
        caption=words(
            "The fastest layout that fits, over all that is free besides, estimated without "
            "contention; letters say why there is none."
        ),
    )


def _cell(cell: MapCell | None, words: Words) -> Cell:
    if cell is None:
        return Cell(value=None, sign=_OTHER)
    if cell.best is not None:
        best = cell.best
        size = number(best.peak_memory_bytes / GIB)
        return Cell(
            value=best.step_time_s, text=f"{best.name}: {seconds(best.step_time_s)}, {size} GiB"
        )
    most = max(cell.reasons, key=lambda reason: cell.reasons[reason], default="")
    most = _MEMORY if _MEMORY in cell.reasons else most
    text = "; ".join(
        f"{words(reason) if reason in _SIGNS else reason}: {count:,}"
        for reason, count in cell.reasons.items()
    )
    return Cell(value=None, sign=_SIGNS.get(most, _OTHER), text=text)


def top_layouts(plan: PlanFile, words: Words) -> Iterator[Figure]:
    """Yield the step times of the best layouts, with their intervals."""
    if not plan.layouts:
        return
    shown = plan.layouts
    yield Chart(
        name="top-layouts",
        title=words("The best layouts and their intervals"),
        x_label=words("Rank in the plan"),
        y_label=words("Seconds of a step"),
        series=(
            Series(
                label=words("step time, 80 % interval"),
                group="step",
                line=False,
                x=tuple(map(float, range(len(shown)))),
                y=tuple(each.step_time_s for each in shown),
                low=tuple(each.low for each in shown),
                high=tuple(each.high for each in shown),
                texts=tuple(each.name for each in shown),
            ),
        ),
        x_names=tuple(str(each.rank) for each in shown),
        caption=words(
            "Layouts of one job share most of their error, so that their order is surer than the "
            "intervals look."
        ),
    )


def best_two(plan: PlanFile, words: Words) -> Iterator[Figure]:
    """Yield the breakdown of the best layout beside that of the next ones."""
    shown = plan.layouts[:4]
    if not shown:
        return
    parts = tuple(
        Part(label=named(CATEGORIES, kind, words), values=values, tone=tone_of(CATEGORIES, kind))
        for kind in CATEGORIES
        for values in [tuple(each.breakdown_s.get(kind, 0.0) for each in shown)]
        if any(value > 0 for value in values)
    )
    yield Stacks(
        name="best-layouts-breakdown",
        title=words("Where the step of the best layouts goes"),
        y_label=words("Seconds of a step"),
        bars=tuple(f"{each.rank}: {each.name}" for each in shown),
        parts=parts,
        caption=words("Of the stage of each layout that works longest."),
    )


def front(plan: PlanFile, words: Words) -> Iterator[Figure]:
    """Yield the Pareto front of two objectives."""
    if plan.pareto is None or not plan.pareto.layouts:
        return
    yield front_chart(plan.pareto, plan.currency, words)


def front_chart(found: FrontFacts, currency: str, words: Words) -> Chart:
    """Return a Pareto front as a chart; costs are in `currency`."""
    (x_label, x_scale), (y_label, y_scale) = (
        OBJECTIVES.get(name, (name, 1.0)) for name in found.objectives
    )
    return Chart(
        name="pareto-front",
        title=words("Pareto front: no other layout is as good in both"),
        x_label=_with_currency(words(x_label), found.objectives[0], currency),
        y_label=_with_currency(words(y_label), found.objectives[1], currency),
        series=(
            Series(
                label=words("layouts of the front"),
                group="front",
                line=True,
                steps=True,
                x=tuple(point.values[0] * x_scale for point in found.layouts),
                y=tuple(point.values[1] * y_scale for point in found.layouts),
            ),
            Series(
                label=words("a layout"),
                group="layouts",
                line=False,
                x=tuple(point.values[0] * x_scale for point in found.layouts),
                y=tuple(point.values[1] * y_scale for point in found.layouts),
                texts=tuple(f"{p.name}, {p.accelerators:,} GPUs" for p in found.layouts),
            ),
        ),
        caption=words("At estimates without contention."),
    )


def _with_currency(label: str, objective: str, currency: str) -> str:
    return f"{label}, {currency}" if objective == "cost" and currency else label


def tornado(found: ExplainFile, words: Words) -> Iterator[Figure]:
    """Yield what each change would make of the step, with the best layout for it."""
    if not found.plan.layouts:
        return
    best = found.plan.layouts[0]
    swings = []
    for each in found.what_if:
        same, new = each.same_layout, each.best_layout
        ends = [one.speedup for one in (same, new) if one.speedup is not None]
        if ends:
            swings.append(
                Swing(label=each.name, low=min(ends), high=max(ends), text=new.name or same.name)
            )
    if swings:
        swings.sort(key=lambda swing: -max(abs(swing.low - 1), abs(swing.high - 1)))
        yield Tornado(
            name="what-if",
            title=words("What would make it faster"),
            x_label=words("Tokens/s over those of {layout}", layout=best.name),
            centre=1.0,
            swings=tuple(swings),
            caption=words(
                "Each change by itself: from the same layout to the best one for it; 1 is as now."
            ),
        )


def sensitivities(found: ExplainFile, words: Words) -> Iterator[Figure]:
    """Yield the step of the best layout with each source of error at its ends."""
    if not found.plan.layouts or not found.sensitivities:
        return
    yield Tornado(
        name="sensitivities",
        title=words("What the step is uncertain by"),
        x_label=words("Seconds of a step"),
        centre=found.plan.layouts[0].step_time_s,
        swings=tuple(
            Swing(label=each.source, low=each.low_s, high=each.high_s, text=each.origin)
            for each in found.sensitivities
        ),
        caption=words(
            "Each source of error at either end of its 80 % interval, all else as forecast."
        ),
    )


def uncertainty(plan: PlanFile, words: Words) -> Iterator[Figure]:
    """Yield by how much each source of error was taken to be off."""
    if plan.drawn is None:
        return
    sources: Mapping[str, float] = plan.drawn.sources
    ordered = sorted((item for item in sources.items() if item[1] > 0), key=lambda item: -item[1])
    if not ordered:
        return
    yield Tornado(
        name="uncertain-constants",
        title=words("What is uncertain, and by how much"),
        x_label=words("Factor of one standard deviation"),
        centre=1.0,
        swings=tuple(
            Swing(
                label=source,
                low=exp(-deviation),
                high=exp(deviation),
                text=plan.drawn.origins.get(source, ""),
            )
            for source, deviation in ordered
        ),
        caption=words("As drawn {draws} times, jointly.", draws=plan.drawn.draws),
    )
