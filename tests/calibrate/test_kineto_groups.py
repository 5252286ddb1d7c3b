"""What groups of ranks are for in a layout, by hand."""

from __future__ import annotations

import pytest

from calibrate.import_kineto_groups import Axes, described, purpose
from simulator.results import Category

WHOLE = Axes(tp=2, cp=2, dp=4, pp=2)
EXPERTS = Axes(tp=1, dp=16, ep=4, etp=1)


@pytest.mark.parametrize(
    ("axes", "ranks", "kind"),
    [
        (WHOLE, (4, 5), Category.TENSOR_COMM),
        (WHOLE, (1, 3), Category.CONTEXT_COMM),
        (WHOLE, (0, 4, 8, 12), Category.DATA_COMM),
        (WHOLE, (1, 3, 5, 7, 9, 11, 13, 15), Category.DATA_COMM),
        (WHOLE, (3, 19), Category.PIPELINE_COMM),
        (WHOLE, tuple(range(32)), None),
        (WHOLE, (0, 1, 3), None),
        (WHOLE, (7,), None),
        (EXPERTS, (4, 5, 6, 7), Category.EXPERT_COMM),
        (EXPERTS, (1, 5, 9, 13), Category.DATA_COMM),
        (EXPERTS, tuple(range(16)), Category.DATA_COMM),
        # Experts over all of data parallelism: one and the same group does both.
        (Axes(dp=8, ep=8), tuple(range(8)), None),
        # Parameters sharded over 4 of 8 ranks, and kept alike by pairs.
        (Axes(dp=8, shard_size=4), (4, 5, 6, 7), Category.DATA_COMM),
        (Axes(dp=8, shard_size=4), (2, 6), Category.DATA_COMM),
        (Axes(tp=8), tuple(range(8)), Category.TENSOR_COMM),
    ],
)
def test_ranks_say_what_a_group_is_for(
    axes: Axes, ranks: tuple[int, ...], kind: Category | None
) -> None:
    assert purpose(ranks, axes) == kind


def test_groups_whose_ranks_are_not_all_listed_have_none() -> None:
    config = [
        {"pg_name": "1", "pg_desc": "mesh_tp", "pg_size": 4, "ranks": "[0, 1, 2, 3]"},
        {"pg_name": "2", "pg_size": 64, "ranks": [0, 1]},
        {"pg_name": "3", "ranks": "[0, 1, ..., 63]"},
        {"pg_name": "4", "ranks": {"0": 1}},
        {"ranks": [0]},
        7,
    ]
    found = described({"pg_config": config})
    assert {name: (group.description, group.ranks) for name, group in found.items()} == {
        "1": ("mesh_tp", (0, 1, 2, 3)),
        "2": ("", ()),
        "3": ("", ()),
        "4": ("", ()),
    }
