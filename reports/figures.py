"""The overview picture of a simulated step: the pipeline's timeline above its breakdown.

What is drawn is computed by pure functions; matplotlib is touched only by `save_overview`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.results import Breakdown, Category, StepResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COMPUTE = "compute"
_COLOURS = {
    "forward": "#4477aa",
    "backward": "#66ccee",
    "optimizer": "#aa3377",
    "other": "#bbbbbb",
}
_SHARE_COLOURS = ("#77aadd", "#99ddff", "#44bb99", "#eedd88", "#ee8866", "#ffaabb", "#dddddd")
_REST = "rest"
_WIDTH, _HEIGHT, _DPI = 9.0, 3.6, 110
_SMALLEST = 0.02
"""Share of the step below which a category is added to the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of the timeline: seconds on the compute stream of a stage."""

    stage: int
    start: float
    length: float
    colour: str


def timeline_bars(result: StepResult) -> tuple[Bar, ...]:
    """Return the passes and updates of every stage."""
    return tuple(
        Bar(
            stage=span.stage,
            start=span.start,
            length=span.stop - span.start,
            colour=_COLOURS.get(span.name, _COLOURS["other"]),
        )
        for span in result.spans
        if span.stream == _COMPUTE
    )


def breakdown_shares(breakdown: Breakdown) -> tuple[tuple[str, float], ...]:
    """Return the share of each category of a step, in a fixed order, small ones together.

    >>> seconds = {Category.GEMM: 3.0, Category.BUBBLE: 0.99, Category.LAUNCH: 0.01}
    >>> breakdown_shares(Breakdown(stage=0, seconds=seconds))
    (('gemm', 0.75), ('bubble', 0.2475), ('rest', 0.0025))
    """
    shares = [
        (category.value.replace("_", " "), breakdown.seconds.get(category, 0.0) / breakdown.total)
        for category in Category
    ]
    shown = tuple(share for share in shares if share[1] >= _SMALLEST)
    rest = sum(value for _, value in shares if value < _SMALLEST)
    return (*shown, (_REST, rest)) if rest > 0 else shown


def save_overview(result: StepResult, title: str, path: Path | str) -> None:
    """Write a PNG of a simulated step to `path`; the same result gives the same file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, height_ratios=(3, 1))
    _draw_timeline(upper, timeline_bars(result))
    upper.set_title(f"{title}: {result.step_time:.2f} s a step", fontsize="medium", loc="left")
    _draw_shares(lower, breakdown_shares(result.breakdown))
    figure.savefig(path, metadata={"Software": None})


def _draw_timeline(axes: Axes, bars: Sequence[Bar]) -> None:
    for bar in bars:
        axes.barh(
            bar.stage,
            bar.length,
            left=bar.start,
            color=bar.colour,
            edgecolor="white",
            linewidth=0.2,
        )
    axes.invert_yaxis()
    axes.set_ylabel("stage")
    axes.set_xlabel("seconds (dark: forward, light: backward, white: idle)")
    axes.margins(x=0)


def _draw_shares(axes: Axes, shares: Sequence[tuple[str, float]]) -> None:
    left = 0.0
    for index, (name, share) in enumerate(shares):
        axes.barh(0, share, left=left, color=_SHARE_COLOURS[index % len(_SHARE_COLOURS)])
        label = "\n".join([*name.split(), f"{share:.0%}"])
        middle = left + share / 2
        if name != _REST:
            axes.text(middle, 0, label, ha="center", va="center", fontsize="x-small")
        left += share
    axes.set_axis_off()
    axes.margins(x=0)
