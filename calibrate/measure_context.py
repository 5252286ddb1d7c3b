"""What a worker hands to every measuring function: the device, the ranks, what to keep between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from calibrate.batches import World
from calibrate.limits import Limits
from calibrate.measuring import Alone, Ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One worker of one batch; every measuring function is called `(point, context) -> Outcome`."""

    device: torch.device
    """With its index where it is an accelerator; already the current device."""
    limits: Limits
    """Of the measuring loop."""
    world: World = field(default_factory=World)
    """The processes of this batch: all, or one alone where the batch needs rank 0 only."""
    ranks: Ranks = field(default_factory=Alone)
    """All of `world`, to agree on counts and to take the slowest."""
    local_rank: int = 0
    """Of this process on its node."""
    backend: str | None = None
    """Of the default process group ("nccl", "gloo", ...); None where there is none."""
    groups: dict[object, Any] = field(default_factory=dict)
    """Process groups that were made, by whatever names them; owned by the collectives' code."""
