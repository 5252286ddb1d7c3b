"""Steps of mixtures of experts: their own data ranks, memory, FLOP, and both interpreters."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.parallel.checks import violations
from simulator.parallel.groups import GroupShape
from simulator.parallel.layout import ParallelLayout, Recompute
from simulator.parallel.program import StepProgram, build_program
from simulator.results import Category
from simulator.schedule.tasks import WorkKind
from simulator.workload.job import Dispatcher, Lora, Routing
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Fit
from tests.fakes import NIC, SCALE_UP, fake_node, fake_profile, fake_stack, tiny_job
from tests.simulator.parallel.mixtures import EXPERTS, SHARED, tiny_latent, tiny_mixture
from tests.simulator.steps import forecaster, may_share_a_link, step_of

LAYER = 4 * 64 * 64 + 8 * 64 + 2 * 64
TABLE = 1024 * 64
DENSE = 4 * LAYER + 2 * TABLE + 64
"""Parameters of the tiny mixture without its routed experts."""
ROUTED = 4 * 8 * 3 * 64 * 128


def program_of(model: ModelSpec, layout: ParallelLayout, **job: object) -> StepProgram:
    return build_program(model, tiny_job(**job), fake_stack(), layout, 8)


MIXTRAL_LAYOUT = ParallelLayout(tp=2, dp=8, ep=4, etp=2, sequence_parallel=True, zero_stage=1)


def test_a_rank_of_mixtral_at_tp2_ep4_holds_an_eighth_of_the_experts() -> None:
    program = program_of(load_model("mixtral-8x7b").spec, MIXTRAL_LAYOUT)
    # 32 layers of 8 experts of 3 x 4096 x 14336, over ep 4 x etp 2.
    assert program.stage_expert_parameters(0) == 32 * 8 * 176_160_768 / 8
    # Attention and both tables over tp 2, router and norms whole.
    layer = 41_943_040 / 2 + 8 * 4096 + 2 * 4096
    assert program.stage_parameters(0) == 32 * layer + 2 * 32000 / 2 * 4096 + 4096


def test_its_experts_have_two_data_ranks_in_two_domains() -> None:
    program = program_of(load_model("mixtral-8x7b").spec, MIXTRAL_LAYOUT)
    assert program.data_group == GroupShape(size=8, per_domain=4)
    assert program.expert_data_group == GroupShape(size=2, per_domain=1)


def test_memory_shows_experts_and_shards_their_states_over_their_own_data_ranks() -> None:
    cast = forecaster(MIXTRAL_LAYOUT, model=load_model("mixtral-8x7b").spec)
    (use,) = cast.memory(MIXTRAL_LAYOUT)
    held = 5_637_144_576.0
    found = (use.expert_weights, use.expert_gradients, use.expert_optimizer)
    # 2 bytes of weight, 2 of gradient, 12 of states over 2 ranks.
    assert found == (2 * held, 2 * held, 12 * held / 2)
    dense = 803_475_456
    assert use.weights == 2 * (held + dense)
    assert use.optimizer == pytest.approx(12 * (held / 2 + dense / 8))


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_a_dense_model_has_no_expert_memory(zero_stage: int) -> None:
    layout = ParallelLayout(dp=4, zero_stage=zero_stage)
    (use,) = forecaster(layout).memory(layout)
    assert (use.expert_weights, use.expert_gradients, use.expert_optimizer) == (0, 0, 0)


def test_zero_3_holds_a_shard_of_each_and_gathers_both() -> None:
    layout = ParallelLayout(dp=8, ep=4, zero_stage=3)
    cast = forecaster(layout, model=tiny_mixture())
    (use,) = cast.memory(layout)
    assert use.gradients == 2 * (DENSE / 8 + ROUTED / 4 / 2)
    step = step_of(layout, cast)
    sent = [
        (7 / 8 * segment.parameters + 1 / 2 * segment.expert_parameters) * 2 / SCALE_UP
        for segment in step.program.chunks[0].segments
    ]
    assert step.seconds(WorkKind.GATHER) == pytest.approx(sent)


def test_gradients_are_reduced_over_the_ranks_that_hold_the_same() -> None:
    layout = ParallelLayout(dp=8, ep=4)
    step = step_of(layout, forecaster(layout, model=tiny_mixture()))
    dense = 2 * 7 / 8 * DENSE * 2 / SCALE_UP
    experts = 2 * 1 / 2 * ROUTED / 4 * 2 / SCALE_UP
    assert step.seconds(WorkKind.REDUCE) == pytest.approx([dense + experts])


def test_experts_that_tp_does_not_cut_are_reduced_over_its_ranks() -> None:
    layout = ParallelLayout(tp=4, etp=1, sequence_parallel=True)
    step = step_of(layout, forecaster(layout, model=tiny_mixture()))
    assert step.seconds(WorkKind.REDUCE) == pytest.approx([2 * 3 / 4 * ROUTED * 2 / SCALE_UP])


def test_hybrid_shards_of_experts_are_reduced_over_as_many_replicas() -> None:
    layout = ParallelLayout(dp=8, ep=2, zero_stage=1, shard_size=4)
    program = program_of(tiny_mixture(), layout)
    groups = (program.data_group, program.replica_group)
    experts = (program.expert_data_group, program.expert_replica_group)
    assert [group.size for group in (*groups, *experts)] == [4, 2, 2, 2]


def test_the_update_moves_the_shards_of_both() -> None:
    layout = ParallelLayout(dp=8, ep=4, zero_stage=1)
    step = step_of(layout, forecaster(layout, model=tiny_mixture()))
    # 8 of master, 16 of states, 2 of gradient and 2 of weight a parameter updated; 2 x 2 for norm
    # and zeroing of each held.
    updated, held = DENSE / 8 + ROUTED / 8, DENSE + ROUTED / 4
    assert step.seconds(WorkKind.OPTIMIZER) == pytest.approx([(28 * updated + 4 * held) / 1e12])


def test_model_flops_count_active_experts_projections_and_every_head() -> None:
    # Per token: 4 layers and the module's one of attention, 2 of 8 experts and the shared one;
    # the module's projection of 128 channels to 64; two heads. Attention without its mask.
    model = tiny_mixture(SHARED, num_nextn_predict_layers=1)
    layout = ParallelLayout(dp=8, ep=8)
    layer = 4 * 64 * 64 + (2 * 128 + 64) * 3 * 64
    core = 2 * 32 * 64
    per_token = 2 * (5 * (layer + core) + 2 * 64 * 64 + 2 * TABLE)
    found = forecaster(layout, model=model).estimate(layout).model_flops
    assert found == pytest.approx(3 * 8 * 32 * per_token)


@pytest.mark.parametrize("moe", [Routing(load_imbalance=2.0), Routing(capacity_factor=1.5)])
def test_model_flops_do_not_depend_on_how_tokens_are_spread(moe: Routing) -> None:
    layout = ParallelLayout(dp=8, ep=8)
    plain, changed = (
        forecaster(layout, model=tiny_mixture(), job=tiny_job(moe=routing)).estimate(layout)
        for routing in (Routing(), moe)
    )
    assert changed.model_flops == pytest.approx(plain.model_flops)
    assert changed.step_time > plain.step_time


@pytest.mark.parametrize(
    ("dispatcher", "copies", "counts"),
    [(Dispatcher.ALL_TO_ALL, 4, 4 * 7 / 8 * 512 / 2), (Dispatcher.FLEX, 22 / 7, 0)],
)
def test_a_copy_a_domain_takes_less_time_on_the_network(
    dispatcher: Dispatcher, copies: float, counts: float
) -> None:
    # 4 of 8 experts on 8 ranks, 2 in each of 4 domains: 4 copies a token, or one in each of
    # 4 (1 - C(6, 4) / C(8, 4)) = 22/7 domains; 3 of 4 leave theirs. 4 trips of 32 rows of 128
    # bytes in 4 layers; all-to-all also tells 8 counts of 8 bytes to each rank, in each layer.
    layout = ParallelLayout(dp=8, ep=8)
    cast = forecaster(
        layout,
        model=tiny_mixture(EXPERTS.model_copy(update={"num_experts_per_tok": 4})),
        job=tiny_job(moe=Routing(dispatcher=dispatcher)),
        profile=fake_profile(node=fake_node(domain_size=2, accelerators=2)),
    )
    seconds = (4 * 4 * 32 * 128 * copies * 3 / 4 + counts) / NIC
    found = cast.estimate(layout).breakdown.seconds[Category.EXPERT_COMM]
    assert found == pytest.approx(seconds)


def test_multi_token_prediction_stands_on_the_last_stage_with_an_embedding() -> None:
    layout = ParallelLayout(pp=2)
    plain, more = (program_of(tiny_mixture(num_nextn_predict_layers=n), layout) for n in (0, 1))
    module = LAYER + 2 * 64 * 64 + 3 * 64
    assert more.stage_parameters(0) == plain.stage_parameters(0)
    assert more.stage_parameters(1) == plain.stage_parameters(1) + module + TABLE
    assert more.stage_expert_parameters(1) == plain.stage_expert_parameters(1) + ROUTED / 4
    assert (plain.ties_stages, more.ties_stages) == (False, True)


def test_one_stage_has_the_embedding_already() -> None:
    plain, more = (
        program_of(tiny_mixture(num_nextn_predict_layers=n), ParallelLayout()) for n in (0, 1)
    )
    module = LAYER + 2 * 64 * 64 + 3 * 64
    assert more.stage_parameters(0) == plain.stage_parameters(0) + module


def test_the_logits_of_all_depths_live_at_once() -> None:
    layout = ParallelLayout()
    logits = [
        forecaster(layout, model=tiny_mixture(num_nextn_predict_layers=n)).memory(layout)[0].logits
        for n in (0, 2)
    ]
    assert logits[1] == 3 * logits[0]


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[ParallelLayout, Forecaster]:
    """Return any legal layout of a tiny mixture, and its forecaster."""
    tp, dp = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2, 4)))
    layout = ParallelLayout(
        tp=tp,
        dp=dp,
        cp=draw(st.sampled_from((1, 2))),
        pp=draw(st.sampled_from((1, 2))),
        ep=draw(st.sampled_from((1, 2, 4, 8))),
        etp=draw(st.sampled_from((None, 1, 2))),
        sequence_parallel=tp > 1,
        zero_stage=draw(st.integers(0, 3)),
        recompute=draw(st.sampled_from(Recompute)),
    )
    moe = Routing(
        dispatcher=draw(st.sampled_from(Dispatcher)),
        load_imbalance=draw(st.sampled_from((1.0, 1.3))),
        aux_loss=draw(st.booleans()),
        overlap=draw(st.booleans()),
    )
    experts, depths = draw(st.sampled_from((EXPERTS, SHARED))), draw(st.integers(0, 1))
    build = tiny_latent if draw(st.booleans()) else tiny_mixture
    model = build(experts, num_nextn_predict_layers=depths)
    stack = fake_stack(
        kernels={
            "grouped_gemm": draw(st.booleans()),
            "cpu_launch": draw(st.sampled_from((0, 1e-6))),
        },
        overlap={
            "gradient_reduce": draw(st.booleans()),
            "expert_fraction": draw(st.sampled_from((0.0, 0.7))),
            "shared_expert": draw(st.booleans()),
        },
        bucket_parameters=draw(st.sampled_from((20_000, 10**9))),
    )
    job = tiny_job(moe=moe)
    assume(not list(violations(model, job, stack, layout)))
    return layout, forecaster(layout, model=model, job=job, stack=stack)


@given(mixtures())
def test_estimate_and_engine_agree_on_idle_links(
    case: tuple[ParallelLayout, Forecaster],
) -> None:
    layout, cast = case
    step = step_of(layout, cast)
    assume(not may_share_a_link(step))
    assert max(step.play().end) == pytest.approx(step.timing().step_time, rel=1e-9)


@given(mixtures())
def test_the_breakdown_adds_up_and_states_are_bounded(
    case: tuple[ParallelLayout, Forecaster],
) -> None:
    layout, cast = case
    result = cast.estimate(layout)
    assert result.breakdown.total == pytest.approx(result.step_time)
    for use in result.memory:
        assert 0 <= use.expert_weights <= use.weights
        assert 0 < use.expert_gradients < use.gradients
        assert 0 < use.expert_optimizer < use.optimizer


def test_a_stack_may_be_slower_at_grouped_products_than_the_constants() -> None:
    layout = ParallelLayout(dp=8, ep=4)
    slow = fake_stack(fit=Fit(grouped={"fake": 2.0}, spread=0.1, spread_source="made up"))
    plain, slower = (
        forecaster(layout, model=tiny_mixture(), stack=stack).estimate(layout).breakdown.seconds
        for stack in (fake_stack(), slow)
    )
    # 32 tokens x 2 of 3 x 64 x 128 weights, 2 FLOP, three times, in 4 layers, at 100 TFLOP/s.
    experts = 32 * 2 * 3 * 64 * 128 * 2 * 3 * 4 / 1e14
    assert slower[Category.GEMM] - plain[Category.GEMM] == pytest.approx(experts)


@pytest.mark.parametrize("grouped", [True, False])
def test_each_local_expert_is_launched(grouped: bool) -> None:
    stack = fake_stack(kernels={"cpu_launch": 1.0, "grouped_gemm": grouped})
    seconds = []
    for ep in (1, 8):
        layout = ParallelLayout(dp=8, ep=ep)
        cast = forecaster(layout, model=tiny_mixture(), stack=stack)
        program = cast.program(layout)
        ((work, _),) = program.chunks[0].whole.layers
        seconds.append(cast.costs.priced_pass(program, work).forward.seconds)
    # Up and down for 8 experts instead of 1, a second a launch.
    assert seconds[0] - seconds[1] == pytest.approx(2 * 7)


def test_adapters_leave_nothing_else_to_train_in_a_prediction_module() -> None:
    model, lora = tiny_mixture(num_nextn_predict_layers=1), Lora(rank=4)
    whole = program_of(model, ParallelLayout(), lora=lora).chunks[0].whole
    # Five layers: (64 + 192) x 4 beside qkv, (64 + 64) x 4 beside the projection.
    assert whole.trained == pytest.approx(5 * 4 * (64 + 192 + 64 + 64))
    assert whole.trained_experts == 0.0


def test_an_all_to_all_in_two_steps_takes_one_after_the_other() -> None:
    layout = ParallelLayout(dp=8, ep=8)
    profile = fake_profile(node=fake_node(domain_size=2, accelerators=2))
    seconds = [
        forecaster(
            layout, model=tiny_mixture(), job=tiny_job(moe=Routing(two_step=steps)), profile=profile
        )
        .estimate(layout)
        .breakdown.seconds[Category.EXPERT_COMM]
        for steps in (False, True)
    ]
    # The same bytes on the NIC; half of 32 x 2 rows of 128 bytes inside, 4 trips, 4 layers.
    inside = 4 * 4 * 32 * 2 * 128 / 2 / SCALE_UP
    assert seconds[1] - seconds[0] == pytest.approx(inside)
