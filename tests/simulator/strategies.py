"""Random training set-ups: any legal layout of a small model, any stack, any fake machine."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.parallel.checks import violations
from simulator.parallel.layout import DataParallel, ParallelLayout, Recompute, ScheduleName
from simulator.workload.model import ModelSpec
from simulator.workload.stack import AttentionKernel, Stack
from tests.fakes import (
    fake_collectives,
    fake_constants,
    fake_node,
    fake_profile,
    fake_stack,
    tiny_job,
    tiny_model,
)

SEQ_LENGTH = 32
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
        },
        bucket_parameters=draw(st.sampled_from(BUCKETS)),
    )


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[ScheduleName, int, int, int]:
    """Return a schedule with a legal (pp, vpp, micro-batches)."""
    name: ScheduleName = draw(st.sampled_from(ScheduleName))
    pp, vpp = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    micro_batches = draw(st.integers(1, 6))
    match name:
        case ScheduleName.ONE_F_ONE_B:
            vpp = 1
        case ScheduleName.INTERLEAVED:
            pp, vpp = max(2, pp), max(2, vpp)
            micro_batches = pp * draw(st.integers(1, 3))
        case ScheduleName.GPIPE:
            pass
    return name, pp, vpp, micro_batches


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
    per_stage = tuple(draw(st.integers(0, 3)) for _ in range(pp * vpp))
    assume(sum(per_stage))
    dp, cp = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2))) if flash else 1
    data_parallel = draw(st.sampled_from(DataParallel))
    whole = data_parallel is not DataParallel.ALL_REDUCE
    zero_stage = 0 if whole else draw(st.integers(0, 3))
    shards = st.sampled_from([n for n in (1, 2, 4, 8) if dp * cp % n == 0])
    layout = ParallelLayout(
        tp=draw(st.sampled_from((1, 2, 4))),
        pp=pp,
        dp=dp,
        cp=cp,
        vpp=vpp,
        schedule=schedule,
        sequence_parallel=draw(st.booleans()),
        zero_stage=zero_stage,
        shard_size=draw(st.none() | shards) if zero_stage else None,
        recompute=draw(st.sampled_from(Recompute)),
        layers_per_stage=per_stage,
        data_parallel=data_parallel,
        sync_every=draw(st.integers(1, 4)) if data_parallel is DataParallel.LOCAL_SGD else 1,
    )
    model = tiny_model(
        num_hidden_layers=sum(per_stage),
        tie_word_embeddings=draw(st.booleans()),
        num_key_value_heads=draw(st.sampled_from((1, 2, 4))),
        gated_mlp=draw(st.booleans()),
    )
    setup = Setup(model=model, stack=stack, layout=layout, micro_batches=micro_batches)
    job = tiny_job(global_batch_size=micro_batches * dp, seq_length=SEQ_LENGTH)
    assert not list(violations(model, job, stack, layout))
    return setup
