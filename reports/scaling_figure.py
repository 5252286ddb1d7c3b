"""The picture of a sweep: one quantity with its interval over the first key, lines by the others.

What is drawn is computed by pure functions; matplotlib is touched only by `scaling_picture`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from planner.sweep.row import Row
from planner.sweep.run import Swept
from planner.sweep.sweep_file import Axis, Quantity
from reports.drawing import COLOURS, label_text
from reports.quantities import plain
from reports.sweep_view import value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT, _DPI = 7.0, 4.2, 130
_IDEAL = "#888888"
_CAP = 3.0
_LABELS = {
    Quantity.TOKENS_PER_SECOND: "tokens/s",
    Quantity.STEP_TIME: "step time, s",
    Quantity.MFU: "MFU",
    Quantity.DAYS: "days for all tokens",
    Quantity.COST: "cost of all tokens",
    Quantity.RUN_DAYS: "days of the whole run, 10th to 90th percentile",
    Quantity.RUN_COST: "cost of the whole run, in step with its days",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One forecast: `x` is a place where the values of the key are not numbers."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Combinations that differ in the first key only."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What the picture shows."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    ticks: tuple[str, ...] = ()
    """Names of the places on the x axis, from 0; empty where it is one of numbers."""
    ideal: tuple[Line, ...] = ()
    """Of each line, if its rate grew with the nodes from its first point on."""
    missing: int = 0
    """Combinations that have no such forecast."""


def scaling_of(swept: Swept, axes: Sequence[Axis], shown: Quantity, title: str) -> Scaling:
    """Return one line for each combination of the keys after the first."""
    first, *others = axes
    names = [point[0] for point in first.points]
    numeric = all(_is_number(name) for name in names)
    groups: dict[str, list[Point]] = {}
    missing = 0
    for case, row in zip(swept.cases, swept.rows, strict=True):
        label = ", ".join(_words(case.values[axis.keys[0]]) for axis in others)
        points = groups.setdefault(label, [])
        value = case.values[first.keys[0]]
        ends = _ends(row, shown) if row.runs else None
        if ends is None:
            missing += 1
        else:
            points.append(_point(float(value) if numeric else names.index(value), ends))
    lines = tuple(
        Line(label=label, points=tuple(sorted(points, key=lambda point: point.x)))
        for label, points in groups.items()
        if points
    )
    scales = shown is Quantity.TOKENS_PER_SECOND and first.keys[0] == _NODES and numeric
    return Scaling(
        title=title,
        x_label=first.keys[0],
        y_label=_LABELS[shown],
        lines=lines,
        ticks=() if numeric else tuple(map(_words, names)),
        ideal=tuple(map(_ideal, lines)) if scales else (),
        missing=missing,
    )


_NODES = "cluster.nodes"


def _ends(row: Row, shown: Quantity) -> tuple[float, float, float] | None:
    """Return a quantity with the ends of its interval; None where the row has none."""
    step, low, high = row.step_time_s, row.low_s, row.high_s
    assert step is not None, "the row runs"
    assert low is not None, "the row runs"
    assert high is not None, "the row runs"
    value = getattr(row, shown.value)
    if value is None:
        return None
    match shown:
        case Quantity.TOKENS_PER_SECOND | Quantity.MFU:
            return value, value * step / high, value * step / low
        case Quantity.STEP_TIME | Quantity.DAYS | Quantity.COST:
            return value, value * low / step, value * high / step
        case Quantity.RUN_DAYS | Quantity.RUN_COST:
            days = row.run_days_p10, row.run_days_p50, row.run_days_p90
            least, middle, most = (one for one in days if one is not None)
            return value, value * least / middle, value * most / middle
        case _:
            assert_never(shown)


def _point(x: float, ends: tuple[float, float, float]) -> Point:
    value, low, high = ends
    return Point(x=x, y=value, low=low, high=high)


def _ideal(line: Line) -> Line:
    """Return what a line would be if its rate grew with the nodes."""
    start = line.points[0]
    points = tuple(
        Point(x=p.x, y=y, low=y, high=y) for p in line.points for y in (start.y * p.x / start.x,)
    )
    return Line(label="in proportion", points=points)


def scaling_picture(scaling: Scaling, form: str) -> bytes:
    """Return a picture as a file of the form "png" or "svg"; the same figure gives the same."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "traincast", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure.subplots(), scaling)
        written = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(written, format=form, metadata=metadata)
    return written.getvalue()


def _draw(axes: Axes, scaling: Scaling) -> None:
    for number, line in enumerate(scaling.lines):
        axes.errorbar(
            [point.x for point in line.points],
            [point.y for point in line.points],
            yerr=_bars(line),
            color=COLOURS[number % len(COLOURS)],
            label=label_text(line.label),
            marker="o",
            markersize=4,
            linestyle="" if scaling.ticks else "-",
            linewidth=1.0,
            capsize=_CAP,
        )
    for number, line in enumerate(scaling.ideal):
        x, y = zip(*((point.x, point.y) for point in line.points), strict=True)
        label = line.label if number == 0 else None
        axes.plot(x, y, color=_IDEAL, linestyle="--", linewidth=0.8, label=label)
    if scaling.ticks:
        axes.set_xticks(range(len(scaling.ticks)), [label_text(tick) for tick in scaling.ticks])
    else:
        places = sorted({point.x for line in scaling.lines for point in line.points})
        axes.set_xticks(places, [value_text(_whole(place)) for place in places])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label_text(scaling.x_label))
    axes.set_ylabel(f"{label_text(scaling.y_label)}, 80 % interval")
    axes.set_title(label_text(scaling.title), fontsize="medium", loc="left")
    if scaling.missing:
        words = f"{scaling.missing} without a forecast"
        axes.annotate(words, (1, 1), (0, 4), "axes fraction", "offset points", ha="right")
    if len(scaling.lines) > 1 or scaling.ideal:
        axes.legend(fontsize="x-small", framealpha=0.5)


def _bars(line: Line) -> list[list[float]]:
    return [
        [point.y - point.low for point in line.points],
        [point.high - point.y for point in line.points],
    ]


def _words(value: Any) -> str:
    return plain(value_text(value))


def _whole(value: float) -> float:
    return int(value) if value.is_integer() else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
