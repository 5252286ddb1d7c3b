"""The space of layouts: all of it, each refusal counted once, and no layout twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from planner.axes import AXES, divisors
from planner.feasible import layout_key
from planner.space import Space, enumerate_layouts
from planner.splits import given_layers
from simulator.errors import InputError
from simulator.parallel.checks import RULES, Asked, Reason, violations
from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeModule,
    ScheduleName,
)
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.stack import load_stack
from tests.planner.scenarios import gpt, gpt3_175b, llama3_405b, mixtral, scenario

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


def experts() -> Scenario:
    """Return a mixture of experts whose lists hold legal and illegal values of every axis."""
    search = SearchFile(
        tp=(1, 2),
        pp=(1, 2),
        cp=(1, 2),
        cp_comm_type=(ContextExchange.RING, ContextExchange.ULYSSES),
        ep=(1, 3, 4, 8),
        etp=(1, 2),
        vpp=(1, 2),
        micro_batch_size=(1, 3),
        zero_stage=(0, 1),
        recompute_modules=((), (RecomputeModule.LAYERNORM, RecomputeModule.MOE_ACTIVATION)),
        recompute_num_layers=("all", 1),
        offload_layers=(0, 1),
        optimizer_offload=(0.0, 0.5),
        sequence_parallel=(True, False),
    )
    job = TrainingJob(global_batch_size=16, seq_length=1024)
    return scenario(mixtral(), job=job, search=search)


def combinations(given: Scenario) -> Iterator[ParallelLayout]:
    """Yield each combination of the lists once, where dp is what fills the cluster."""
    search = given.file.search
    for tp, pp, cp in product(search.tp or (), search.pp or (), search.cp):
        seen = set()
        lists: list[Sequence[Any]] = [
            search.sequence_parallel if tp > 1 else (False,),
            search.ep or (1,),
            search.etp or (None,),
            (search.cp_comm_type or tuple(ContextExchange)) if cp > 1 else (ContextExchange.RING,),
            search.micro_batch_size or (),
            search.schedule or given.stack.schedules,
            search.vpp or (),
            search.zero_stage or (),
            search.recompute,
            search.recompute_modules or ((),),
            search.recompute_num_layers,
            search.offload_layers,
            search.optimizer_offload,
        ]
        for values in product(*lists):
            spread, ep, etp, kind, size, schedule, vpp, zero, recompute, *rest = values
            modules, layers, offloaded, share = rest
            interleaves = schedule is ScheduleName.INTERLEAVED
            if interleaves != (vpp > 1) or (interleaves and pp == 1):
                continue
            data_ranks = max(1, given.world_size // (tp * pp * cp)) * cp
            if (data_ranks == 1 and zero > 0) or kind is ContextExchange.HIERARCHICAL:
                continue
            full, selective = recompute is Recompute.FULL, recompute is Recompute.SELECTIVE
            layout = ParallelLayout(
                tp=tp,
                pp=pp,
                cp=cp,
                layers_per_stage=given_layers(given.model.spec, given.stack, pp, pp * vpp),
                dp=data_ranks // cp,
                ep=ep,
                etp=None if etp == tp else etp,
                cp_comm_type=kind,
                vpp=vpp,
                micro_batch_size=size,
                schedule=schedule,
                sequence_parallel=spread,
                zero_stage=zero,
                recompute=recompute,
                recompute_modules=modules if selective else (),
                recompute_num_layers=layers if full and layers != "all" else None,
                offload_layers=offloaded,
                optimizer_offload=share,
            )
            if layout not in seen:
                seen.add(layout)
                yield layout


def asked(given: Scenario, layout: ParallelLayout) -> Asked:
    """Return whether `layout` is legal, as a question to a rule."""
    return Asked(model=given.model.spec, job=given.file.job, stack=given.stack, layout=layout)


class Watched(ParallelLayout):
    """A layout that knows which of its fields were read."""

    def fields_read(self) -> set[str]:
        """Return the fields that were read since the last call."""
        found: set[str] = self.__dict__.pop("read", set())
        return found


class _WatchedField:
    """Stands before a field of a watched layout, and says where it is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, layout: Watched, owner: type) -> Any:
        layout.__dict__.setdefault("read", set()).add(self.name)
        return layout.__dict__[self.name]

    def __set__(self, layout: Watched, value: Any) -> None:
        raise AttributeError(self.name)


