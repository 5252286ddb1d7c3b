"""Figures drawn by matplotlib, as files or as SVG that can stand inside a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from reports.chart_ticks import x_ticks
from reports.charts import (
    Chart,
    Diagram,
    Figure,
    HeatMap,
    Histogram,
    LayoutMap,
    Series,
    Stacks,
    Timeline,
    Tornado,
)
from reports.palette import BOXES, BRIGHT, GREY, LIGHT, utilised
from reports.quantities import plain
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = BRIGHT
_WIDTH, _HEIGHT, _DPI = 7.0, 3.6, 150
_ROW, _AROUND, _MOST_HEIGHT = 0.32, 1.9, 9.0
"""Inches of a row, of what is around the rows, and of the highest figure."""
_MOST_MARKS = 1500
"""Marks of a figure that are drawn one by one; more become a picture inside it."""
_MOST_LABELS = 14
"""Entries of a legend that leave room for the figure."""
_LONG = 40
"""Characters of a label that fit beside a figure."""
_LIMIT = "#cc3311"
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.S)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.S)
_CJK = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
_CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "SimHei",
)
"""Fonts with Chinese signs, of which the first that is installed is taken."""


def svg_of(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element; `name` keeps the ids of one page apart.

    The same figure and name give the same text.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        canvas = Canvas(figsize=_size(figure), layout="constrained")
        FigureCanvasSVG(canvas)
        _draw(figure, canvas.subplots())
        written = io.StringIO()
        with warnings.catch_warnings():
            # Text of an SVG is drawn by the fonts of who reads it.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            canvas.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    return _METADATA.sub("", _PROLOGUE.sub("", written.getvalue(), count=1)).strip()


def png_of(figure: Figure) -> bytes:
    """Return a figure as a PNG on white; the same figure gives the same bytes.

    Raises:
        InputError: it has Chinese text, and no font that could write it is installed.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=_size(figure), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(canvas)
    fonts: Any = _fonts(figure)
    with mpl.rc_context(fonts):
        _draw(figure, canvas.subplots())
        written = io.BytesIO()
        canvas.savefig(written, format="png", metadata={"Software": None})
    return written.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole, or not at all; the name's ending, .png or .svg, says how."""
    from simulator.files import write_atomic, write_bytes_atomic

    if path.suffix == ".svg":
        write_atomic(path, svg_of(figure, figure.name or path.stem) + "\n")
    else:
        write_bytes_atomic(path, png_of(figure))


def _fonts(figure: Figure) -> dict[str, Any]:
    """Return settings under which all text of a figure can be written."""
    if not _CJK.search(repr(figure)):
        return {}
    from matplotlib import font_manager

    return {"font.family": ["DejaVu Sans", chinese_font(font_manager.get_font_names())]}


def chinese_font(installed: Collection[str]) -> str:
    """Return the name of an installed font with Chinese signs.

    Raises:
        InputError: there is none.
    """
    found = next((name for name in _CJK_FONTS if name in installed), None)
    if found is None:
        raise InputError(
            Problem(
                key="--figures",
                rule="Chinese text in PNG needs a font that has it, and none is installed",
                fix="install one (Debian, Ubuntu: fonts-wqy-zenhei), or --figure-format svg",
            )
        )
    return found


def _size(figure: Figure) -> tuple[float, float]:
    """Return the inches of a figure."""
    match figure:
        case Stacks():
            rows = len(figure.bars) + 2
        case Timeline():
            rows = len(figure.rows)
        case LayoutMap():
            rows = len(figure.rows) + 1
        case Tornado():
            rows = len(figure.swings)
        case Diagram():
            rows = 3 * int(1 + max((box.y for box in figure.boxes), default=0))
        case _:
            rows = 0
    return _WIDTH, min(_MOST_HEIGHT, max(_HEIGHT, _AROUND + _ROW * rows))


def _draw(figure: Figure, axes: Axes) -> None:
    match figure:
        case Chart():
            _draw_chart(axes, figure)
        case Histogram():
            _draw_histogram(axes, figure)
        case HeatMap():
            _draw_map(axes, figure)
        case Stacks():
            _draw_stacks(axes, figure)
        case Timeline():
            _draw_timeline(axes, figure)
        case LayoutMap():
            _draw_layouts(axes, figure)
        case Tornado():
            _draw_tornado(axes, figure)
        case Diagram():
            _draw_diagram(axes, figure)
        case _:
            assert_never(figure)
    axes.set_title(label_text(figure.title), fontsize="medium", loc="left")


def label_text(text: str) -> str:
    """Return text in which matplotlib sees no formula, whatever signs are in it."""
    return plain(text).replace("$", r"\$")


