"""Figures drawn by matplotlib, as files or as SVG that can stand inside a page.

Each module draws the figures of one kind; the same figure always gives the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reports.charts import Figure
from reports.drawing.draw import draw, size_of
from reports.drawing.fonts import font_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_DPI = 150
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.S)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.S)


def svg_of(figures: Figure | Sequence[Figure], name: str) -> str:
    """Return a figure, or several below each other, as an SVG element.

    `name` keeps the ids of one page apart. The same figures and name give the same text.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        canvas = _canvas(figures)
        FigureCanvasSVG(canvas)
        written = io.StringIO()
        with warnings.catch_warnings():
            # Text of an SVG is drawn by the fonts of who reads it.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            canvas.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    return _METADATA.sub("", _PROLOGUE.sub("", written.getvalue(), count=1)).strip()


def png_of(figures: Figure | Sequence[Figure]) -> bytes:
    """Return a figure, or several below each other, as a PNG on white.

    Raises:
        InputError: one has Chinese text, and no font that could write it is installed.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(font_settings(repr(figures))):
        canvas = _canvas(figures)
        FigureCanvasAgg(canvas)
        written = io.BytesIO()
        canvas.savefig(written, format="png", metadata={"Software": None})
    return written.getvalue()


def _canvas(figures: Figure | Sequence[Figure]) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    shown = list(figures) if isinstance(figures, Sequence) else [figures]
    widths, heights = zip(*map(size_of, shown), strict=True)
    canvas = Canvas(figsize=(max(widths), sum(heights)), dpi=_DPI, layout="constrained")
    areas = canvas.subfigures(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for figure, area in zip(shown, areas, strict=True):
        draw(figure, area.subplots())
    return canvas