for field in ParallelLayout.model_fields:
    type.__setattr__(Watched, field, _WatchedField(field))


def brute_force(given: Scenario) -> Counter[Reason | None]:
    """Count each combination under the first rule it breaks; None is legal."""
    counts = Counter[Reason | None]()
    place = {field: number for number, fields in enumerate(AXES) for field in fields}
    ordered = sorted(RULES, key=lambda rule: max(place.get(field, 0) for field in rule.reads))
    for layout in combinations(given):
        question = asked(given, layout)
        found = (violation.reason for rule in ordered for violation in rule.broken(question))
        fills = layout.world_size == given.world_size
        counts[next(found, None) if fills else Reason.WORLD_SIZE] += 1
    return counts


@pytest.mark.parametrize("given", [few(), experts()], ids=["dense", "experts"])
def test_counts_are_those_of_testing_every_combination(given: Scenario) -> None:
    space = enumerate_layouts(given)
    counts = Counter[Reason | None](space.rejected)
    counts[None] = len(space.layouts)
    assert counts == brute_force(given)


@pytest.mark.parametrize("given", [few(), experts()], ids=["dense", "experts"])
def test_counts_add_up(given: Scenario) -> None:
    space = enumerate_layouts(given)
    assert space.considered == len(space.layouts) + sum(space.rejected.values())


@pytest.mark.parametrize("given", [few(), experts()], ids=["dense", "experts"])
def test_rules_read_nothing_but_what_they_say(given: Scenario) -> None:
    reads = [(rule, {*rule.reads}) for rule in RULES]
    for layout in combinations(given):
        watched = Watched.of_checked(dict(layout))
        question = asked(given, watched)
        for rule, fields in reads:
            list(rule.broken(question))
            assert watched.fields_read() <= fields


@pytest.mark.parametrize("given", [few(), experts()], ids=["dense", "experts"])
def test_every_layout_is_legal_and_fills_the_cluster(given: Scenario) -> None:
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


def test_a_stack_that_can_be_told_takes_fewer_layers_at_the_end() -> None:
    # DeepSeek-V3: the head is 0.93e9 of the 0.58e9 parameters that a token meets in a layer. Two
    # heads, a layer and a projection count as 3.8 layers, beside which stands one of 61.
    model = load_model("deepseek-v3").spec
    found = given_layers(model, load_stack("megatron-core"), 16, 16)
    assert found == (*(4,) * 15, 1)


def test_the_largest_stage_is_as_small_as_it_can_be() -> None:
    # GPT-3's layers with a module of multi-token prediction: 1 + 2 x 0.67 + 0.17 = 2.5 layers
    # behind the last one. 92 layers over 8 stages: 12 each leave 8 beside it.
    model = gpt(92, 12288, num_nextn_predict_layers=1)
    found = given_layers(model, load_stack("megatron-core"), 8, 8)
    assert found == (*(12,) * 7, 8)


def test_no_split_is_offered_that_wastes_stages() -> None:
    # 96 layers and 2 ends over 64 stages: some of 2, most of 1.
    assert given_layers(gpt3_175b(), load_stack("megatron-core"), 64, 64) is None


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


def test_branches_that_are_alike_are_walked_once() -> None:
    # DeepSeek-V3 on 2,048 accelerators.
    model = load_model("deepseek-v3").spec
    job = TrainingJob(global_batch_size=15360, seq_length=4096)
    space = enumerate_layouts(scenario(model, nodes=256, job=job))
    counts = (space.considered, space.legal, len(distinct_branches(space)))
    assert counts == (237960, 72832, 5924)


def distinct_branches(space: Space) -> set[int]:
    """Return the branches of a space, by their ids."""
    found: set[int] = set()
    waiting = list(space.meshes)
    while waiting:
        branch = waiting.pop()
        if id(branch) not in found:
            found.add(id(branch))
            waiting += [behind for _, behind in branch.open]
    return found
