"""Steps of profiler traces, and their time by class, by hand arithmetic."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.import_kineto_groups import Axes
from calibrate.import_kineto_labels import Purposes, kernel_label
from calibrate.import_kineto_slices import read_rank
from calibrate.import_kineto_steps import MeasuredStep, measured_steps
from simulator.errors import InputError
from simulator.results import Category
from tests.calibrate.kineto_traces import ADAM, GEMM, NCCL, NORM, kernel, launch, mark, write_trace
from tests.data import data_folder, needs_data

NOTHING = Purposes()
DATA_GROUP = {"Process Group Description": "mesh_dp_shard", "Collective name": "allreduce"}


def steps_of(path: Path) -> tuple[MeasuredStep, ...]:
    return measured_steps(read_rank(path, NOTHING))[0]


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
    assert kernel_label(NCCL, args, Purposes(said=groups), in_optimizer=False) == label


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
    assert kernel_label(name, {}, NOTHING, in_optimizer=False) == label


def test_bad_events_are_counted_and_left_out(tmp_path: Path) -> None:
    bad: list[Any] = [
        {**kernel(GEMM, 0, 5), "dur": -3},
        {**kernel(GEMM, 0, 5), "ts": "soon"},
        {"ph": "X", "cat": "kernel", "name": GEMM, "ts": 3},
    ]
    good = [mark("ProfilerStep#1", 0, 50), {**kernel(GEMM, 0, 50), "ts": "0", "dur": "50"}]
    trace = read_rank(write_trace(tmp_path / "t.json", [*bad, *good], rank=None), NOTHING)
    assert (len(trace.slices), trace.rank, trace.notes) == (
        1,
        None,
        ("left out: 3 events with no usable time or duration",),
    )


def test_a_trace_cut_off_while_it_was_packed_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = json.dumps({"traceEvents": [mark("ProfilerStep#1", 0, 9), kernel(GEMM, 0, 9)] * 9})
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(whole[:-40].encode())[:-4])
    trace = read_rank(path, NOTHING)
    assert trace.notes[0] == "is cut off: what stands before is used"
    assert trace.slices


def test_a_trace_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel(GEMM, 0, 9)])
    with pytest.raises(InputError, match="must be at most 100 bytes unpacked"):
        read_rank(path, NOTHING, most=100)


def test_a_trace_of_no_steps_is_refused(tmp_path: Path) -> None:
    trace = read_rank(write_trace(tmp_path / "t.json", [kernel(GEMM, 0, 9)]), NOTHING)
    with pytest.raises(InputError, match="shows no whole step"):
        measured_steps(trace)


def test_what_is_hidden_counts_in_the_time_that_a_class_takes_in_all(tmp_path: Path) -> None:
    """Two gathers overlap in 40-60 and hide behind a product until 50; a reduction is 60-100."""
    gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    reduce = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    events = [
        mark("ProfilerStep#0", 0, 100),
        kernel(GEMM, 0, 50),
        kernel(gather, 20, 40, stream=20, **DATA_GROUP),
        kernel(gather, 40, 20, stream=24, **DATA_GROUP),
        kernel(reduce, 60, 40, stream=20, **DATA_GROUP),
    ]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    uses = [
        (use.collective, str(use.label), use.calls, round(use.busy * 1e6), round(use.exposed * 1e6))
        for use in step.collectives
    ]
    assert micro(step) == {"gemm": 50.0, "data_comm": 50.0}
    assert {name: round(value * 1e6) for name, value in step.busy.items()} == {
        "gemm": 50,
        "data_comm": 80,
    }
    assert uses == [
        ("all_gather", "data_comm", 2, 40, 10),
        ("reduce_scatter", "data_comm", 1, 40, 40),
    ]


def test_pauses_are_counted_by_why_nothing_runs(tmp_path: Path) -> None:
    """Late launches at 25 and 70 leave 20-30 and 60-75 empty; 80-82 waits with all asked for."""
    events = [
        mark("ProfilerStep#0", 0, 90),
        *(launch(1, 0), launch(2, 25), launch(3, 70), launch(4, 71)),
        *(kernel(GEMM, 0, 20, correlation=1), kernel(GEMM, 30, 30, correlation=2)),
        *(kernel(NORM, 75, 5, correlation=3), kernel(NORM, 82, 8, correlation=4)),
    ]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    found = {name: (p.count, round(p.longest * 1e6, 3)) for name, p in step.pauses.items()}
    assert found == {"launch": (2, 15.0), "idle": (1, 2.0)}


def test_what_launched_a_collective_says_of_which_group_it_is(tmp_path: Path) -> None:
    """Kernels of older profilers say nothing: the operator with their external id does."""
    said = {"External id": 77, "Process Group Name": "mesh_tp", "Collective name": "allreduce"}
    event = {**mark("record_param_comms", 0, 2), "cat": "cpu_op", "args": said}
    events = [mark("ProfilerStep#0", 0, 9), event, kernel(NCCL, 0, 9, 20, **{"External id": 77})]
    (step,) = steps_of(write_trace(tmp_path / "t.json", events))
    assert micro(step) == {"tensor_comm": 9.0}


@pytest.mark.parametrize(
    ("entry", "world", "label", "note"),
    [
        ({"pg_desc": "mesh_pp"}, 16, "pipeline_comm", ()),
        (
            {"pg_desc": "", "ranks": [0, 4, 8, 12]},
            16,
            "data_comm",
            ("--group 5=data is taken, by its ranks in the forecast's layout",),
        ),
        (
            {"pg_desc": "undefined", "ranks": [0, 4, 8, 12]},
            32,
            "communication, group undefined",
            (),
        ),
    ],
)
def test_the_trace_describes_its_groups_by_name_or_by_ranks(
    tmp_path: Path, entry: dict[str, Any], world: int, label: str, note: tuple[str, ...]
) -> None:
    """In a layout of tp 4 and dp 4; that of a run of 32 ranks is another one."""
    events = [mark("ProfilerStep#0", 0, 9), kernel(NCCL, 0, 9, 20, **{"Process Group Name": "5"})]
    config = [{"pg_name": "5", **entry}]
    path = write_trace(tmp_path / "t.json", events, world_size=world, pg_config=config)
    trace = read_rank(path, Purposes(axes=Axes(tp=4, dp=4)))
    assert ([str(each.label) for each in trace.slices], trace.notes) == ([label], note)


def test_collectives_of_no_group_are_the_forecasts_only_ones(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [mark("ProfilerStep#0", 0, 9), kernel(NCCL, 0, 9)])
    trace = read_rank(path, Purposes(only=Category.DATA_COMM))
    assert [each.label for each in trace.slices] == [Category.DATA_COMM]
    assert trace.notes == (
        "collectives of groups that are not recorded: data is taken, the only purpose in the "
        "forecast",
    )


def test_a_trace_of_python_functions_only_is_refused(tmp_path: Path) -> None:
    event = {**mark("train.py(12): step", 0, 9), "cat": "python_function"}
    path = write_trace(tmp_path / "t.json", [mark("ProfilerStep#0", 0, 9), event])
    with pytest.raises(InputError, match="holds no work of a device and no operator"):
        read_rank(path, NOTHING)


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
