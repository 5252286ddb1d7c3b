"""What a trace's process groups are for, by the ranks in them and the layout of the run.

Kernels name their group; the trace describes groups by name under `distributedInfo.pg_config`
(torch 2.3 and later), or each kernel lists the ranks of its own. Megatron-LM's and torch's order of
ranks is taken: tensor first, then context, data and pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from calibrate.import_kineto_events import whole
from simulator.results import Category

DESCRIPTION, NAME, RANKS = (
    "Process Group Description",
    "Process Group Name",
    "Process Group Ranks",
)
"""What a collective's kernel says of its group."""
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The sizes of the axes of a layout."""

    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    etp: int | None = None
    """None: tp."""
    shard_size: int | None = None
    """Ranks over which parameters are sharded; None: all of data parallelism."""

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def groups(self) -> Iterator[tuple[int, int, Category]]:
        """Ranks of a group, how far they are apart, and what the group is for."""
        etp = self.tp if self.etp is None else self.etp
        stage = self.tp * self.cp * self.dp
        shard = self.shard_size or self.cp * self.dp
        yield self.tp, 1, Category.TENSOR_COMM
        yield self.cp, self.tp, Category.CONTEXT_COMM
        yield self.dp, self.tp * self.cp, Category.DATA_COMM
        yield self.cp * self.dp, self.tp, Category.DATA_COMM
        yield shard, self.tp, Category.DATA_COMM
        yield self.cp * self.dp // shard, self.tp * shard, Category.DATA_COMM
        if self.ep > 1:
            yield stage // (self.ep * etp), self.ep * etp, Category.DATA_COMM
            yield self.ep, etp, Category.EXPERT_COMM
            yield self.ep * etp, 1, Category.EXPERT_COMM
        yield self.pp, stage, Category.PIPELINE_COMM
        yield 2, stage, Category.PIPELINE_COMM


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group as a trace describes it."""

    name: str
    description: str
    ranks: tuple[int, ...]
    """Rising; empty where the trace does not list them all."""


def purpose(ranks: Sequence[int], axes: Axes) -> Category | None:
    """Return what a group of these ranks is for; None where that is not one thing only.

    >>> axes = Axes(tp=4, dp=2, pp=2)
    >>> purpose((0, 1, 2, 3), axes), purpose((1, 9), axes)
    (<Category.TENSOR_COMM: 'tensor_comm'>, <Category.PIPELINE_COMM: 'pipeline_comm'>)
    """
    apart = {other - one for one, other in pairwise(ranks)}
    if len(ranks) <= 1 or len(apart) != 1:
        return None
    found = {
        kind for size, stride, kind in axes.groups if size == len(ranks) > 1 and {stride} == apart
    }
    return found.pop() if len(found) == 1 else None


def described(distributed: Mapping[str, Any]) -> Mapping[str, Group]:
    """Return the groups of `distributedInfo.pg_config` by name."""
    config = distributed.get("pg_config")
    entries = config if isinstance(config, list) else []
    groups = [_group(each) for each in entries if isinstance(each, dict)]
    return {group.name: group for group in groups if group.name}


def _group(entry: Mapping[str, Any]) -> Group:
    ranks = ranks_of(entry.get("ranks"))
    size = whole(entry.get("pg_size"))
    return Group(
        name=str(entry.get("pg_name", "")),
        description=str(entry.get("pg_desc", "")),
        ranks=ranks if size in (None, len(ranks)) else (),
    )


def ranks_of(said: object) -> tuple[int, ...]:
    """Return the ranks that a trace lists: numbers, or a text of them; none where it is shortened.

    >>> ranks_of("[0, 8, 16]"), ranks_of("[0, 1, ..., 63]")
    ((0, 8, 16), ())
    """
    if isinstance(said, str):
        return () if "..." in said else tuple(sorted(map(int, _NUMBER.findall(said))))
    if not isinstance(said, list):
        return ()
    found = [whole(each) for each in said]
    return tuple(sorted(each for each in found if each is not None)) if None not in found else ()
