"""Steps of profiler traces, and their time by class, by hand arithmetic."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.import_kineto_labels import kernel_label
from calibrate.import_kineto_slices import read_rank
from calibrate.import_kineto_steps import MeasuredStep, measured_steps
from simulator.errors import InputError
from simulator.results import Category
from tests.calibrate.kineto_traces import ADAM, GEMM, NCCL, NORM, kernel, launch, mark, write_trace
from tests.data import data_folder, needs_data

DATA_GROUP = {"Process Group Description": "mesh_dp_shard", "Collective name": "allreduce"}


def steps_of(path: Path) -> tuple[MeasuredStep, ...]:
    return measured_steps(read_rank(path, {}))[0]


def micro(step: MeasuredStep) -> dict[str, float]:
    return {str(name): round(value * 1e6, 3) for name, value in step.seconds.items()}


def test_each_instant_counts_once_and_hidden_communication_does_not(tmp_path: Path) -> None:
    """0-100 gemm; NCCL 60-160 shows 60 of its 100; then adam 160-180; launch gap 180-200."""
    events = [
        mark("ProfilerStep#5", 0, 230),
        *(launch(1, 0), launch(2, 1), launch(3, 2), launch(4, 185)),
        kernel(GEMM, 0, 100, correlation=1),
        kernel(NCCL, 60, 100, stream=20, correlation=2, **DATA_GROUP),
        kernel(ADAM, 160, 20, correlation=3),
        kernel(NORM, 200, 30, correlation=4),
    ]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    assert micro(step) == {
        "gemm": 100.0,
        "data_comm": 60.0,
        "optimizer": 20.0,
        "launch": 20.0,
        "memory_bound": 30.0,
    }
    assert (step.rank, step.number) == (3, 5)


def test_a_gap_that_the_cpu_did_not_cause_is_idle(tmp_path: Path) -> None:
    events = [
        mark("ProfilerStep#0", 0, 100),
        *(launch(1, 0), launch(2, 1)),
        kernel(GEMM, 10, 40, correlation=1),
        kernel(GEMM, 60, 40, correlation=2),
    ]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    assert micro(step) == {"gemm": 80.0, "idle": 10.0}


def test_the_device_may_lag_behind_the_marks(tmp_path: Path) -> None:
    """Both steps are asked for within 0-20; on the device they are 10-110 and 110-210."""
    events = [
        *(mark("ProfilerStep#7", 0, 10), mark("ProfilerStep#8", 10, 10)),
        *(launch(1, 5), launch(2, 15)),
        *(kernel(GEMM, 10, 80, correlation=1), kernel(GEMM, 110, 100, correlation=2)),
    ]
    found = [
        (step.number, round(step.time * 1e6, 3))
        for step in steps_of(write_trace(tmp_path / "t.json", events))
    ]
    assert found == [(7, 100.0), (8, 100.0)]


def test_without_marks_steps_go_from_optimizer_to_optimizer(tmp_path: Path) -> None:
    events = [
        *(kernel(ADAM, 0, 10), kernel(ADAM, 10, 10)),
        *(kernel(GEMM, 20, 70), kernel(ADAM, 90, 10), kernel(ADAM, 105, 10)),
    ]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    assert micro(step) == {"gemm": 70.0, "optimizer": 20.0, "idle": 5.0}


def test_work_of_unknown_names_stays_by_name(tmp_path: Path) -> None:
    events = [mark("## iteration 12", 0, 50), kernel("zorp<int>", 0, 30), kernel(NORM, 30, 20)]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    assert (step.number, {name: round(1e6 * s, 3) for name, s in step.unclassified.items()}) == (
        12,
        {"zorp<int>": 30.0},
    )


def test_what_an_optimizer_range_launches_is_the_optimizers(tmp_path: Path) -> None:
    events = [
        *(mark("ProfilerStep#1", 0, 100), mark("Optimizer.step#AdamW.step", 40, 50)),
        *(launch(1, 0), launch(2, 45)),
        *(kernel(NORM, 0, 50, correlation=1), kernel(NORM, 50, 50, correlation=2)),
    ]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    assert micro(step) == {"memory_bound": 50.0, "optimizer": 50.0}


@pytest.mark.parametrize(
    ("args", "label"),
    [
        ({"Process Group Description": "TENSOR_MODEL_PARALLEL_GROUP"}, Category.TENSOR_COMM),
        ({"Process Group Description": "DATA_PARALLEL_GROUP_WITH_CP"}, Category.DATA_COMM),
        ({"Process Group Description": "EXPERT_DATA_PARALLEL_GROUP"}, Category.DATA_COMM),
        ({"Process Group Description": "EXPERT_MODEL_PARALLEL_GROUP"}, Category.EXPERT_COMM),
        ({"Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP"}, Category.PIPELINE_COMM),
        ({"Process Group Name": "mesh_cp"}, Category.CONTEXT_COMM),
        ({"Process Group Name": "mesh_tp"}, Category.TENSOR_COMM),
        ({"Process Group Name": "7"}, Category.CONTEXT_COMM),
        ({"Process Group Name": "0", "Group size": 8}, "communication, group 0 of 8"),
        ({}, "communication, group not recorded"),
    ],
)
def test_groups_say_what_a_collective_is_for(args: dict[str, Any], label: str) -> None:
    groups = {"7": Category.CONTEXT_COMM}
    assert kernel_label(NCCL, args, groups, in_optimizer=False) == label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Memcpy HtoD (Pinned -> Device)", Category.HOST_COMM),
        ("Memcpy DtoD (Device -> Device)", Category.MEMORY_BOUND),
        ("Cijk_Ailk_Bljk_BBS_BH", Category.GEMM),
        ("flash_fwd_kernel", Category.ATTENTION),
        ("sm90_xmma_gemm_bf16bf16_bf16f32", Category.GEMM),
        ("something", "other"),
    ],
)
def test_names_say_what_a_kernel_does(name: str, label: str) -> None:
    assert kernel_label(name, {}, {}, in_optimizer=False) == label


def test_bad_events_are_counted_and_left_out(tmp_path: Path) -> None:
    bad: list[Any] = [
        {**kernel(GEMM, 0, 5), "dur": -3},
        {**kernel(GEMM, 0, 5), "ts": "soon"},
        {"ph": "X", "cat": "kernel", "name": GEMM, "ts": 3},
    ]
    good = [mark("ProfilerStep#1", 0, 50), {**kernel(GEMM, 0, 50), "ts": "0", "dur": "50"}]
    trace = read_rank(write_trace(tmp_path / "t.json", [*bad, *good], rank=None), {})
    assert (len(trace.slices), trace.rank, trace.notes) == (
        1,
        None,
        ("left out: 3 events with no usable time or duration",),
    )


def test_a_trace_cut_off_while_it_was_packed_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = json.dumps({"traceEvents": [mark("ProfilerStep#1", 0, 9), kernel(GEMM, 0, 9)] * 9})
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(whole[:-40].encode())[:-4])
    trace = read_rank(path, {})
    assert trace.notes[0] == "is cut off: what stands before is used"
    assert trace.slices


def test_a_trace_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel(GEMM, 0, 9)])
    with pytest.raises(InputError, match="must be at most 100 bytes unpacked"):
        read_rank(path, {}, most=100)


def test_a_trace_of_no_steps_is_refused(tmp_path: Path) -> None:
    trace = read_rank(write_trace(tmp_path / "t.json", [kernel(GEMM, 0, 9)]), {})
    with pytest.raises(InputError, match="shows no whole step"):
        measured_steps(trace)


@needs_data
def test_a_published_rocm_trace_has_one_step_that_adds_up() -> None:
    path = data_folder() / "cases" / "trace" / "mi250_minitoy_train_ROCm6_2_kineto.json.gz"
    (step,) = steps_of(path)
    assert sum(step.seconds.values()) == pytest.approx(step.time)
    assert {"gemm", "memory_bound", "launch"} <= step.seconds.keys()


def test_operators_of_a_cpu_run_count_where_they_are_innermost(tmp_path: Path) -> None:
    """linear 10-60 holds addmm 20-50, the optimizer 60-90 mul 70-80; 95-100 is idle."""
    operators = [
        ("aten::gelu", 0, 10),
        *(("aten::linear", 10, 50), ("aten::addmm", 20, 30)),
        *(("Optimizer.step#SGD.step", 60, 30), ("aten::mul_", 70, 10)),
        ("gloo:all_reduce", 90, 5),
    ]
    events = [{**mark(name, start, length), "cat": "cpu_op"} for name, start, length in operators]
    path = write_trace(tmp_path / "t.json", [mark("ProfilerStep#4", 0, 100), *events])
    (step,) = steps_of(path)
    assert micro(step) == {
        "memory_bound": 10.0,
        "gemm": 50.0,
        "optimizer": 30.0,
        "communication, group not recorded": 5.0,
        "idle": 5.0,
    }


def test_operators_of_a_real_cpu_run_add_up_to_the_step(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "cpu.json"
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), foreach=False)
    profiler = torch.profiler
    cpu = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=cpu) as made, profiler.record_function("## iteration 3"):
        model(torch.ones(256, 64)).sum().backward()
        optimizer.step()
    made.export_chrome_trace(str(path))
    (step,) = steps_of(path)
    assert step.number == 3
    assert sum(step.seconds.values()) == pytest.approx(step.time)
    assert min(step.seconds[name] for name in ("gemm", "memory_bound", "optimizer")) > 0
