"""What colours and weights on a terminal mean; every view takes them from here."""

from __future__ import annotations

from enum import StrEnum


class Style(StrEnum):
    """A meaning, as rich draws it. Words say it too: nothing is told by colour alone."""

    PLAIN = ""
    TITLE = "bold"
    HEADING = "bold underline"
    PICK = "green"
    """What the forecast recommends: the first row of a plan."""
    CARE = "yellow"
    """A warning, or what was assumed and not given."""
    BAD = "bold red"
    """Does not fit, is not possible, or failed a check."""
    MUTED = "dim"
    """Notes below a table, and where numbers come from."""
