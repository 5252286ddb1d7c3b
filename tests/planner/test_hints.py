"""What is proposed where nothing fits: only what the stack has and the search left out."""

from __future__ import annotations

import pytest

from planner import plan
from planner.hints import memory_hints
from simulator.parallel.layout import Recompute
from simulator.scenario import SearchFile
from simulator.workload.job import Optimizer, TrainingJob
from tests.planner.scenarios import gpt, machine, mixtral, scenario


@pytest.mark.parametrize(
    ("largest", "first"),
    [
        ("activations", "search.recompute"),
        ("optimizer", "job.optimizer"),
        ("weights", "search.ep"),
    ],
)
def test_the_largest_part_comes_first(largest: str, first: str) -> None:
    search = SearchFile(recompute=(Recompute.NONE,), ep=(1, 2), optimizer_offload=(0.0, 1.0))
    hints = memory_hints(scenario(mixtral(), search=search), largest)
    assert hints[0].text.startswith(first)


def test_what_was_searched_is_not_proposed() -> None:
    job = TrainingJob(global_batch_size=8, seq_length=1024, optimizer=Optimizer.ADAM_8BIT)
    search = SearchFile(cp=(1, 2), offload_layers=(0, 1), optimizer_offload=(0.0, 1.0))
    given = scenario(mixtral(), job=job, search=search, stack="torchtitan")
    assert memory_hints(given, "activations") == ()


def test_a_plan_without_layouts_has_hints() -> None:
    answer = plan(scenario(gpt(8, 1024), profile=machine(memory="2 GiB")))
    assert answer.hints
