"""What the search table forbids: counted like any other rule, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from planner import plan
from planner.space import enumerate_layouts
from simulator.errors import InputError
from simulator.parallel.checks import Reason
from simulator.parallel.forbidden import ForbiddenLayout
from simulator.parallel.layout import Axis, ParallelLayout, Recompute, ScheduleName
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from tests.planner.scenarios import gpt, mixtral, scenario

_TP8_FULL = ForbiddenLayout(tp=8, recompute=Recompute.FULL)


def dense(**search: Any) -> Scenario:
    """Return a GPT on 16 accelerators, of which 8 share a domain."""
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    search = {"zero_stage": (1,), "sequence_parallel": (True,), **search}
    return scenario(gpt(8, 1024), nodes=2, job=job, search=SearchFile(**search))


def experts(**search: Any) -> Scenario:
    """Return a mixture of experts on as many."""
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    search = {"recompute": (Recompute.NONE,), "micro_batch_size": (1,), **search}
    return scenario(mixtral(), nodes=2, job=job, search=SearchFile(**search))


@pytest.mark.parametrize(
    ("build", "constraint", "allowed"),
    [
        (
            dense,
            {"forbid": (_TP8_FULL, ForbiddenLayout(schedule=ScheduleName.INTERLEAVED))},
            lambda x: (
                not (x.tp == 8 and x.recompute is Recompute.FULL)
                and x.effective_schedule is not ScheduleName.INTERLEAVED
            ),
        ),
        (
            experts,
            {"forbid": (ForbiddenLayout(etp=2, ep=2),)},
            lambda x: (x.expert_tp, x.ep) != (2, 2),
        ),
        (dense, {"dp": (2, 8)}, lambda x: x.dp in (2, 8)),
        (dense, {"dp_multiple_of": 4}, lambda x: x.dp % 4 == 0),
        (experts, {"within_domain": (Axis.EXPERT,)}, lambda x: x.ep * x.expert_tp <= 8),
        (
            dense,
            {"cp": (1, 2), "within_domain": (Axis.CONTEXT, Axis.DATA)},
            lambda x: x.tp * x.cp * x.dp <= 8 or x.cp * x.dp == 1,
        ),
    ],
    ids=["forbid", "forbid-etp", "dp", "dp-multiple", "ep-within", "dp-within"],
)
def test_constraints_leave_exactly_what_they_allow(
    build: Callable[..., Scenario],
    constraint: dict[str, Any],
    allowed: Callable[[ParallelLayout], bool],
) -> None:
    free = enumerate_layouts(build(**{key: v for key, v in constraint.items() if key == "cp"}))
    tied = enumerate_layouts(build(**constraint))
    assert list(tied.layouts) == [layout for layout in free.layouts if allowed(layout)]
    assert 0 < tied.legal < free.legal
    assert tied.considered == free.considered
    assert tied.rejected[Reason.CONSTRAINT] >= free.legal - tied.legal


def test_a_plan_that_is_forbidden_altogether_says_so() -> None:
    answer = plan(dense(tp=(8,), pp=(1,), forbid=(ForbiddenLayout(tp=8),)))
    assert not answer.found
    assert list(answer.rejected) == [Reason.CONSTRAINT]
    assert "tp = 8 is forbidden" in answer.examples[Reason.CONSTRAINT]


def test_an_entry_that_forbids_everything_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least one key of a layout"):
        ForbiddenLayout()


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ({"dp": (3, 5)}, "search.dp: must have an entry that divides the 16 accelerators"),
        ({"dp_multiple_of": 3}, "search.dp_multiple_of: dp divides the 16 accelerators"),
        ({"within_domain": (Axis.EXPERT,)}, "search.within_domain: a dense model has no experts"),
    ],
)
def test_what_no_layout_can_have_is_refused(search: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        enumerate_layouts(dense(**search))
