"""Results with round numbers, made by hand, for tests of what a report says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports.result_files import PlanFile, Result, ResultFile, ResultKind, StepFile
from reports.result_files.parts import (
    ClusterFacts,
    JobFacts,
    ModelFacts,
    ProvenanceFacts,
    RunFacts,
    StageSeconds,
)
from reports.result_files.plan import PlannedFacts, SearchedFacts
from reports.result_files.step import MemoryFacts, StageMemoryUse, StepFacts
from simulator.units import GIB

ASKED: dict[str, Any] = {
    "format": 1,
    "title": "Tiny on two",
    "scenario": "tiny.toml",
    "model": ModelFacts(name="tiny", parameters=1_000_000),
    "cluster": ClusterFacts(profile="box", accelerator="H100", nodes=2, accelerators=16),
    "job": JobFacts(global_batch_size=8, seq_length=1024, precision="bf16", stack="s"),
    "provenance": ProvenanceFacts(
        traincast="1.0",
        profile="box",
        profile_sha256="0123456789abcdef",
        stack="s",
        constants={"gemm": "nominal: data sheet", "links": "measured: nccl-tests"},
    ),
}
RUN = RunFacts(
    steps=10,
    days=2.0,
    days_low=1.5,
    days_high=2.5,
    accelerator_hours=768.0,
    cost=None,
    currency="USD",
)
"""Two days on 16 accelerators, without a price."""


def memory(reserved: float, *, fits: bool) -> MemoryFacts:
    """Return the memory of one stage, GiB of 80 GiB; all of it is weights."""
    use = StageMemoryUse(
        stage=0,
        weights=reserved * GIB,
        gradients=0.0,
        optimizer=0.0,
        activations=0.0,
        transient=0.0,
        logits=0.0,
        fragmentation=0.0,
        context=0.0,
        moment="backward",
        allocated=reserved * GIB,
        reserved=reserved * GIB,
    )
    return MemoryFacts(capacity_bytes=80 * GIB, fits=fits, stages=(use,))


def step_file(**others: Any) -> ResultFile:
    """Return a step of 10 s, of which 6 s are matrix products, on one stage."""
    facts = StepFacts(
        step_time_s=10.0,
        low_s=9.0,
        high_s=12.0,
        tokens=8192,
        tokens_per_second=819.2,
        tokens_per_second_per_accelerator=51.2,
        model_flops=1e15,
        dense_peak_flops_per_second=1e15,
        mfu=0.4,
        mfu_convention="Megatron-LM",
        hfu=0.5,
        exposed_communication_s=1.0,
        bubble_s=0.0,
    )
    fields: dict[str, Any] = {
        "kind": ResultKind.STEP,
        "layout": {"tp": 8, "dp": 2},
        "method": "simulated",
        "events": 100,
        "step": facts,
        "run": None,
        "breakdown": StageSeconds(stage=0, seconds={"gemm": 6.0, "attention": 4.0}),
        "memory": memory(40.0, fits=True),
    }
    return _file(StepFile(**(ASKED | fields | others)))


def plan_file(*, layouts: tuple[PlannedFacts, ...] = (), **others: Any) -> ResultFile:
    """Return a plan over 120 layouts, of which 12 are legal."""
    fields: dict[str, Any] = {
        "kind": ResultKind.PLAN,
        "world_size": 16,
        "dense_peak_flops_per_second": 1e15,
        "mfu_convention": "Megatron-LM",
        "layouts": layouts,
        "searched": searched(fitting=4),
        "rejected": {},
        "memory_limit_bytes": 75 * GIB,
        "memory_capacity_bytes": 80 * GIB,
    }
    return _file(PlanFile(**(ASKED | fields | others)))


def searched(*, fitting: int, gap: float | None = None) -> SearchedFacts:
    """Return the counts of a search."""
    return SearchedFacts(
        considered=120, legal=12, fitting=fitting, estimated=4, simulated=2, gap=gap
    )


BEST = PlannedFacts(
    rank=1,
    layout={"tp": 8, "dp": 2},
    name="tp 8, dp 2",
    simulated=True,
    step_time_s=10.0,
    low=9.0,
    high=12.0,
    estimate_s=10.0,
    tokens_per_s=819.2,
    mfu=0.4,
    peak_memory_bytes=40 * GIB,
    exposed_communication_s=1.0,
    bubble_s=0.0,
    busiest_stage=0,
    breakdown_s={"gemm": 6.0, "attention": 4.0},
    accelerators=16,
)


def _file(result: Result) -> ResultFile:
    return ResultFile(path=Path(f"{result.kind}.json"), result=result)
