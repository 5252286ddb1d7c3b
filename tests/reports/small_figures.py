"""A small figure of each kind, made by hand, and how many marks it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from reports.charts import (
    Box,
    Cable,
    Cell,
    Chart,
    Diagram,
    Figure,
    HeatMap,
    Histogram,
    LayoutMap,
    Limit,
    Part,
    Rule,
    Series,
    Stacks,
    Swing,
    Timeline,
    Tornado,
)
from reports.result_files.parts import ResultRecord

_Record = TypeVar("_Record", bound=ResultRecord)
POINTS = Series(
    label="runs",
    group="runs",
    line=False,
    x=(1.0, 2.0, 4.0),
    y=(10.0, 20.0, 50.0),
    low=(9.0, 18.0, 40.0),
    high=(12.0, 22.0, 60.0),
    texts=("one", "two", "four"),
)
CHART = Chart(
    title="Chart",
    x_label="GPUs",
    y_label="s",
    series=(POINTS,),
    log_x=True,
    rules=(Rule(label="at most", y=30.0),),
)
HISTOGRAM = Histogram(
    title="Histogram",
    x_label="days",
    edges=(0.0, 1.0, 2.0),
    counts=(3, 5),
    marks=(Rule(label="p50", y=1.5),),
)
HEAT_MAP = HeatMap(title="Pairs", unit="GB/s", ranks=(0, 1), values=((None, 40.0), (20.0, None)))
STACKS = Stacks(
    title="Memory",
    y_label="GiB",
    bars=("stage 0", "stage 1"),
    parts=(Part(label="weights", values=(8.0, 6.0)), Part(label="logits", values=(0.0, 2.0))),
    limit=Limit(label="capacity 80 GiB", values=(80.0, 64.0)),
)
TIMELINE = Timeline(
    title="Timeline",
    rows=("stage 0", "stage 1"),
    kinds=("forward", "backward"),
    row=(0, 1, 1, 0),
    kind=(0, 0, 1, 1),
    start=(0.0, 1.0, 2.0, 4.0),
    stop=(1.0, 2.0, 4.0, 6.0),
    texts=("forward 0", "forward 0", "backward 0", "backward 0"),
    x_label="s",
)
LAYOUT_MAP = LayoutMap(
    title="Layouts",
    x_label="tp",
    y_label="pp",
    unit="s",
    columns=("1", "2"),
    rows=("1",),
    cells=((Cell(value=None, sign="X", text="does not fit in memory: 4"), Cell(value=2.5)),),
    signs=(("X", "does not fit in memory"),),
)
TORNADO = Tornado(
    title="What if",
    x_label="tokens/s over now",
    centre=1.0,
    swings=(
        Swing(label="nodes x2", low=1.5, high=1.9, text="tp2"),
        Swing(label="half the links", low=0.8, high=0.9),
    ),
)
DIAGRAM = Diagram(
    title="Network",
    boxes=(
        Box(label="leaf", kind="switch", x=0.5, y=1.0),
        Box(label="node0", kind="unit", x=0.0, y=0.0),
        Box(label="node1", kind="unit", x=1.0, y=0.0),
    ),
    cables=(
        Cable(one=0, other=1, used=0.5, text="leaf - node0: 50 GB/s, 50 %"),
        Cable(one=0, other=2, used=None, text="leaf - node1: 50 GB/s"),
    ),
    unit="utilisation",
)
MARKS: tuple[tuple[Figure, int], ...] = (
    (CHART, 3),
    (HISTOGRAM, 2),
    (HEAT_MAP, 2),
    (STACKS, 4),
    (TIMELINE, 4),
    (LAYOUT_MAP, 2),
    (TORNADO, 2),
    (DIAGRAM, 3),
)
"""Each with its points, bars, known cells, or boxes."""
SMALL: tuple[Figure, ...] = tuple(figure for figure, _ in MARKS)


def only(figures: Iterable[Figure]) -> Any:
    """Return the one figure there is, whatever its kind."""
    (figure,) = figures
    return figure


def partly(kind: type[_Record], **fields: Any) -> _Record:
    """Return a record that has only what a figure reads."""
    construct: Any = kind.model_construct
    record: _Record = construct(**fields)
    return record
