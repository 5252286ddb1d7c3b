"""Figures of a step, from results made by hand."""

from __future__ import annotations

from typing import Any

from reports.charts import Box, Cable, Part, Series
from reports.report_figures import memory, network, roofline, step
from reports.result_files.parts import StageSeconds
from reports.result_files.step import (
    BoxFacts,
    LineFacts,
    MemoryCurve,
    MemoryFacts,
    NetworkFacts,
    OperatorFacts,
    PeakFacts,
    PictureFacts,
    StepFacts,
    StepFile,
    Timeline,
)
from reports.words import english
from simulator.units import GIB
from tests.reports.small_figures import only, partly


def _step(**parts: Any) -> StepFile:
    """Return a step of 10 s on one stage, with what a figure needs."""
    facts = partly(StepFacts, step_time_s=10.0, bubble_s=2.0, dense_peak_flops_per_second=1e15)
    busiest = StageSeconds(stage=0, seconds={"gemm": 8.0, "bubble": 2.0})
    return partly(StepFile, **{"step": facts, "breakdown": busiest, **parts})


def test_a_breakdown_has_a_part_for_each_category_that_takes_time() -> None:
    stages = (
        StageSeconds(stage=0, seconds={"gemm": 8.0, "bubble": 2.0, "optimizer": 0.0}),
        StageSeconds(stage=1, seconds={"gemm": 7.0, "bubble": 3.0}),
    )
    drawn = only(step.breakdown(_step(breakdowns=stages), english))
    assert drawn.bars == ("stage 0", "stage 1")
    assert drawn.parts == (
        Part(label="matrix products", tone=0, values=(8.0, 7.0)),
        Part(label="pipeline bubble", tone=10, values=(2.0, 3.0)),
    )


def test_a_timeline_shows_what_a_stage_computes_and_no_transfers() -> None:
    bars = Timeline(
        streams=("compute", "pp"),
        names=("forward", "send_forward"),
        stage=(0, 0, 1),
        stream=(0, 1, 0),
        name=(0, 1, 0),
        micro_batch=(0, 0, None),
        chunk=(None, None, None),
        start_s=(0.0, 1.0, 1.5),
        stop_s=(1.0, 1.5, 2.5),
    )
    drawn = only(step.timeline(_step(timeline=bars), english))
    assert (drawn.row, drawn.start, drawn.stop) == ((0, 1), (0.0, 1.5), (1.0, 2.5))
    assert drawn.texts == ("forward 0", "forward")


def test_memory_holds_to_the_end_of_the_step() -> None:
    curve = MemoryCurve(stage=0, time_s=(0.0, 4.0), allocated_bytes=(1.0 * GIB, 3.0 * GIB))
    facts = partly(MemoryFacts, capacity_bytes=80.0 * GIB)
    drawn = only(memory.memory_over_time(_step(memory_curves=(curve,), memory=facts), english))
    series: Series = drawn.series[0]
    assert (series.x, series.y, series.steps) == ((0.0, 4.0, 10.0), (1.0, 3.0, 3.0), True)
    assert drawn.rules[0].y == 80.0


def test_of_many_stages_the_fullest_is_among_those_that_are_drawn() -> None:
    curves = tuple(
        MemoryCurve(stage=n, time_s=(0.0,), allocated_bytes=(GIB * (9.0 if n == 33 else 1.0),))
        for n in range(64)
    )
    facts = partly(MemoryFacts, capacity_bytes=80.0 * GIB)
    drawn = only(memory.memory_over_time(_step(memory_curves=curves, memory=facts), english))
    stages = {series.group for series in drawn.series}
    assert len(stages) <= 8
    assert {"0", "33", "63"} < stages


def test_an_operator_stands_at_its_intensity_under_the_roof() -> None:
    # 4 TFLOP and 20 GB in 10 ms: 200 FLOP/byte at 400 TFLOP/s; 1 PFLOP/s over 4 TB/s: ridge at 250.
    gemm = OperatorFacts(
        name="qkv",
        phase="forward",
        category="gemm",
        calls=1.0,
        flops=4e12,
        bytes=2e10,
        seconds=0.01,
        exposed_s=0.01,
    )
    peaks = PeakFacts(matmul_flops_per_second={}, memory_bandwidth_bytes_per_second=4e12)
    job = type("Job", (), {"precision": "bf16"})()
    drawn = only(roofline.roofline(_step(operators=(gemm,), peaks=peaks, job=job), english))
    roof, marks = drawn.series
    assert (roof.x, roof.y) == ((20.0, 250.0, 2500.0), (80.0, 1000.0, 1000.0))
    assert (marks.x, marks.y, marks.texts) == ((200.0,), (400.0,), ("forward qkv, 10.00 ms",))


def test_a_link_says_what_it_joins_carries_and_is_used() -> None:
    picture = PictureFacts(
        title="2 nodes",
        boxes=(
            BoxFacts(label="leaf", kind="switch", count=1, x=0.5, y=1.0),
            BoxFacts(label="node0", kind="unit", count=1, x=0.0, y=0.0),
        ),
        lines=(
            LineFacts(one=0, other=1, cables=8, capacity_bytes_per_second=4e11, utilisation=0.25),
        ),
    )
    drawn = only(network.network(_step(network=NetworkFacts(pictures=(picture,))), english))
    assert drawn.boxes[0] == Box(label="leaf", kind="switch", x=0.5, y=1.0)
    assert drawn.cables == (
        Cable(
            one=0,
            other=1,
            used=0.25,
            text="leaf - node0: 8 x, 400 GB/s, 25.0 %",
            capacity=4e11,
            label="400 GB/s, 25.0 %",
        ),
    )


def test_an_old_result_without_details_has_what_it_holds() -> None:
    for build in (step.timeline, memory.memory_over_time, roofline.roofline):
        assert list(build(_step(), english)) == []
