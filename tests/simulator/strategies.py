"""Random training set-ups: any legal layout of a small model, any stack, any fake machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.parallel.checks import violations
from simulator.parallel.layout import (
    ContextExchange,
    DataParallel,
    ParallelLayout,
    Recompute,
    RecomputeMethod,
    RecomputeModule,
    ScheduleName,
)
from simulator.schedule.registry import SCHEDULES
from simulator.workload.model import ModelSpec
from simulator.workload.model_parts import Experts
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel
from tests.fakes import (
    changed,
    fake_collectives,
    fake_constants,
    fake_node,
    fake_profile,
    fake_stack,
    tiny_job,
    tiny_model,
)

SEQ_LENGTH = 32
MODULES = (RecomputeModule.CORE_ATTENTION, RecomputeModule.LAYERNORM, RecomputeModule.MLP)
BUCKETS = (1, 20_000, 40_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A layout on a cluster that it fills, and what it trains."""

    model: ModelSpec
    stack: Stack
    layout: ParallelLayout
    micro_batches: int

    @property
    def block(self) -> int:
        """Ranks of one pipeline stage: tp x cp x dp."""
        return self.layout.tp * self.layout.cp * self.layout.dp

    def forecaster(self, domain_size: int, latency: float = 1e-6) -> Forecaster:
        """Return the forecaster on nodes of `domain_size` accelerators, each a scale-up domain."""
        batch = self.micro_batches * self.layout.dp * self.layout.micro_batch_size
        return Forecaster(
            self.model,
            tiny_job(global_batch_size=batch, seq_length=SEQ_LENGTH),
            self.stack,
            fake_profile(
                node=fake_node(domain_size=domain_size, accelerators=domain_size),
                constants=fake_constants(collectives=fake_collectives(latency)),
            ),
            self.layout.world_size,
        )


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    """Return a stack with any kernels, any overlap and any bucket size."""
    flags = st.booleans()
    return fake_stack(
        kernels={
            "attention": draw(st.sampled_from(AttentionKernel)),
            "dropout": draw(flags),
            "cpu_launch": draw(st.sampled_from((0.0, 1e-6))),
        },
        overlap={
            "gradient_reduce": draw(flags),
            "parameter_gather": draw(flags),
            "pipeline_send": draw(flags),
            "tensor_backward": draw(flags),
            "pipeline_slices": draw(flags),
            "tensor_fraction": draw(st.sampled_from((0.0, 0.5, 1.0))),
            "prefetch": draw(st.integers(0, 2)),
            "pipeline_receive": draw(flags),
            "sharded": draw(flags),
            "send_after_reduce": draw(flags),
        },
        bucket_parameters=draw(st.sampled_from(BUCKETS)),
        first_bucket_parameters=draw(st.sampled_from((None, *BUCKETS))),
    )


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[ScheduleName, int, int, int]:
    """Return a schedule with a legal (pp, vpp, micro-batches)."""
    name: ScheduleName = draw(st.sampled_from(list(SCHEDULES)))
    pp, vpp = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    micro_batches = draw(st.integers(1, 6))
    match name:
        case ScheduleName.ONE_F_ONE_B | ScheduleName.GPIPE:
            vpp = 1
        case ScheduleName.ZERO_BUBBLE_H1:
            rounds = max(1, micro_batches // pp)
            micro_batches += -micro_batches % rounds if vpp > 1 else 0
            vpp = vpp if micro_batches % max(1, micro_batches // pp) == 0 else 1
        case ScheduleName.ZERO_BUBBLE_V:
            vpp = 2
        case ScheduleName.DUALPIPE:
            pp, vpp = 2 * draw(st.integers(1, 2)), 2
            micro_batches = 2 * (pp + draw(st.integers(0, 2)))
        case ScheduleName.DUALPIPE_V:
            vpp = 2
            micro_batches += 2 * pp
        case ScheduleName.INTERLEAVED:
            pp, vpp = max(2, pp), max(2, vpp)
            micro_batches = pp * draw(st.integers(1, 3))
        case _:
            pass
    return name, pp, vpp, micro_batches


def exchanges(cp: int, kv_heads: int) -> list[ContextExchange]:
    """Return the ways in which `cp` ranks of `kv_heads` each can exchange keys."""
    found = [ContextExchange.RING]
    if cp > 1:
        found.append(ContextExchange.ALL_GATHER)
        found += [ContextExchange.ULYSSES] * (kv_heads % cp == 0)
        found += [ContextExchange.HIERARCHICAL] * (cp == 4 and kv_heads % 2 == 0)
    return found


@st.composite
def recomputations(draw: st.DrawFn, layers: int) -> dict[str, Any]:
    """Return how stages of at most `layers` layers recompute."""
    recompute: Recompute = draw(st.sampled_from(Recompute))
    modules, number = st.lists(st.sampled_from(MODULES), unique=True), st.integers(1, layers)
    match recompute:
        case Recompute.NONE:
            return {"recompute": recompute}
        case Recompute.SELECTIVE:
            return {"recompute": recompute, "recompute_modules": tuple(draw(modules))}
        case Recompute.FULL:
            count = draw(st.none() | number)
            method = draw(st.sampled_from(RecomputeMethod)) if count else None
            fields = {"recompute_num_layers": count, "recompute_method": method}
            return {"recompute": recompute, **fields}


@st.composite
def with_experts(
    draw: st.DrawFn, model: ModelSpec, layout: ParallelLayout
) -> tuple[ModelSpec, ParallelLayout]:
    """Return the model as it is, or with experts behind its first layer, spread over any ranks."""
    if model.num_hidden_layers == 1 or not draw(st.booleans()):
        return model, layout
    ranks = layout.tp * layout.cp * layout.dp
    sizes = [n for n in (1, 2, 4) if ranks % n == 0 and (n == 1 or layout.shard_size is None)]
    experts = Experts(
        num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, dense_layers=(0,)
    )
    depths = draw(st.integers(0, 1))
    spread = {"ep": draw(st.sampled_from(sizes)), "etp": 1, "sequence_parallel": layout.tp > 1}
    return (
        changed(model, moe=experts, num_nextn_predict_layers=depths),
        changed(layout, **spread),
    )


@st.composite
def setups(draw: st.DrawFn, *, pipelined: bool = True) -> Setup:
    """Return any legal layout: all schedules, strategies, axes and splits of the layers."""
    schedule, pp, vpp, micro_batches = (
        draw(pipelines())
        if pipelined
        else (ScheduleName.ONE_F_ONE_B, 1, 1, draw(st.integers(1, 4)))
    )
    stack = draw(stacks())
    flash = stack.kernels.attention is AttentionKernel.FLASH
    twice = schedule is ScheduleName.DUALPIPE
    parts = pp if twice else pp * vpp
    per_stage = tuple(draw(st.integers(0, 3)) for _ in range(parts))
    assume(sum(per_stage))
    dp, cp = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2, 4))) if flash else 1
    tp, kv_heads = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2, 4)))
    exchange = draw(st.sampled_from(exchanges(cp, max(1, kv_heads // tp))))
    data_parallel = DataParallel.ALL_REDUCE if twice else draw(st.sampled_from(DataParallel))
    whole = data_parallel is not DataParallel.ALL_REDUCE
    zero_stage = 0 if whole else draw(st.integers(0, 1 if twice else 3))
    shards = st.sampled_from([n for n in (1, 2, 4, 8) if dp * cp % n == 0])
    layout = ParallelLayout(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        cp_comm_type=exchange,
        cp_inner=2 if exchange is ContextExchange.HIERARCHICAL else None,
        vpp=vpp,
        schedule=schedule,
        sequence_parallel=draw(st.booleans()),
        zero_stage=zero_stage,
        shard_size=draw(st.none() | shards) if zero_stage and not twice else None,
        **draw(recomputations(max(per_stage))),
        layers_per_stage=per_stage,
        data_parallel=data_parallel,
        sync_every=draw(st.integers(1, 4)) if data_parallel is DataParallel.LOCAL_SGD else 1,
    )
    model = tiny_model(
        num_hidden_layers=sum(per_stage),
        tie_word_embeddings=draw(st.booleans()),
        num_key_value_heads=kv_heads,
        gated_mlp=draw(st.booleans()),
    )
    model, layout = draw(with_experts(model, layout))
    setup = Setup(model=model, stack=stack, layout=layout, micro_batches=micro_batches)
    job = tiny_job(global_batch_size=micro_batches * dp, seq_length=SEQ_LENGTH)
    assert not list(violations(model, job, stack, layout))
    return setup
