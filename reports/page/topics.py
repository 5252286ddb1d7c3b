"""What the sentences of a summary are about, in the order in which it says them."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias


class Topic(StrEnum):
    """What a sentence of a summary is about."""

    PICK = "pick"
    WHY = "why"
    RISK = "risk"
    ASSUMED = "assumed"
    CALIBRATED = "calibrated"
    VALIDATED = "validated"


Said: TypeAlias = tuple[Topic, str]
"""A sentence and what it is about."""
