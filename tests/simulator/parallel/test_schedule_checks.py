"""Schedules that a layout or a stack does not allow, and what would."""

from __future__ import annotations

import pytest

from simulator.parallel.layout import DataParallel, ParallelLayout, Placement, ScheduleName
from simulator.parallel.schedule_checks import copies_problems, schedule_problems
from tests.fakes import fake_stack, tiny_job, tiny_model

S = ScheduleName


def found(
    layout: ParallelLayout, micro_batches: int = 8, schedules: tuple[ScheduleName, ...] = tuple(S)
) -> list[tuple[str, str]]:
    stack = fake_stack(schedules=schedules)
    given = (tiny_model(), tiny_job(global_batch_size=micro_batches), stack, layout)
    problems = [*schedule_problems(*given), *copies_problems(*given)]
    return [(p.rule, p.fix) for p in problems]


@pytest.mark.parametrize(
    ("layout", "micro_batches", "rule", "fix"),
    [
        (
            ParallelLayout(pp=2, vpp=2, schedule=S.GPIPE),
            8,
            "gpipe has one chunk a stage",
            "looped-bfs, or vpp = 1",
        ),
        (
            ParallelLayout(pp=2, schedule=S.ZERO_BUBBLE_V),
            8,
            "zb-v has two chunks a stage, in the shape of a V",
            "vpp = 2",
        ),
        (
            ParallelLayout(pp=3, vpp=2, schedule=S.DUALPIPE),
            8,
            "dualpipe needs an even pp",
            "pp = 4, or dualpipe-v",
        ),
        (
            ParallelLayout(pp=2, vpp=2, schedule=S.DUALPIPE),
            7,
            "dualpipe needs an even number: half of them run each way",
            "another micro_batch_size or dp",
        ),
        (
            ParallelLayout(pp=4, vpp=2, schedule=S.DUALPIPE_V),
            7,
            "dualpipe-v needs at least 2 x pp = 8 micro-batches",
            "a smaller micro_batch_size, dp or pp, or zb-v",
        ),
        (
            ParallelLayout(pp=4, vpp=2, microbatch_group_size=3),
            8,
            "must be at least pp = 4 and at most the 8 micro-batches of a replica",
            "4 to 8",
        ),
        (
            ParallelLayout(pp=4, vpp=2, microbatch_group_size=7),
            9,
            "9 micro-batches leave a last group of 2, which must be 0 or at least pp = 4",
            "5",
        ),
        (
            ParallelLayout(pp=4, vpp=2),
            10,
            "interleaving needs micro-batches in groups of pp = 4",
            "vpp = 1, or another micro_batch_size or dp, or microbatch_group_size = 5",
        ),
        (
            ParallelLayout(pp=4, vpp=2, schedule=S.ZERO_BUBBLE_H1),
            9,
            "zb-h1 with vpp > 1 runs them in 2 rounds of like size",
            "8 micro-batches (micro_batch_size or dp), or vpp = 1",
        ),
        (
            ParallelLayout(pp=2, microbatch_group_size=2),
            8,
            "only the interleaved schedule runs micro-batches in groups of a given size",
            "leave it out",
        ),
        (
            ParallelLayout(pp=2, schedule=S.GPIPE, extra_warm_up=1),
            8,
            "gpipe has no warm-up of its own choice: 1f1b and interleaved have",
            "0",
        ),
        (
            ParallelLayout(pp=1, extra_warm_up=1),
            8,
            "one stage has no warm-up: it needs pp > 1",
            "0",
        ),
        (
            ParallelLayout(pp=2, schedule_file="a.csv"),
            8,
            "1f1b is not read from a file",
            'leave it out, or schedule = "csv"',
        ),
        (
            ParallelLayout(pp=2, schedule=S.CSV),
            8,
            "a csv schedule is read from a file",
            'schedule_file = "schedule.csv"',
        ),
        (
            ParallelLayout(pp=2, placement=Placement.V),
            8,
            "1f1b places its chunks itself",
            'leave it out, or schedule = "csv"',
        ),
        (
            ParallelLayout(
                pp=2, schedule=S.CSV, schedule_file="a.csv", placement=Placement.BIDIRECTIONAL
            ),
            8,
            "a place of PyTorch's notation stands once in a file",
            "loop or v",
        ),
        (
            ParallelLayout(pp=2, dp=2, vpp=2, schedule=S.DUALPIPE, zero_stage=2),
            16,
            "dualpipe keeps two copies of the parameters and reduces their gradients after the "
            "last pass of both",
            "zero_stage = 0 or 1, or dualpipe-v",
        ),
        (
            ParallelLayout(
                pp=2, dp=2, vpp=2, schedule=S.DUALPIPE, data_parallel=DataParallel.LOCAL_SGD
            ),
            16,
            "dualpipe keeps two copies of the parameters, which are kept equal by an all-reduce",
            "all-reduce, or dualpipe-v",
        ),
    ],
)
def test_each_refusal_names_its_rule_and_a_way_out(
    layout: ParallelLayout, micro_batches: int, rule: str, fix: str
) -> None:
    assert (rule, fix) in found(layout, micro_batches)


def test_a_stack_offers_only_what_it_can_run() -> None:
    layout = ParallelLayout(pp=2, vpp=2, schedule=S.ZERO_BUBBLE_V)
    assert found(layout, schedules=(S.ONE_F_ONE_B, S.INTERLEAVED)) == [
        ("fake does not offer this schedule", "one of: 1f1b, interleaved")
    ]


@pytest.mark.parametrize("name", [S.ZERO_BUBBLE_V, S.DUALPIPE, S.DUALPIPE_V])
def test_two_chunks_a_stage_and_two_micro_batches_a_stage_are_enough(name: ScheduleName) -> None:
    assert found(ParallelLayout(pp=4, vpp=2, schedule=name), 8) == []
