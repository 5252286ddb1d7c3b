"""Pictures of a topology drawn by matplotlib, as PNG or SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reports.drawing import label_text
from reports.palette import BOXES, utilised
from reports.quantities import number, percent
from reports.topology_figure import Line, Picture, topology_pictures
from simulator.errors import InputError, Problem
from simulator.topology.graph import FloatArray
from simulator.topology.topology import Topology
from simulator.units import GB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SUFFIXES = (".png", ".svg")
_WIDTH, _ROW, _DPI = 10.0, 1.1, 110
_THIN, _THICK = 0.4, 4.0
"""Points of the narrowest and the widest line."""
_MOST_LABELS = 24
"""Lines of a picture up to which each has its bandwidth written on it."""
_SMALL = 5
"""Points of the bandwidth on a line."""
_LONG = 14
"""Characters of a name that fit on a box."""


def save_topology(
    topology: Topology, path: Path | str, utilisation: FloatArray | None = None
) -> None:
    """Write a picture of a topology; its name says the format.

    Raises:
        InputError: the name ends with neither .png nor .svg.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    form = figure_suffix(path)
    pictures = topology_pictures(topology, utilisation)
    heights = [1 + max(box.y for box in picture.boxes) for picture in pictures]
    with mpl.rc_context({"svg.hashsalt": topology.title, "svg.fonttype": "none"}):
        size = (_WIDTH, _ROW * sum(height + 1 for height in heights))
        figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(pictures), 1, squeeze=False, height_ratios=heights)
        for picture, area in zip(pictures, axes.ravel(), strict=True):
            _draw(area, picture)
        if utilisation is not None:
            figure.supxlabel(_legend(topology, utilisation), fontsize="xx-small")
        metadata = {"Date": None} if form == ".svg" else {"Software": None}
        figure.savefig(path, format=form[1:], metadata=metadata)


def figure_suffix(path: Path | str) -> str:
    """Return the ending of a picture's name, which says its format.

    Raises:
        InputError: it is neither .png nor .svg.
    """
    form = Path(path).suffix.lower()
    if form not in _SUFFIXES:
        rule = "must end with .png or .svg, which says the format"
        fix = f"{Path(path).stem or 'topology'}.svg"
        raise InputError(Problem(key="--figure", found=str(path)[:200], rule=rule, fix=fix))
    return form


def _legend(topology: Topology, utilisation: FloatArray) -> str:
    """Return what colours mean, and which link is the fullest."""
    fullest = int(np.nanargmax(utilisation))
    return (
        "Lines from blue (idle) to red (full over the whole step), by the fullest link of each; "
        "grey: not counted.\n"
        f"Fullest: {label_text(topology.link_name(fullest))}, {percent(utilisation[fullest])}"
    )


def _draw(axes: Axes, picture: Picture) -> None:
    widest = max((line.capacity for line in picture.lines), default=1.0)
    for line in picture.lines:
        _draw_line(axes, picture, line, widest, labelled=len(picture.lines) <= _MOST_LABELS)
    for box in picture.boxes:
        axes.text(
            box.x,
            box.y,
            _short(box.label),
            ha="center",
            va="center",
            fontsize="xx-small",
            zorder=3,
            bbox={"boxstyle": "round,pad=0.3", "facecolor": BOXES[box.kind], "linewidth": 0.4},
        )
    axes.set_title(label_text(picture.title), fontsize="small", loc="left")
    axes.set_xlim(-0.05, 1.05)
    heights: Sequence[float] = [box.y for box in picture.boxes]
    axes.set_ylim(min(heights) - 0.5, max(heights) + 0.5)
    axes.set_axis_off()


def _draw_line(axes: Axes, picture: Picture, line: Line, widest: float, *, labelled: bool) -> None:
    one, other = picture.boxes[line.one], picture.boxes[line.other]
    share = (line.capacity / widest) ** 0.5
    crowd = min(1.0, _MOST_LABELS / len(picture.lines))
    axes.plot(
        [one.x, other.x],
        [one.y, other.y],
        color=utilised(line.utilisation),
        linewidth=_THIN + share * crowd * (_THICK - _THIN),
        zorder=1,
        solid_capstyle="butt",
    )
    if labelled:
        text = f"{number(line.capacity / GB, 3)} GB/s"
        if line.utilisation is not None:
            text += f", {line.utilisation:.0%}"
        middle = (one.x + other.x) / 2, (one.y + other.y) / 2
        white: dict[str, object] = {
            "boxstyle": "square,pad=0.1",
            "facecolor": "white",
            "linewidth": 0,
        }
        axes.text(
            *middle,
            text,
            fontsize=_SMALL,
            ha="center",
            va="center",
            color="#444444",
            bbox=white,
            zorder=2,
        )


def _short(label: str) -> str:
    """Return a name that fits on a box: its end is what tells it from others.

    >>> _short("pcie-0000:1a:00.0 x 2")
    '…0:1a:00.0 x 2'
    """
    label = label_text(label)
    return label if len(label) <= _LONG else f"…{label[1 - _LONG :]}"
