"""Entries of `search.forbid` that match nothing are named, with the values that exist."""

from __future__ import annotations

from typing import Any

import pytest

from planner import plan
from planner.space import enumerate_layouts
from planner.unmatched import unmatched_notes
from simulator.parallel.forbidden import ForbiddenLayout
from simulator.parallel.layout import Recompute, ScheduleName
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from tests.planner.scenarios import gpt, mixtral, scenario


def dense(*forbid: ForbiddenLayout, **search: Any) -> Scenario:
    """Return a GPT of 8 layers on 16 accelerators, of which 8 share a domain."""
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    table = {"zero_stage": (1,), "forbid": forbid, "micro_batch_size": (1, 2), **search}
    return scenario(gpt(8, 1024), nodes=2, job=job, search=SearchFile(**table))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"tp": 3}, "tp = 3 forbids nothing: tp of this search: 1, 2, 4, 8"),
        (
            {"tp": 2, "micro_batch_size": 4, "pp": 7},
            "tp = 2, pp = 7, micro_batch_size = 4 forbids nothing: "
            "pp of this search: 1, 2, 4, 8; micro_batch_size of this search: 1, 2",
        ),
        (
            {"tp": 8, "pp": 8},
            "tp = 8, pp = 8 forbids nothing: layouts of this search have each of these values, "
            "and none has them together",
        ),
        (
            {"sequence_parallel": True, "tp": 1},
            "tp = 1, sequence_parallel = True forbids nothing: layouts of this search have each of "
            "these values, and none has them together",
        ),
    ],
)
def test_an_entry_that_forbids_nothing_is_named_with_what_exists(
    entry: dict[str, Any], why: str
) -> None:
    good = ForbiddenLayout(tp=8)
    assert unmatched_notes([dense(good, ForbiddenLayout(**entry))]) == (f"search.forbid.1: {why}",)


ENTRIES = (
    *(ForbiddenLayout(tp=tp, pp=pp) for tp in (1, 3, 8) for pp in (1, 4, 8)),
    ForbiddenLayout(schedule=ScheduleName.INTERLEAVED, vpp=1),
    ForbiddenLayout(schedule=ScheduleName.INTERLEAVED, pp=1),
    ForbiddenLayout(schedule=ScheduleName.ONE_F_ONE_B, vpp=2),
    ForbiddenLayout(recompute=Recompute.FULL, dp=16),
    ForbiddenLayout(zero_stage=1, dp=1),
    ForbiddenLayout(zero_stage=3),
    ForbiddenLayout(ep=2, etp=2),
    ForbiddenLayout(ep=8, etp=8),
    ForbiddenLayout(etp=3),
    ForbiddenLayout(cp=2),
)


@pytest.mark.parametrize("model", [gpt(8, 1024), mixtral()], ids=["dense", "experts"])
def test_no_entry_that_forbids_a_layout_is_named(model: ModelSpec) -> None:
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    recompute = (Recompute.NONE, Recompute.FULL)
    small: dict[str, Any] = {"micro_batch_size": (1,), "recompute": recompute}
    free = scenario(model, nodes=2, job=job, search=SearchFile(**small))
    layouts = enumerate_layouts(free).layouts
    given = scenario(model, nodes=2, job=job, search=SearchFile(forbid=ENTRIES, **small))
    named = {int(note.split(":")[0].rsplit(".", 1)[1]) for note in unmatched_notes([given])}
    used = {n for n, entry in enumerate(ENTRIES) if any(map(entry.matches, layouts))}
    assert named & used == set()
    assert min(len(named), len(used)) > len(ENTRIES) // 4


def test_a_plan_warns_unless_some_job_or_cluster_has_what_is_forbidden() -> None:
    sixteen, four = ForbiddenLayout(dp=16), ForbiddenLayout(dp=3)
    search = {"nodes": (1, 2), "recompute": (Recompute.NONE,), "pp": (1,), "tp": (1, 2)}
    warnings = plan(dense(sixteen, four, **search)).warnings
    assert [text for text in warnings if "forbid" in text] == [
        "search.forbid.1: dp = 3 forbids nothing: dp of this search: 4, 8, 16"
    ]
