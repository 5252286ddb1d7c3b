"""Sizes and times of checkpoints by hand."""

from __future__ import annotations

import pytest

from planner.goodput.checkpoint import CheckpointSize, checkpoint_size, checkpoint_times
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.run_file import CheckpointFile, CheckpointMode
from simulator.workload.job import Lora, Optimizer, TrainingJob
from tests.planner.scenarios import forecaster, gpt, machine, mixtral, scenario

SIZE = CheckpointSize(weights=2e12, states=12e12)
LAYOUT = ParallelLayout(tp=8, pp=2, dp=4)


def per_parameter(stack: str, layout: ParallelLayout, **job: object) -> float:
    """Return the bytes a parameter of a checkpoint."""
    asked = TrainingJob(global_batch_size=32, seq_length=1024, **job)  # type: ignore[arg-type]
    there = forecaster(scenario(gpt(), stack=stack, job=asked))
    return checkpoint_size(there, layout).total / there.trainable_parameters


@pytest.mark.parametrize(
    ("stack", "zero_stage", "job", "expected"),
    [
        ("megatron-core", 1, {}, 14.0),  # 2 + 4 + 8
        ("megatron-lm-2021", 0, {}, 14.0),  # its fp32 gradient is not saved
        ("torchtitan", 3, {}, 12.0),  # fp32 parameters and two moments
        ("deepspeed-zero3", 3, {}, 14.0),
        ("megatron-core", 1, {"optimizer": Optimizer.SGD}, 6.0),
    ],
)
def test_bytes_a_parameter(
    stack: str, zero_stage: int, job: dict[str, object], expected: float
) -> None:
    layout = ParallelLayout(zero_stage=zero_stage, dp=8)
    assert per_parameter(stack, layout, **job) == pytest.approx(expected)


def test_adapters_save_their_own_states_only() -> None:
    job = TrainingJob(global_batch_size=32, seq_length=1024, lora=Lora(rank=8))
    there = forecaster(scenario(gpt(), job=job))
    size = checkpoint_size(there, ParallelLayout())
    assert size.states == pytest.approx(12.0 * there.trainable_parameters)


def test_experts_are_a_part_of_the_weights() -> None:
    size = checkpoint_size(forecaster(scenario(mixtral())), ParallelLayout())
    # 4 layers of 8 experts with three matrices of 512 x 1,024, 2 bytes each.
    assert size.expert_weights == 4 * 8 * 3 * 512 * 1024 * 2


def test_a_synchronous_write_waits_for_storage() -> None:
    file = CheckpointFile(write_bandwidth=1e12)
    times = checkpoint_times(SIZE, file, machine(), LAYOUT)
    # Read: weights by each of four replicas, states once.
    assert (times.stall, times.write, times.read) == (14.0, 0.0, 20.0)


def test_an_asynchronous_one_waits_for_the_copy_to_the_host() -> None:
    file = CheckpointFile(write_bandwidth=1e12, mode=CheckpointMode.ASYNC)
    times = checkpoint_times(SIZE, file, machine(), LAYOUT)
    # 64 ranks at three quarters of 25 GB/s.
    assert (times.stall, times.write) == pytest.approx((14e12 / (64 * 18.75e9), 14.0))


def test_one_replica_that_writes_alone_copies_and_writes_from_fewer_nodes() -> None:
    profile = machine()
    host = profile.node.host.model_copy(update={"storage_bandwidth": 1e9})
    node = profile.node.model_copy(update={"host": host})
    slow = profile.model_copy(update={"machine": profile.machine.model_copy(update={"node": node})})
    all_write = checkpoint_times(SIZE, CheckpointFile(), slow, LAYOUT)
    one_writes = checkpoint_times(SIZE, CheckpointFile(sharded=False), slow, LAYOUT)
    assert (all_write.stall, one_writes.stall) == (14e12 / 8e9, 14e12 / 2e9)


def test_unknown_storage_is_asked_for() -> None:
    with pytest.raises(InputError, match=r"run\.checkpoint\.write_bandwidth: must say how fast"):
        checkpoint_times(SIZE, CheckpointFile(), machine(), LAYOUT, "x.toml")
