"""Colours of figures, the same in pages and in files; colour-blind readers can tell them apart."""

from __future__ import annotations

from collections.abc import Iterable

BRIGHT = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Paul Tol's "bright" scheme: lines and marks."""
LIGHT = (
    *("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00"),
    *("#dddddd", "#8899aa", "#cc99bb", "#88ccaa", "#ddaa77"),
)
"""Paul Tol's "light" scheme, with five shades more: areas."""
BOXES = {
    "unit": "#77aadd",
    "accelerator": "#99ddff",
    "nic": "#eedd88",
    "switch": "#ee8866",
    "host": "#dddddd",
}
"""Devices of a network by their kind."""
GREY = "#888888"
LIMIT = "#cc3311"
"""What must not be crossed."""
ON_LIGHT = "#16171a"
"""Text on an area, whatever the theme."""


def area(tone: int) -> str:
    """Return the colour of an area."""
    return LIGHT[tone % len(LIGHT)]


def lines(groups: Iterable[str]) -> dict[str, str]:
    """Return the colour of each group of lines and marks, in the order of their first mention."""
    return {group: BRIGHT[n % len(BRIGHT)] for n, group in enumerate(dict.fromkeys(groups))}


def utilised(used: float | None) -> str:
    """Return grey where it is not known; else from blue (idle) to red (full).

    >>> utilised(0.0), utilised(1.0), utilised(None)
    ('#4578ab', '#ed666b', '#888888')
    """
    if used is None:
        return GREY
    full = min(1.0, max(0.0, used))
    red, green, blue = (0.27 + 0.66 * full, 0.47 - 0.07 * full, 0.67 - 0.25 * full)
    return "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))
