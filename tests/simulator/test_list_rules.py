"""Lists of a scenario name each entry once, and no more of them than can be planned."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from simulator.aims import MAX_CHANGES, WhatIfFile
from simulator.scenario import MAX_PARTS, ClusterFile, PartFile, ScenarioFile, SearchFile
from simulator.workload.job import TrainingJob

_CLUSTER = ClusterFile(profile="dgx-h100", nodes=1)
_JOB = TrainingJob(global_batch_size=8, seq_length=1024)


def changes(names: list[str]) -> tuple[WhatIfFile, ...]:
    return tuple(WhatIfFile(name=name, change={"job.seq_length": 2048}) for name in names)


@pytest.mark.parametrize(
    ("key", "values"),
    [("nodes", (2, 4, 2)), ("global_batch_size", (8, 8)), ("tp", (1, 1)), ("zero_stage", (1, 1))],
)
def test_a_search_list_with_an_entry_twice_is_refused_by_key(key: str, values: Any) -> None:
    with pytest.raises(ValidationError, match=rf"{key}\n.*once, and has {values[0]} \(2 times\)"):
        SearchFile(**{key: values})


def test_two_changes_of_one_name_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"once, and has batch \(2 times\)"):
        ScenarioFile(
            model="llama3-8b", cluster=_CLUSTER, job=_JOB, what_if=changes(["batch", "batch"])
        )


def test_more_changes_than_can_be_planned_are_counted() -> None:
    many = changes([str(number) for number in range(MAX_CHANGES + 1)])
    with pytest.raises(ValidationError, match="at most 100 entries, and has 101"):
        ScenarioFile(model="llama3-8b", cluster=_CLUSTER, job=_JOB, what_if=many)


def test_more_parts_than_can_be_compared_are_counted() -> None:
    many = (PartFile(profile="dgx-h100", nodes=1),) * (MAX_PARTS + 1)
    with pytest.raises(ValidationError, match="at most 64 entries, and has 65"):
        ClusterFile(profile="dgx-h100", nodes=1, part=many)
