"""Flash attention times: hand arithmetic, what must rise with what, held-out measurements."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit_kernels import predict_attention
from calibrate.fit_shipped import HEAD_DIMS
from calibrate.kernel_tables import read_attention
from calibrate.log_fit import held_out
from simulator.cost.attention import (
    flash_backward_seconds,
    flash_forward_seconds,
)
from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.kernel_constants import AttentionConstants
from simulator.hardware.profile import load_profile
from simulator.units import GIB, TERA, US
from simulator.workload.operator import AttentionShape
from tests.data import data_folder, needs_data

GPU = Accelerator(
    name="ten units",
    peak={Dtype.BF16: 100 * TERA},
    memory=80 * GIB,
    memory_bandwidth=1e30,
    l2=0.0,
    compute_units=10,
    clock=1e9,
    power=100.0,
)
PLAIN = AttentionConstants(
    query_tile=100,
    efficiency=1.0,
    softmax_flops=0.0,
    k_overhead=0.0,
    tail=0.0,
    memory_efficiency=1.0,
    start=0.0,
    backward_factor=2.5,
)
SQUARE = AttentionShape(
    batch=1, seq_q=1000, seq_k=1000, heads=10, kv_heads=10, head_dim=100, causal=False
)
H100 = load_profile("dgx-h100")
small = st.integers(min_value=1, max_value=8)
lengths = st.integers(min_value=1, max_value=32_768)


def forward(shape: AttentionShape, **changes: object) -> float:
    constants = PLAIN.model_copy(update=changes)
    return flash_forward_seconds(shape, dtype=Dtype.BF16, gpu=GPU, constants=constants)


def test_full_attention_takes_its_flops_over_the_peak() -> None:
    assert forward(SQUARE) == pytest.approx(4 * 10 * 1000 * 1000 * 100 / 1e14)


def test_causal_attention_takes_half_and_the_diagonal_blocks() -> None:
    causal = forward(replace(SQUARE, causal=True))
    assert causal == pytest.approx(forward(SQUARE) * (500.5 + 50) / 1000)


def test_keys_seen_under_a_window_are_counted_by_hand() -> None:
    shape = replace(SQUARE, seq_q=4, seq_k=6, causal=True, window=4)
    assert shape.mean_keys == pytest.approx((3 + 4 + 4 + 4) / 4)
    assert replace(shape, window=None).mean_keys == pytest.approx((3 + 4 + 5 + 6) / 4)


def test_the_tail_adds_the_longest_block() -> None:
    block = 100 * 4 * 100 * 1000 / 1e13
    assert forward(SQUARE, tail=1.0) - forward(SQUARE) == pytest.approx(block)


def test_short_heads_are_bound_by_the_softmax() -> None:
    narrow = replace(SQUARE, head_dim=1)
    assert forward(narrow, softmax_flops=400.0) == pytest.approx(forward(SQUARE), rel=1e-6)


def test_backward_is_its_factor_times_forward() -> None:
    backward = flash_backward_seconds(SQUARE, dtype=Dtype.BF16, gpu=GPU, constants=PLAIN)
    assert backward == pytest.approx(2.5 * forward(SQUARE))


def test_training_is_slower_than_a_burst_by_its_factor() -> None:
    constants = PLAIN.model_copy(update={"sustained_factor": 1.2})
    call = {"dtype": Dtype.BF16, "gpu": GPU, "constants": constants, "sustained": True}
    taken = flash_forward_seconds(SQUARE, **call)  # type: ignore[arg-type]
    assert taken == pytest.approx(1.2 * forward(SQUARE))


def test_the_cache_write_costs_its_bytes_and_tokens() -> None:
    gpu = GPU.model_copy(update={"memory_bandwidth": 1e12})
    constants = PLAIN.model_copy(update={"cache_efficiency": 0.5, "cache_token": 0.01 * US})
    call = {"dtype": Dtype.BF16, "gpu": gpu, "constants": constants}
    without = flash_forward_seconds(SQUARE, **call)  # type: ignore[arg-type]
    written = flash_forward_seconds(SQUARE, write_cache=True, **call)  # type: ignore[arg-type]
    assert written - without == pytest.approx(4 * 2 * 1000 * 10 * 100 / 0.5e12 + 10 * US)


@given(batch=small, heads=small, seq=lengths, more=lengths)
def test_a_longer_sequence_is_never_faster(batch: int, heads: int, seq: int, more: int) -> None:
    shape = AttentionShape(batch=batch, seq_q=seq, seq_k=seq, heads=heads, kv_heads=1, head_dim=128)
    longer = replace(shape, seq_q=seq + more, seq_k=seq + more)
    assert _h100(longer) >= _h100(shape)


@given(batch=small, heads=small, seq=lengths, window=lengths)
def test_a_window_never_makes_it_slower(batch: int, heads: int, seq: int, window: int) -> None:
    shape = AttentionShape(batch=batch, seq_q=seq, seq_k=seq, heads=heads, kv_heads=1, head_dim=64)
    assert _h100(replace(shape, window=window)) <= _h100(shape) * (1 + 1e-12)


@needs_data
@pytest.mark.parametrize(
    ("profile", "table", "median", "training"),
    [
        ("dgx-a100-80gb", "a100_sxm_context_attention_vllm_0.14.0", 0.04, 0.03),
        ("dgx-h100", "h100_sxm_context_attention_vllm_0.24.0", 0.06, 0.05),
        ("dgx-b200", "b200_sxm_context_attention_vllm_0.24.0", 0.06, 0.05),
    ],
)
def test_held_out_bursts_are_predicted(
    profile: str, table: str, median: float, training: float
) -> None:
    machine = load_profile(profile)
    read = read_attention(data_folder() / "kernels" / f"{table}.csv", HEAD_DIMS)
    _, out = held_out(len(read.seconds))
    predicted = predict_attention(
        read, out, Dtype.BF16, machine.accelerator, machine.constants.attention
    )
    errors = abs(predicted / read.seconds[out] - 1)
    found = np.array([np.median(errors), np.median(errors[read.training[out]])])
    assert np.all(found <= [median, training]), found


def _h100(shape: AttentionShape) -> float:
    constants = H100.constants.attention
    return flash_forward_seconds(shape, dtype=Dtype.BF16, gpu=H100.accelerator, constants=constants)