def _short(text: str) -> str:
    """Return a label that leaves room for the figure: its beginning, and that there is more."""
    text = label_text(text)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _draw_chart(axes: Axes, chart: Chart) -> None:
    groups = list(dict.fromkeys(series.group for series in chart.series))
    many = sum(len(series.x) for series in chart.series) > _MOST_MARKS
    for series in chart.series:
        colour = COLOURS[groups.index(series.group) % len(COLOURS)]
        _draw_series(axes, series, colour, many=many)
    if chart.log_x:
        axes.set_xscale("log")
    ticks = x_ticks(chart)
    if ticks:
        axes.set_xticks([x for x, _ in ticks], [_short(text) for _, text in ticks])
        axes.set_xticks([], minor=True)
    if chart.x_names:
        axes.set_xlim(-0.5, len(chart.x_names) - 0.5)
    if chart.log_y:
        axes.set_yscale("log")
    if chart.diagonal:
        ends = [value for series in chart.series for value in (*series.x, *series.y)]
        low, high = min(ends), max(ends)
        axes.plot([low, high], [low, high], color=GREY, linewidth=0.8)
        for factor in (1 + chart.tolerance, 1 / (1 + chart.tolerance)) if chart.tolerance else ():
            edge = [low * factor, high * factor]
            axes.plot([low, high], edge, color=GREY, linewidth=0.6, linestyle="--")
    for rule in chart.rules:
        axes.axhline(rule.y, color=_LIMIT, linestyle="--", linewidth=1, label=_short(rule.label))
    axes.set_xlabel(label_text(chart.x_label))
    axes.set_ylabel(label_text(chart.y_label))
    if len(chart.series) <= _MOST_LABELS:
        axes.legend(fontsize="x-small", framealpha=0.5)


def _draw_series(axes: Axes, series: Series, colour: str, *, many: bool) -> None:
    label, style = _short(series.label), _marks(many=many)
    if series.line:
        shape = "steps-post" if series.steps else "default"
        mark = "x" if len(series.x) == 1 else "o" if series.low else ""
        style = {"linestyle": "-", "marker": mark, "markersize": 4, "drawstyle": shape}
    if series.low:
        below = [y - low for y, low in zip(series.y, series.low, strict=True)]
        above = [high - y for y, high in zip(series.y, series.high, strict=True)]
        axes.errorbar(
            series.x, series.y, [below, above], color=colour, label=label, capsize=2, **style
        )
        return
    axes.plot(series.x, series.y, color=colour, label=label, **style)


def _marks(*, many: bool) -> dict[str, Any]:
    return {"linestyle": "", "marker": "o", "markersize": 4, "alpha": 0.8, "rasterized": many}


def _draw_histogram(axes: Axes, histogram: Histogram) -> None:
    width = histogram.edges[1] - histogram.edges[0]
    axes.bar(histogram.edges[:-1], histogram.counts, width, align="edge", color=COLOURS[0])
    if histogram.marks:
        for mark in histogram.marks:
            axes.axvline(mark.y, color=_LIMIT, linestyle="--", linewidth=1)
            axes.annotate(
                label_text(mark.label), (mark.y, max(histogram.counts)), fontsize="x-small"
            )
    else:
        axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel(label_text(histogram.x_label))
    axes.set_ylabel(label_text(histogram.y_label))


