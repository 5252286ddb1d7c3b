"""What a pipeline stage does next: the unit that every schedule lists."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ActionKind(StrEnum):
    """A pass over one model chunk."""

    FORWARD = "F"
    BACKWARD = "B"
    """Input and weight gradients together."""
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"


class Action(NamedTuple):
    """One pass of one micro-batch through chunk `chunk` of stage `stage`.

    The chunk's place in the model is virtual stage `chunk * pp + stage`.
    """

    stage: int
    kind: ActionKind
    micro_batch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro_batch}.{self.chunk}"


StageActions = tuple[Action, ...]
Schedule = tuple[StageActions, ...]
"""The actions of each stage, in the order in which it runs them."""
