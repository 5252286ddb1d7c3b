"""Text in figures: never a formula, and short where it stands beside bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.quantities import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_LONG = 40
"""Characters of a label that fit beside a figure."""
_DECADES = 5.0
"""Ratio of the ends of a logarithmic axis up to which numbers between powers of ten are written."""


def label_text(text: str) -> str:
    """Return text in which matplotlib sees no formula, whatever signs are in it."""
    return plain(text).replace("$", r"\$")


def label_lines(lines: list[str]) -> str:
    """Return lines below each other, each as `label_text` has it."""
    return "\n".join(map(label_text, lines))


def short(text: str, most: int = _LONG) -> str:
    """Return a label that leaves room for the figure: its beginning, and that there is more."""
    return label_text(text if len(text) <= most else f"{text[: most - 1]}…")


def plain_numbers(axis: Axis, *, log: bool) -> None:
    """Write numbers along an axis as they are, without a factor of ten; powers where it is long."""
    from matplotlib.ticker import FuncFormatter

    low, high = sorted(axis.get_view_interval())
    if log and (low <= 0 or high > _DECADES * low):
        return
    written = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axis.set_major_formatter(written)
    if log:
        axis.set_minor_formatter(written)
        axis.set_tick_params(which="minor", labelsize="small")


def legend_below(axes: Axes) -> None:
    """Put the legend below the figure, where it hides nothing."""
    axes.figure.legend(loc="outside lower center", ncols=4, fontsize="x-small", frameon=False)