def _draw_map(axes: Axes, heat: HeatMap) -> None:
    import numpy as np

    values = np.array(heat.values, dtype=float)
    picture = axes.imshow(values, aspect="auto", cmap="viridis")
    axes.figure.colorbar(picture, ax=axes, label=label_text(heat.unit))
    ticks = range(0, len(heat.ranks), max(1, len(heat.ranks) // _MOST_LABELS))
    axes.set_xticks(list(ticks), [str(heat.ranks[tick]) for tick in ticks])
    axes.set_yticks(list(ticks), [str(heat.ranks[tick]) for tick in ticks])
    axes.set_xlabel(label_text(heat.x_label))
    axes.set_ylabel(label_text(heat.y_label))


def _draw_stacks(axes: Axes, stacks: Stacks) -> None:
    places = range(len(stacks.bars))
    left = [0.0] * len(stacks.bars)
    for number, part in enumerate(stacks.parts):
        colour = LIGHT[number % len(LIGHT)]
        axes.barh(places, part.values, left=left, color=colour, label=_short(part.label))
        left = [start + value for start, value in zip(left, part.values, strict=True)]
    axes.set_yticks(list(places), [_short(bar) for bar in stacks.bars], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(label_text(stacks.y_label))
    if stacks.limit is not None:
        axes.axvline(
            stacks.limit.y,
            color=_LIMIT,
            linestyle="--",
            linewidth=1,
            label=_short(stacks.limit.label),
        )
    _legend_below(axes)


def _legend_below(axes: Axes) -> None:
    figure = axes.figure
    figure.legend(loc="outside lower center", ncols=4, fontsize="x-small", frameon=False)


def _draw_timeline(axes: Axes, timeline: Timeline) -> None:
    from matplotlib.collections import PolyCollection

    used = [kind for kind in range(len(timeline.kinds)) if kind in set(timeline.kind)]
    for number, kind in enumerate(used):
        bars = [
            _rectangle(timeline.row[i], timeline.start[i], timeline.stop[i])
            for i, each in enumerate(timeline.kind)
            if each == kind
        ]
        axes.add_collection(
            PolyCollection(
                bars,
                facecolor=LIGHT[number % len(LIGHT)],
                edgecolor="white",
                linewidth=0.15,
                label=_short(timeline.kinds[kind]),
                rasterized=len(timeline.row) > _MOST_MARKS,
            )
        )
    axes.set_xlim(0, max(timeline.stop))
    axes.set_ylim(len(timeline.rows) - 0.5, -0.5)
    ticks = list(range(0, len(timeline.rows), max(1, len(timeline.rows) // 16)))
    names = [label_text(timeline.rows[tick]) for tick in ticks]
    axes.set_yticks(ticks, names, fontsize="small")
    axes.set_xlabel(label_text(timeline.x_label))
    _legend_below(axes)


def _rectangle(row: int, start: float, stop: float) -> Sequence[tuple[float, float]]:
    low, high = row - 0.42, row + 0.42
    return (start, low), (stop, low), (stop, high), (start, high)


def _draw_layouts(axes: Axes, found: LayoutMap) -> None:
    import numpy as np

    values = np.array([[cell.value for cell in row] for row in found.cells], dtype=float)
    picture = axes.imshow(values, aspect="auto", cmap="viridis_r", origin="lower")
    axes.figure.colorbar(picture, ax=axes, label=label_text(found.unit))
    middle = np.nanmean(values) if np.isfinite(values).any() else 0.0
    for row, cells in enumerate(found.cells):
        for column, cell in enumerate(cells):
            none = cell.value is None
            text = cell.sign if none else f"{cell.value:.4g}"
            colour = GREY if none else "white" if (cell.value or 0.0) > middle else "black"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize="x-small")
    axes.set_xticks(range(len(found.columns)), list(found.columns))
    axes.set_yticks(range(len(found.rows)), list(found.rows))
    axes.set_xlabel(label_text(found.x_label))
    axes.set_ylabel(label_text(found.y_label))
    if found.signs:
        meaning = "\n".join(f"{sign}: {text}" for sign, text in found.signs)
        axes.figure.supxlabel(label_text_lines(meaning), fontsize="x-small")


def label_text_lines(text: str) -> str:
    """Return lines of text as `label_text` does each of them."""
    return "\n".join(map(label_text, text.splitlines()))


def _draw_tornado(axes: Axes, tornado: Tornado) -> None:
    for place, swing in enumerate(tornado.swings):
        low = min(swing.low, swing.high, tornado.centre)
        high = max(swing.low, swing.high, tornado.centre)
        colour = COLOURS[0] if high > tornado.centre else COLOURS[1]
        axes.barh(place, high - low, left=low, color=colour)
    axes.axvline(tornado.centre, color=GREY, linewidth=1)
    axes.use_sticky_edges = False
    axes.margins(y=0.02)
    labels = [_short(swing.label) for swing in tornado.swings]
    axes.set_yticks(range(len(labels)), labels, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(label_text(tornado.x_label))


def _draw_diagram(axes: Axes, diagram: Diagram) -> None:
    for cable in diagram.cables:
        one, other = diagram.boxes[cable.one], diagram.boxes[cable.other]
        axes.plot([one.x, other.x], [one.y, other.y], color=utilised(cable.used), zorder=1)
    for box in diagram.boxes:
        axes.text(
            box.x,
            box.y,
            _short(box.label),
            ha="center",
            va="center",
            fontsize="xx-small",
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.3",
                "facecolor": BOXES.get(box.kind, GREY),
                "linewidth": 0.4,
            },
        )
    heights = [box.y for box in diagram.boxes]
    axes.set_xlim(-0.05, 1.05)
    axes.set_ylim(min(heights) - 0.5, max(heights) + 0.5)
    axes.set_axis_off()
