"""What a run reads: bytes a token, samples a second, and whether storage and loaders keep up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.run_file import DataFile
from simulator.scenario import Scenario
from simulator.units import GB

_SHORT_VOCABULARY = 65500
"""Below it token ids are stored in 16 bits, else in 32.

Source: Megatron-LM core/datasets/indexed_dataset.py, `DType.optimal_dtype`."""
_SHORT_BYTES, _LONG_BYTES = 2.0, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """How fast data is read."""

    bytes_per_token: float
    total_bytes: float
    """Of all tokens of the run, each once."""
    samples_per_second: float
    tokens_per_second: float
    read_rate: float
    """Bytes/s, all nodes together."""
    loader_tokens_per_second: float | None
    """What all loader processes prepare; None where that is not said."""
    seconds_per_sample_of_worker: float | None
    """Time that one loader process has for a sample; None without a number of them."""


def data_plan(scenario: Scenario, file: DataFile, steps: int, step_time: float) -> DataPlan:
    """Return what `steps` steps read; each data-parallel replica reads its own samples."""
    job, nodes = scenario.file.job, sum(part.nodes for part in scenario.parts)
    short = scenario.model.spec.vocab_size < _SHORT_VOCABULARY
    each = file.bytes_per_token or (_SHORT_BYTES if short else _LONG_BYTES)
    tokens = job.tokens_per_step / step_time
    samples = job.global_batch_size / step_time
    workers = None if file.workers_per_node is None else file.workers_per_node * nodes
    prepared = None
    if workers is not None and file.tokens_per_worker is not None:
        prepared = workers * file.tokens_per_worker
    return DataPlan(
        bytes_per_token=each,
        total_bytes=each * job.tokens_per_step * steps,
        samples_per_second=samples,
        tokens_per_second=tokens,
        read_rate=each * tokens,
        loader_tokens_per_second=prepared,
        seconds_per_sample_of_worker=None if workers is None else workers / samples,
    )


def data_notes(file: DataFile, plan: DataPlan) -> Iterator[str]:
    """Yield what cannot keep up with training."""
    if file.read_bandwidth is not None and plan.read_rate > file.read_bandwidth:
        yield (
            f"run.data.read_bandwidth: training reads {plan.read_rate / GB:.3g} GB/s, and storage "
            f"gives {file.read_bandwidth / GB:.3g}; steps wait for data, which the days leave out"
        )
    prepared = plan.loader_tokens_per_second
    if prepared is not None and prepared < plan.tokens_per_second:
        needed = plan.tokens_per_second / prepared
        yield (
            f"run.data.workers_per_node: loaders prepare {prepared:,.0f} tokens/s, and training "
            f"takes {plan.tokens_per_second:,.0f}: {needed:.2g} times as many are needed, and the "
            "days leave it out"
        )
