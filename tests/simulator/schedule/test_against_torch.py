"""Our orders are those of `torch.distributed.pipelining`, where torch is installed."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.parallel.layout import ScheduleName
from simulator.schedule.csv_file import parse_schedule
from simulator.schedule.registry import ScheduleOptions, build_schedule, pipeline_shape
from simulator.schedule.zb_h1 import round_size

S = ScheduleName
CASES = [
    (S.LOOPED_BFS, "ScheduleLoopedBFS", 4, 2, 8),
    (S.INTERLEAVED, "ScheduleInterleaved1F1B", 4, 2, 8),
    (S.INTERLEAVED, "ScheduleInterleaved1F1B", 4, 3, 10),
    (S.ZERO_BUBBLE_H1, "ScheduleInterleavedZeroBubble", 4, 1, 8),
    (S.ZERO_BUBBLE_H1, "ScheduleInterleavedZeroBubble", 4, 2, 12),
    (S.ZERO_BUBBLE_V, "ScheduleZBVZeroBubble", 4, 2, 12),
    (S.ZERO_BUBBLE_V, "ScheduleZBVZeroBubble", 3, 2, 3),
    (S.DUALPIPE_V, "ScheduleDualPipeV", 4, 2, 9),
]


@pytest.mark.parametrize(("name", "torch_name", "pp", "vpp", "micro_batches"), CASES)
def test_each_rank_runs_the_passes_of_torch_in_its_order(
    name: ScheduleName, torch_name: str, pp: int, vpp: int, micro_batches: int
) -> None:
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    theirs = getattr(schedules, torch_name, None)
    if theirs is None:
        pytest.skip(f"this torch has no {torch_name}")
    shape = pipeline_shape(name, pp, vpp)
    group = round_size(pp, micro_batches) if name is S.INTERLEAVED else None
    ours = build_schedule(name, pp, vpp, micro_batches, ScheduleOptions(group))
    text = "\n".join(
        ",".join(map(str, filter(None, _ranks_order(theirs, rank, pp, vpp, micro_batches))))
        for rank in range(pp)
    )
    assert parse_schedule(text, shape) == ours


def _ranks_order(theirs: Any, rank: int, pp: int, vpp: int, micro_batches: int) -> list[Any]:
    """Return the actions of a rank without building its stages, which need devices."""
    schedule = theirs.__new__(theirs)
    rounds = max(1, micro_batches // pp)
    vars(schedule).update(
        pp_group_size=pp,
        n_local_stages=vpp,
        num_stages=pp * vpp,
        rank=rank,
        number_of_rounds=rounds,
        microbatches_per_round=micro_batches // rounds,
        _stages=[None] * vpp,
        _num_stages=pp * vpp,
        _n_microbatches=micro_batches,
    )
    return list(schedule._calculate_single_rank_operations(rank))
