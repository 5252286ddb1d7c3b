"""Which expert parallelism and routing a model allows, each refusal with its legal alternatives.

Source: Megatron-LM megatron/training/arguments.py (validate_args) and core/transformer/moe/
token_dispatcher.py (assertions of the dispatchers).
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.errors import Problem
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.reasons import listed
from simulator.workload.job import Dispatcher, Routing, TrainingJob
from simulator.workload.layer import MoeSpec
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

EXPERT_FIELDS = ("tp", "cp", "dp", "ep", "etp", "sequence_parallel", "zero_stage", "shard_size")
"""Fields of the layout that decide it."""
_LEAVE_OUT = "leave it out"


def expert_problems(
    model: ModelSpec,
    job: TrainingJob,
    stack: Stack,  # noqa: ARG001
    layout: ParallelLayout,
) -> Iterator[Problem]:
    """Yield what is wrong with ep, etp and `job.moe`."""
    mixtures = [layer.mlp for layer in model.layer_groups() if isinstance(layer.mlp, MoeSpec)]
    if not mixtures:
        yield from _dense(job, layout)
        return
    # All mixtures of a model are alike: `ModelSpec` has one description of them.
    yield from _sizes(mixtures[0], layout)
    yield from _ranks(layout)
    yield from _sequence(layout)
    yield from _routing(job, layout)
    yield from _shards(layout)


def _dense(job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    """Nothing that is said about experts may be lost on a model without any."""
    rule = "a dense model has no experts"
    if layout.ep != 1:
        yield Problem(key="layout.ep", found=str(layout.ep), rule=rule, fix="ep = 1")
    if layout.etp is not None:
        yield Problem(key="layout.etp", found=str(layout.etp), rule=rule, fix=_LEAVE_OUT)
    changed = [
        f"{name} = {_shown(value)}" for name, value in job.moe if value != getattr(Routing(), name)
    ]
    if changed:
        yield Problem(key="job.moe", found=", ".join(changed), rule=rule, fix=_LEAVE_OUT)


def _sizes(moe: MoeSpec, layout: ParallelLayout) -> Iterator[Problem]:
    if moe.experts % layout.ep:
        yield Problem(
            key="layout.ep",
            found=f"{moe.experts} experts, ep {layout.ep}",
            rule="experts must divide by ep",
            fix=f"ep of {_divisors(moe.experts)}",
        )
    if moe.intermediate_size % layout.expert_tp:
        key = "layout.tp" if layout.etp is None else "layout.etp"
        name = "etp, which is tp where it is left out," if layout.etp is None else "etp"
        yield Problem(
            key=key,
            found=f"width {moe.intermediate_size}, etp {layout.expert_tp}",
            rule=f"the width of an expert must divide by {name}",
            fix=f"etp of {_divisors(moe.intermediate_size)}",
        )


def _ranks(layout: ParallelLayout) -> Iterator[Problem]:
    ranks, experts = layout.tp * layout.cp * layout.dp, layout.ep * layout.expert_tp
    if ranks % experts == 0:
        return
    fitting = [ep for ep in range(1, ranks + 1) if ranks % (ep * layout.expert_tp) == 0]
    fix = f"ep of {listed(fitting)}" if fitting else "a smaller etp"
    yield Problem(
        key="layout.ep",
        found=f"ep {layout.ep} x etp {layout.expert_tp} = {experts}",
        rule=f"ep x etp must divide the tp x cp x dp = {ranks} ranks of a stage",
        fix=fix,
    )


def _sequence(layout: ParallelLayout) -> Iterator[Problem]:
    if layout.tp > 1 and not layout.sequence_parallel:
        yield Problem(
            key="layout.sequence_parallel",
            found=f"false, tp {layout.tp}",
            rule="a mixture of experts with tp > 1 needs sequence parallelism: each rank sends its "
            "own tokens",
            fix="true",
        )


def _routing(job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    moe = job.moe
    if moe.capacity_factor is not None and moe.dispatcher is not Dispatcher.ALL_TO_ALL:
        yield Problem(
            key="job.moe.capacity_factor",
            found=f"{moe.capacity_factor:g} with dispatcher {moe.dispatcher}",
            rule="only the alltoall dispatcher pads experts to a capacity",
            fix='leave it out, or dispatcher = "alltoall"',
        )
    if moe.two_step and moe.dispatcher is not Dispatcher.ALL_TO_ALL:
        yield Problem(
            key="job.moe.two_step",
            found=f"true with dispatcher {moe.dispatcher}",
            rule="only the alltoall dispatcher's all-to-all can go in two steps",
            fix='false, or dispatcher = "alltoall"',
        )
    if moe.capacity_factor is not None and moe.load_imbalance != 1.0:
        yield Problem(
            key="job.moe.load_imbalance",
            found=f"{moe.load_imbalance:g} with capacity_factor {moe.capacity_factor:g}",
            rule="padded to a capacity, every expert has as many tokens",
            fix="1, or no capacity_factor",
        )
    if 1 < layout.ep < moe.load_imbalance:
        yield Problem(
            key="job.moe.load_imbalance",
            found=f"{moe.load_imbalance:g}, ep {layout.ep}",
            rule="the busiest of ep ranks has at most ep times the mean",
            fix=f"at most {layout.ep}, or a larger ep",
        )
    if layout.ep * layout.expert_tp == 1:
        yield from _unsent(job)
    if moe.dispatcher is Dispatcher.FLEX and layout.ep * layout.expert_tp == 1:
        yield Problem(
            key="job.moe.dispatcher",
            found=f"{moe.dispatcher}, ep 1, etp 1",
            rule="the flex dispatcher needs ep x etp > 1",
            fix='"alltoall", or ep of 2 or more',
        )
    if moe.dispatch_dtype is not None and moe.dispatch_dtype.bytes > _activation_bytes(job):
        yield Problem(
            key="job.moe.dispatch_dtype",
            found=moe.dispatch_dtype,
            rule=f"must not be wider than the activations' {_activation_bytes(job):g} bytes",
            fix=f"{Dtype.FP8} or {Dtype.BF16}",
        )


def _unsent(job: TrainingJob) -> Iterator[Problem]:
    """Where each rank holds all experts no token travels."""
    moe = job.moe
    asked = {
        "dispatch_dtype": moe.dispatch_dtype,
        "two_step": moe.two_step or None,
        "overlap": moe.overlap or None,
        "dispatcher": moe.dispatcher if moe.dispatcher is Dispatcher.ALL_GATHER else None,
    }
    for key, value in asked.items():
        if value is not None:
            yield Problem(
                key=f"job.moe.{key}",
                found=f"{_shown(value)}, ep 1, etp 1",
                rule="every rank holds all experts, so that no token is sent",
                fix="leave it out, or ep of 2 or more",
            )


def _shards(layout: ParallelLayout) -> Iterator[Problem]:
    """HSDP cuts the data ranks of experts into as many replicas as those of all else."""
    if layout.shard_size is None or layout.data_ranks % layout.shard_size:
        return
    replicas = layout.data_ranks // layout.shard_size
    experts = layout.ep * layout.expert_tp
    if layout.tp * layout.cp * layout.dp % experts or layout.expert_data_ranks % replicas == 0:
        return
    yield Problem(
        key="layout.shard_size",
        found=f"{layout.shard_size}: {replicas} replicas",
        rule=f"the {layout.expert_data_ranks} ranks that hold the same experts must divide by the "
        f"replicas dp x cp / shard_size",
        fix=f"{layout.data_ranks}, or a smaller ep",
    )


def _activation_bytes(job: TrainingJob) -> float:
    """Return the bytes of an activation: 16 bits where products run narrower."""
    return max(2.0, min(job.precision.bytes, 4.0))


def _divisors(number: int) -> str:
    return listed([n for n in range(1, number + 1) if number % n == 0])


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
