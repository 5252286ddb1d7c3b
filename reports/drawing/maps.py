"""Figures made of cells: a value for pairs of ranks, and one for layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.charts import HeatMap, LayoutMap
from reports.drawing.text import label_lines, label_text
from reports.palette import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LABELS = 14
"""Ranks that are named along an axis."""


def draw_heat_map(axes: Axes, heat: HeatMap) -> None:
    """Draw a cell a pair of ranks; a pair that was not measured is a hole."""
    import numpy as np

    values = np.array(heat.values, dtype=float)
    picture = axes.imshow(values, aspect="auto", cmap="viridis")
    axes.figure.colorbar(picture, ax=axes, label=label_text(heat.unit))
    ticks = range(0, len(heat.ranks), max(1, len(heat.ranks) // _MOST_LABELS))
    axes.set_xticks(list(ticks), [str(heat.ranks[tick]) for tick in ticks])
    axes.set_yticks(list(ticks), [str(heat.ranks[tick]) for tick in ticks])
    axes.set_xlabel(label_text(heat.x_label))
    axes.set_ylabel(label_text(heat.y_label))


def draw_layout_map(axes: Axes, found: LayoutMap) -> None:
    """Draw a cell for each pair of degrees, with its value or the sign of why it has none."""
    import numpy as np

    values = np.array([[cell.value for cell in row] for row in found.cells], dtype=float)
    known = values[np.isfinite(values)]
    axes.set_xticks(range(len(found.columns)), list(map(label_text, found.columns)))
    axes.set_yticks(range(len(found.rows)), list(map(label_text, found.rows)))
    axes.set_xlim(-0.5, len(found.columns) - 0.5)
    axes.set_ylim(-0.5, len(found.rows) - 0.5)
    if known.size:
        picture = axes.imshow(values, aspect="auto", cmap="viridis_r", origin="lower")
        axes.figure.colorbar(picture, ax=axes, label=label_text(found.unit))
    middle = (known.min() + known.max()) / 2 if known.size else 0.0
    for row, cells in enumerate(found.cells):
        for column, cell in enumerate(cells):
            none = cell.value is None
            text = label_text(cell.sign) if none else f"{cell.value:.4g}"
            colour = GREY if none else "white" if (cell.value or 0.0) > middle else "black"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize="x-small")
    axes.set_xlabel(label_text(found.x_label))
    axes.set_ylabel(label_text(found.y_label))
    if found.signs:
        meanings = label_lines([f"{sign}: {text}" for sign, text in found.signs])
        axes.figure.supxlabel(meanings, fontsize="x-small", ha="left", x=0.02)
