"""How long a measuring loop may run, and how much scatter it accepts."""

from __future__ import annotations

from pydantic import Field

from simulator.files import FileRecord
from simulator.units import Seconds

MOST_RANKS = 2**20
"""More processes than any machine has devices: what says more is misread."""
OUTLIER_MADS = 5.0
"""Median absolute deviations off the median from which a block is dropped, or a rank is slow."""
LEAST_BLOCKS = 3
"""Fewer have no quartiles to speak of."""
WARM_UP_MEDIANS = 3
"""Of the warm-up, which must agree."""
SUSTAIN_SECONDS = 3.0
"""Of the same load before a sustained kernel is timed: several times the second or so over which
boards average their power."""
APART_SECONDS = 20e-3
"""Longest random wait of a rank before a collective that ranks start apart. Ranks of a training
step drift by milliseconds, stages of a pipeline by tens of them; most waits must exceed what a
barrier lets ranks differ by (some 0.1 ms over TCP), and what a library's own thread may wait for a
core that its rank keeps busy (4 ms where both have one real-time priority)."""


class Limits(FileRecord):
    """Of one point; every default is a choice of effort, not a property of a machine."""

    block_seconds: Seconds = 0.05
    """Runs are timed in blocks of at least this long, seconds; one run where it takes longer."""
    blocks: int = Field(default=9, ge=LEAST_BLOCKS)
    """Blocks that the median is taken over."""
    agreement: float = Field(default=0.05, gt=0)
    """Warm-up ends when three medians in a row differ by at most this share."""
    spread: float = Field(default=0.1, gt=0)
    """Distance between the quartiles over the median above which a point is noisy."""
    rest: float = Field(default=0.0, ge=0, le=1)
    """Seconds that ranks rest behind a block for each second of it. An operating system that keeps
    a share of each second for others (Linux: 5 % for the ordinary processes beside real-time ones)
    takes it from ranks that never wait, and so from their compute alone, not from training."""
    max_seconds: Seconds = 20.0
    """After which no block is begun, once there are three of them, warm-up included."""


def warm_up_blocks(run: float, limits: Limits) -> int:
    """Return the short blocks that one median of the warm-up is of: one where a run is long.

    >>> warm_up_blocks(0.001, Limits()), warm_up_blocks(0.2, Limits())
    (3, 1)
    """
    return 1 if run >= limits.block_seconds else WARM_UP_MEDIANS
