"""What a step row reports: its time, its memory, and whether the run failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from calibrate.validation.cells import Row, SkippedRowError
from simulator.results import MemoryUse
from simulator.units import GB, GIB, TERA
from simulator.workload.layer import AttentionSpec, LayerSpec, MlpSpec, MoeSpec
from simulator.workload.model import ModelSpec

_FAILED = re.compile(r"oom|out of memory|crash|fail|timeout", re.I)
_SUSPECT = re.compile(r"suspect|invalid|unreliable", re.I)
_DECIMAL = re.compile(r"\s*GB\b")
"""Units that are said to be decimal; PyTorch and nvidia-smi count in powers of two."""
_MEGATRON_FLOPS = re.compile(r"megatron model flops", re.I)
_PASSES = 6
"""FLOPs a token and weight: two in the forward pass, twice that in the backward pass."""
_NOT_MEASURED = re.compile(r"modelled|modeled|estimate", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedMemory:
    """A reported peak, and which part of a forecast it should be compared with."""

    size: float
    """Bytes."""
    of: Callable[[MemoryUse], float]


def refuse_suspect(row: Row) -> None:
    """Raise `SkippedRowError` where the table itself marks a row as not to be trusted."""
    if _SUSPECT.search(row.text("status")):
        raise SkippedRowError(f"status: the table marks the row as {row.text('status')[:40]!r}")


def failed(row: Row) -> bool:
    """Return whether a row says that its run ran out of memory or crashed."""
    return bool(_FAILED.search(row.text("status")))


def measured_step_time(row: Row) -> float | None:
    """Return the seconds a step took, from the tokens a second where no time is given."""
    seconds = row.optional_number("step_time_s")
    rate = row.optional_number("tokens_per_s_per_gpu")
    batch = ("global_batch", "seq_len", "gpus")
    if seconds is not None or rate is None or not all(row.known(column) for column in batch):
        return seconds
    row.assume("step time from tokens_per_s_per_gpu")
    sequences, length, gpus = (row.integer(column) for column in batch)
    return sequences * length / (rate * gpus)


def step_time_of_flops(row: Row, model: ModelSpec) -> float | None:
    """Return the seconds a step took by the FLOP/s that Megatron-LM prints; None where it does not.

    Causal attention counts half, only chosen experts count, and routers do not. Source:
    Megatron-LM megatron/training/training.py, num_floating_point_operations (2025).
    """
    rate = row.optional_number("tflops_per_gpu_reported")
    said = _MEGATRON_FLOPS.search(row.text("tflops_convention"))
    batch = ("global_batch", "seq_len", "gpus")
    if rate is None or not said or not all(row.known(column) for column in batch):
        return None
    sequences, length, gpus = (row.integer(column) for column in batch)
    if model.mla is not None or model.num_nextn_predict_layers:
        return None
    row.assume("step time from tflops_per_gpu_reported")
    met = sum(_weights_met(layer, length) * n for layer, n in model.layer_groups().items())
    met += model.vocab_size * model.hidden_size
    return _PASSES * met * sequences * length / (rate * TERA * gpus)


def _weights_met(layer: LayerSpec, length: int) -> float:
    """Return the weights that a token is multiplied with, keys and values of others included.

    Scores and their sums: 2 x length x query_width, half of it behind a causal mask.
    """
    hidden, met = layer.hidden_size, 0.0
    if isinstance(layer.attention, AttentionSpec):
        query, key_value = layer.attention.query_width, layer.attention.key_value_width
        met += hidden * 2 * (query + key_value) + length * query
    match layer.mlp:
        case MlpSpec() as mlp:
            met += mlp.projections * hidden * mlp.intermediate_size
        case MoeSpec() as moe:
            width = moe.experts_per_token * moe.intermediate_size + moe.shared_intermediate_size
            met += moe.projections * hidden * width
        case _:
            pass
    return met


def measured_memory(row: Row) -> ReportedMemory | None:
    """Return the peak memory a row reports, in the convention that it names."""
    size = row.optional_number("peak_memory_gb")
    kind = row.text("memory_kind")
    if size is None or _NOT_MEASURED.search(kind):
        return None
    unit = GB if _DECIMAL.match(kind) else GIB
    return ReportedMemory(size=size * unit, of=_convention(kind))


def _convention(kind: str) -> Callable[[MemoryUse], float]:
    """Return what the first known word of `kind` counts."""
    words = re.findall(r"nvidia-smi|allocated|reserved|max_memory\b", kind, re.I)
    first = words[0].lower() if words else "reserved"
    if first == "allocated":
        return lambda use: use.allocated
    if first == "nvidia-smi":
        return lambda use: use.reserved
    return lambda use: use.allocated + use.fragmentation
