"""Traces of torch.profiler: what is read, and what a broken one still yields."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.import_kineto_kernels import NcclKernel, class_of, nccl_kernel
from calibrate.import_options import Imported, ImportOptions
from calibrate.importing import import_file
from calibrate.points import CollectivePoint, GemmPoint, GroupKind, KernelSumPoint
from calibrate.records import Header, Status
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.parallel.groups import Collective
from tests.calibrate.logs import imported

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"


def event(name: str, category: str, begin: float, duration: float, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": begin,
        "dur": duration,
        "args": {
            key.replace("_", " ").replace("External", "External"): v for key, v in args.items()
        },
    }


def product(name: str, external: int, dims: Any, strides: Any) -> dict[str, Any]:
    args = {
        "External id": external,
        "Input Dims": dims,
        "Input Strides": strides,
        "Input type": ["c10::BFloat16"] * len(dims),
    }
    return event(name, "cpu_op", 10, 5) | {"args": args}


def kernel(name: str, begin: float, duration: float, **args: Any) -> dict[str, Any]:
    return event(name, "kernel", begin, duration) | {"args": args}


def message(sent: int, got: int, name: str = "allreduce", size: int = 16) -> dict[str, Any]:
    return {
        "Collective name": name,
        "In msg nelems": sent,
        "Out msg nelems": got,
        "Group size": size,
        "dtype": "BFloat16",
    }


def trace(*events: dict[str, Any], **frame: Any) -> dict[str, Any]:
    device = {"name": "NVIDIA H100", "totalGlobalMem": 85}
    group = {"backend": "nccl", "rank": 3, "world_size": 16, "nccl_version": "2.21.5"}
    known = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": i, **device} for i in range(8)],
        "distributedInfo": group,
        "traceEvents": list(events),
    }
    return known | frame


def read(folder: Path, *events: dict[str, Any], **frame: Any) -> Imported:
    return imported(folder, json.dumps(trace(*events, **frame)), name="trace.json")


def points(result: Imported) -> list[tuple[Any, float | None]]:
    return [(record.point, record.seconds) for record in result.records]


def sums(result: Imported) -> dict[tuple[int, str], float | None]:
    return {
        (record.point.step, record.point.kernel): record.seconds
        for record in result.records
        if isinstance(record.point, KernelSumPoint)
    }


STEP = event("ProfilerStep#5", "user_annotation", 0, 100)
LATER = event("ProfilerStep#6", "user_annotation", 100, 110)


def test_the_machine_is_read_from_the_trace(tmp_path: Path) -> None:
    header = read(tmp_path, STEP).lines[0]
    assert isinstance(header, Header)
    found = header.fingerprint
    assert (found.accelerator, found.world_size, found.nodes) == ("NVIDIA H100", 16, 2)
    assert (found.backend, found.library, found.accelerators_per_node) == ("nccl", "2.21.5", 8)


def test_kernels_are_summed_by_class_and_step(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        STEP,
        LATER,
        kernel(GEMM, 10, 20),
        kernel(GEMM, 30, 5),
        kernel("void at::native::vectorized_elementwise_kernel<4>", 40, 3),
        kernel(GEMM, 120, 7),
    )
    assert sums(result) == pytest.approx(
        {
            (5, "gemm"): 25e-6,
            (5, "memory_bound"): 3e-6,
            (6, "gemm"): 7e-6,
            (5, "step"): 100e-6,
            (6, "step"): 110e-6,
        }
    )


def test_a_kernel_belongs_to_the_step_that_launched_it(tmp_path: Path) -> None:
    launch = event("cudaLaunchKernel", "cuda_runtime", 90, 2) | {"args": {"correlation": 7}}
    result = read(tmp_path, STEP, LATER, launch, kernel(GEMM, 130, 20, correlation=7))
    assert sums(result)[5, "gemm"] == pytest.approx(20e-6)


def test_a_step_without_kernels_is_rejected(tmp_path: Path) -> None:
    result = read(tmp_path, STEP, LATER, kernel(GEMM, 10, 20))
    rejected = [record.point for record in result.records if record.status is Status.REJECTED]
    assert rejected == [KernelSumPoint(kernel="step", step=6, rank=3)]


def test_without_steps_all_kernels_are_step_0(tmp_path: Path) -> None:
    result = read(tmp_path, kernel(GEMM, 10, 20))
    assert sums(result) == pytest.approx({(0, "gemm"): 20e-6})
    assert "marks no steps" in str(result.notes)


LAYOUTS = [
    ("aten::mm", [[64, 32], [32, 16]], [[32, 1], [1, 32]], GemmLayout.FORWARD),
    ("aten::mm", [[64, 32], [32, 16]], [[32, 1], [16, 1]], GemmLayout.INPUT_GRADIENT),
    ("aten::mm", [[64, 32], [32, 16]], [[1, 64], [16, 1]], GemmLayout.WEIGHT_GRADIENT),
    ("aten::addmm", [[16], [64, 32], [32, 16]], [[1], [32, 1], [1, 32]], GemmLayout.FORWARD),
    ("aten::bmm", [[1, 64, 32], [1, 32, 16]], [[0, 32, 1], [0, 1, 32]], GemmLayout.FORWARD),
]


@pytest.mark.parametrize(("name", "dims", "strides", "layout"), LAYOUTS)
def test_a_matrix_product_has_the_shape_of_its_operator(
    tmp_path: Path, name: str, dims: Any, strides: Any, layout: GemmLayout
) -> None:
    result = read(
        tmp_path,
        product(name, 9, dims, strides),
        kernel(GEMM, 20, 4, **{"External id": 9}),
        kernel("void splitKreduce_kernel", 24, 1, **{"External id": 9}),
    )
    point = GemmPoint(dtype=Dtype.BF16, m=64, n=16, k=32, layout=layout, sustained=True)
    assert points(result)[0] == (point, pytest.approx(5e-6))


def test_a_kernel_finds_its_operator_by_its_launch(tmp_path: Path) -> None:
    launch = event("hipLaunchKernel", "hip_runtime", 12, 1)
    launch["args"] = {"External id": 9, "correlation": 70}
    operator = product("aten::mm", 9, [[64, 32], [32, 16]], [[32, 1], [1, 32]])
    result = read(tmp_path, operator, launch, kernel("Cijk_Ailk_Bljk", 20, 4, correlation=70))
    assert isinstance(result.records[0].point, GemmPoint)


def test_products_without_shapes_are_counted(tmp_path: Path) -> None:
    operator = event("aten::mm", "cpu_op", 10, 5) | {"args": {"External id": 9}}
    result = read(tmp_path, operator, kernel(GEMM, 20, 4, **{"External id": 9}))
    assert "left out: 1 matrix products without shapes" in str(result.notes)


SIZES = [
    ("allreduce", 1000, 1000, (Collective.ALL_REDUCE, 2000.0)),
    ("_allgather_base", 1000, 16000, (Collective.ALL_GATHER, 32000.0)),
    ("_reduce_scatter_base", 16000, 1000, (Collective.REDUCE_SCATTER, 32000.0)),
    ("all_to_all_single", 16000, 16000, (Collective.ALL_TO_ALL, 32000.0)),
    ("broadcast", 0, 1000, (Collective.BROADCAST, 2000.0)),
    ("send", 1000, 1000, (Collective.SEND_RECV, 2000.0)),
    ("all_to_allv", 16000, 16000, None),
]


@pytest.mark.parametrize(("name", "sent", "got", "found"), SIZES)
def test_a_collective_has_the_size_of_its_total(
    tmp_path: Path, name: str, sent: int, got: int, found: tuple[Collective, float] | None
) -> None:
    generic = "ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)"
    result = read(tmp_path, kernel(generic, 10, 50, **message(sent, got, name)))
    points = [r.point for r in result.records if isinstance(r.point, CollectivePoint)]
    expected = [] if found is None else [(*found, 16, 2)]
    assert [(p.collective, p.bytes, p.ranks, p.nodes) for p in points] == expected


def test_a_collective_is_the_fastest_of_its_calls(tmp_path: Path) -> None:
    calls = [kernel(NCCL, 100 * i, time, **message(8, 8)) for i, time in enumerate((90, 40, 70))]
    record = read(tmp_path, *calls).records[0]
    assert record.seconds == pytest.approx(40e-6)
    assert (record.samples, record.algorithm, record.protocol) == (3, "ring", "ll")
    assert record.status is Status.OK


def test_the_size_may_stand_at_the_operator(tmp_path: Path) -> None:
    operator = event("record_param_comms", "cpu_op", 5, 9)
    operator["args"] = {"External id": 4, **message(8, 8)}
    result = read(tmp_path, operator, kernel(NCCL, 10, 50, **{"External id": 4}))
    assert isinstance(result.records[0].point, CollectivePoint)


def test_a_group_is_placed_by_its_ranks(tmp_path: Path) -> None:
    inside = message(8, 8, size=2) | {"Process Group Ranks": "[0, 1]"}
    across = message(8, 8, size=2) | {"Process Group Ranks": [0, 8]}
    result = read(tmp_path, kernel(NCCL, 0, 5, **inside), kernel(NCCL, 9, 5, **across))
    found = [r.point for r in result.records if isinstance(r.point, CollectivePoint)]
    assert [(p.nodes, p.group) for p in found] == [(1, GroupKind.FIRST), (2, GroupKind.RAILS)]


def test_a_group_that_cannot_be_placed_is_asked_for(tmp_path: Path) -> None:
    cut = message(8, 8, size=2) | {"Process Group Ranks": "[0, 8, ...]"}
    result = read(tmp_path, kernel(NCCL, 0, 5, **cut))
    assert "--ranks-per-node" in str(result.notes)


def test_a_packed_trace_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.pt.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(trace(STEP, kernel(GEMM, 1, 2))).encode()))
    assert sums(import_file(path, ImportOptions()))[5, "gemm"] == pytest.approx(2e-6)


def test_a_trace_that_is_only_a_list_is_read(tmp_path: Path) -> None:
    result = imported(tmp_path, json.dumps([kernel(GEMM, 1, 2)]), name="t.json")
    assert sums(result) == pytest.approx({(0, "gemm"): 2e-6})


def test_a_trace_that_was_cut_off_keeps_its_events(tmp_path: Path) -> None:
    text = json.dumps(trace(STEP, kernel(GEMM, 1, 2), kernel(GEMM, 30, 40)))
    result = imported(tmp_path, text[:-30], name="t.json")
    assert sums(result)[5, "gemm"] == pytest.approx(2e-6)
    assert "cut off" in str(result.notes)


def test_a_broken_event_is_counted_and_skipped(tmp_path: Path) -> None:
    text = json.dumps(trace(kernel("bad\\q", 1, 2), kernel(GEMM, 30, 40))).replace("\\\\q", "\\q")
    result = imported(tmp_path, text, name="t.json")
    assert sums(result) == pytest.approx({(0, "gemm"): 40e-6})
    assert "1 events that are not valid JSON" in str(result.notes)


def test_a_packed_trace_that_was_cut_off_keeps_its_events(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    kernels = [kernel(f"{GEMM} {i * 7919 % 1000}", 10 * i, 2) for i in range(1000)]
    packed = gzip.compress(json.dumps(trace(*kernels)).encode())
    path.write_bytes(packed[: len(packed) // 2])
    result = import_file(path, ImportOptions())
    assert 100e-6 < (sums(result)[0, "gemm"] or 0) < 2000e-6
    assert "cut off" in str(result.notes)


def test_a_packed_trace_that_is_damaged_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    packed = bytearray(gzip.compress(json.dumps(trace(STEP)).encode()))
    packed[20:60] = b"\xff" * 40
    path.write_bytes(packed)
    with pytest.raises(InputError, match=r"t\.json\.gz: cannot be read"):
        import_file(path, ImportOptions())


NAMES = [
    (
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        NcclKernel(
            collective=Collective.ALL_REDUCE, algorithm="ring", protocol="ll", dtype="float32"
        ),
    ),
    (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        NcclKernel(
            collective=Collective.ALL_REDUCE, algorithm="ring", protocol="ll", dtype="float32"
        ),
    ),
    (
        "ncclAllReduceTreeLL128Kernel_sum_f16(ncclColl)",
        NcclKernel(
            collective=Collective.ALL_REDUCE, algorithm="tree", protocol="ll128", dtype="float16"
        ),
    ),
    (
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
        NcclKernel(
            collective=Collective.SEND_RECV, algorithm="ring", protocol="simple", dtype="int8"
        ),
    ),
    (
        "ncclDevKernel_ReduceScatter_Sum_bf16_NVLS_SIMPLE",
        NcclKernel(
            collective=Collective.REDUCE_SCATTER,
            algorithm="nvls",
            protocol="simple",
            dtype="bfloat16",
        ),
    ),
    ("ncclDevKernel_Generic", NcclKernel()),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", NcclKernel()),
    ("nccl::Allreduce", NcclKernel(collective=Collective.ALL_REDUCE)),
    ("nccl:all_gather", NcclKernel(collective=Collective.ALL_GATHER)),
    ("rcclAllReduce", NcclKernel(collective=Collective.ALL_REDUCE)),
    (GEMM, None),
]


@pytest.mark.parametrize(("name", "found"), NAMES)
def test_names_of_all_versions_say_what_they_can(name: str, found: NcclKernel | None) -> None:
    assert nccl_kernel(name) == found


CLASSES = [
    (GEMM, "gemm"),
    ("nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT", "gemm"),
    ("Cijk_Ailk_Bljk_SB_MT64x32x16_MI32x32x2x1_SN_1LDSB0", "gemm"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "gemm"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>", "gemm"),
    ("triton_tem_fused_mm_3", "gemm"),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>", "attention"),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80", "attention"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>",
        "memory_bound",
    ),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Adam>", "memory_bound"),
    ("void cunn_SoftMaxForward<8>", "memory_bound"),
    ("triton_poi_fused_add_1", "memory_bound"),
    ("Memcpy HtoD (Pinned -> Device)", "copy"),
    ("Memset (Device)", "copy"),
    (NCCL, "collective"),
    ("void mysterious()", "other"),
]


@pytest.mark.parametrize(("name", "kind"), CLASSES)
def test_a_kernel_s_class_follows_from_its_name(name: str, kind: str) -> None:
    assert class_of(name) == kind
