"""The space of layouts: all of it, each refusal counted once, and no layout twice."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from planner.feasible import layout_key
from planner.space import divisors, enumerate_layouts
from simulator.errors import InputError
from simulator.parallel.checks import Reason, violations
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from tests.planner.scenarios import gpt, gpt3_175b, llama3_405b, scenario

_FEW = SearchFile(
    tp=(1, 2, 3),
    pp=(1, 2, 3, 4),
    cp=(1, 2),
    vpp=(1, 2, 3),
    micro_batch_size=(1, 2, 5),
    zero_stage=(0, 1, 2),
)


def few() -> Scenario:
    """Return a scenario whose lists hold legal and illegal values of every axis."""
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    return scenario(gpt(8, 1024), nodes=3, job=job, search=_FEW)


def brute_force(given: Scenario) -> Counter[Reason | None]:
    """Count each combination under the first rule it breaks; None is legal."""
    search, counts = given.file.search, Counter[Reason | None]()
    for tp, pp, cp in product(search.tp or (), search.pp or (), search.cp):
        dp, rest = divmod(given.world_size, tp * pp * cp)
        for spread, size, schedule, vpp, zero, recompute in product(
            search.sequence_parallel,
            search.micro_batch_size or (),
            search.schedule,
            search.vpp or (),
            search.zero_stage or (),
            search.recompute,
        ):
            interleaves = schedule is ScheduleName.INTERLEAVED
            if (spread and tp == 1) or interleaves != (vpp > 1) or (interleaves and pp == 1):
                continue
            if max(1, dp) * cp == 1 and zero > 0:
                continue
            layout = ParallelLayout(
                tp=tp,
                pp=pp,
                cp=cp,
                dp=max(1, dp),
                vpp=vpp,
                micro_batch_size=size,
                schedule=schedule,
                sequence_parallel=spread,
                zero_stage=zero,
                recompute=recompute,
            )
            found = violations(given.model.spec, given.file.job, given.stack, layout)
            first = next((v.reason for v in found), None)
            counts[Reason.WORLD_SIZE if rest else first] += 1
    return counts


def test_counts_are_those_of_testing_every_combination() -> None:
    space = enumerate_layouts(few())
    counts = Counter[Reason | None](space.rejected)
    counts[None] = len(space.layouts)
    assert counts == brute_force(few())


def test_counts_add_up() -> None:
    space = enumerate_layouts(few())
    assert space.considered == len(space.layouts) + sum(space.rejected.values())


def test_every_layout_is_legal_and_fills_the_cluster() -> None:
    given = few()
    for layout in enumerate_layouts(given).layouts:
        assert layout.world_size == given.world_size
        assert not list(violations(given.model.spec, given.file.job, given.stack, layout))


def test_no_layout_is_listed_twice() -> None:
    layouts = enumerate_layouts(scenario(gpt(8, 1024))).layouts
    assert len({layout_key(layout) for layout in layouts}) == len(layouts)


def test_free_axes_take_what_divides() -> None:
    search = SearchFile(
        recompute=(Recompute.NONE,), sequence_parallel=(False,), zero_stage=(0,), pp=(2,)
    )
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    layouts = enumerate_layouts(scenario(gpt(8, 1024), job=job, search=search)).layouts
    # 8 accelerators: tp 1, 2, 4 leave dp 4, 2, 1, so 4, 8, 16 sequences a replica; 4 layers a
    # stage allow vpp 2 and 4 where the micro-batches come in pairs.
    expected = {
        (tp, vpp, size)
        for tp, batch in ((1, 4), (2, 8), (4, 16))
        for size in divisors(batch)
        for vpp in (1, 2, 4)
        if vpp == 1 or batch // size % 2 == 0
    }
    assert {(x.tp, x.vpp, x.micro_batch_size) for x in layouts} == expected


def test_tp_stays_within_the_scale_up_domain_unless_allowed() -> None:
    widest = {
        limit: max(
            layout.tp
            for layout in enumerate_layouts(
                scenario(gpt(2, 4096), nodes=4, search=SearchFile(max_tp=limit))
            ).layouts
        )
        for limit in (None, 2, 16)
    }
    assert widest == {None: 8, 2: 2, 16: 16}


def test_zero_is_not_varied_where_nothing_is_sharded() -> None:
    search = SearchFile(tp=(8,), pp=(1,))
    layouts = enumerate_layouts(scenario(gpt(2, 1024), search=search)).layouts
    assert {layout.zero_stage for layout in layouts} == {0}


def test_ends_that_count_as_layers_give_the_published_interleaving() -> None:
    # 126 layers and two ends over 16 stages: 8 a stage (Dubey et al. 2024, section 3.3.2).
    job = TrainingJob(global_batch_size=2048, seq_length=8192)
    search = SearchFile(pp=(16,), tp=(8,))
    given = scenario(llama3_405b(), nodes=2048, job=job, stack="torchtitan", search=search)
    assert {layout.vpp for layout in enumerate_layouts(given).layouts} == {1, 2, 4}


def test_ends_take_one_layer_less_where_only_that_divides_and_the_stack_can() -> None:
    job = TrainingJob(global_batch_size=2048, seq_length=8192)
    search = SearchFile(pp=(16,), tp=(8,), vpp=(1,))
    given = scenario(llama3_405b(), nodes=2048, job=job, stack="megatron-core", search=search)
    found = {layout.layers_per_stage for layout in enumerate_layouts(given).layouts}
    assert found == {(7, *(8,) * 14, 7)}


def test_layers_that_do_not_divide_are_refused_where_the_stack_cannot_leave_ends_short() -> None:
    job = TrainingJob(global_batch_size=2048, seq_length=8192)
    search = SearchFile(pp=(16,), tp=(8,), vpp=(1,), sequence_parallel=(False,))
    given = scenario(llama3_405b(), nodes=2048, job=job, stack="megatron-lm-2021", search=search)
    assert not enumerate_layouts(given).layouts


def test_illegal_heads_come_with_the_legal_sizes() -> None:
    model = gpt(2, 28 * 128, num_attention_heads=28, num_key_value_heads=28)
    space = enumerate_layouts(scenario(model, search=SearchFile(tp=(8,))))
    assert not space.layouts
    assert space.examples[Reason.HEADS].fix == "tp of 1, 2, 4, 7, 14, 28"


def test_a_search_without_any_combination_is_refused() -> None:
    search = SearchFile(vpp=(1,), schedule=(ScheduleName.INTERLEAVED,))
    with pytest.raises(InputError, match="leaves no layout to consider"):
        enumerate_layouts(scenario(gpt(2, 1024), search=search))


def test_a_large_space_is_counted() -> None:
    job = TrainingJob(global_batch_size=1536, seq_length=2048)
    space = enumerate_layouts(scenario(gpt3_175b(), nodes=128, job=job))
    assert (space.considered, len(space.layouts), dict(space.rejected)) == (
        10998,
        5724,
        {Reason.BATCH: 6, Reason.LAYERS: 648, Reason.SCHEDULE: 4620},
    )
