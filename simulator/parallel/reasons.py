"""Why a layout is rejected: the reasons that the planner counts, and one broken rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.errors import Problem


class Reason(StrEnum):
    """Why a layout was rejected; what the planner counts."""

    WORLD_SIZE = "world size is not tp x cp x dp x pp"
    HEADS = "attention heads do not divide by tp"
    WIDTH = "MLP width does not divide by tp"
    EXPERTS = "ep, etp or the routing do not fit the model or the ranks"
    SEQUENCE = "sequence does not divide by cp (and tp)"
    CONTEXT = "context parallelism does not offer what the model or the job needs"
    BATCH = "batch does not divide by dp x micro-batch"
    LAYERS = "layers do not divide over the stages"
    SCHEDULE = "schedule does not allow it"
    ZERO = "the stack does not offer this ZeRO stage"
    STACK = "the stack does not offer sequence parallelism or this recomputation"
    RECOMPUTE = "recomputation by module or by layer does not apply"
    OFFLOAD = "offload to host memory is not offered, or not for this layout"
    NUMBERS = "precision, dtypes, optimizer or frozen parts do not allow it"
    DATA_PARALLEL = "data-parallel options contradict each other"
    NOT_MODELLED = "not modelled yet"
    CONSTRAINT = "the search table does not allow it"
    MEMORY = "does not fit in memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule of a layout."""

    reason: Reason
    problem: Problem


_MAX_LISTED = 12


def listed(sizes: list[int]) -> str:
    """Return sizes as a message names them: the first dozen."""
    return ", ".join(map(str, sizes[:_MAX_LISTED]))
