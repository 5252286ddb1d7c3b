"""Kernel fits: known constants are found again, tables are read right, files keep the rest."""

from pathlib import Path

import numpy as np
import pytest

from calibrate.fit_kernels import fit_attention, fit_gemm, predict_gemms, with_values
from calibrate.fit_memory_bound import fit_memory_bound
from calibrate.fit_profile import FittedKernels, read_kernels, write_kernels
from calibrate.fit_sustained import fit_sustained
from calibrate.kernel_tables import (
    AttentionTable,
    GemmTable,
    LayoutTable,
    read_attention,
    read_gemms,
    read_layouts,
)
from calibrate.log_fit import FreeConstant, Held, fit_constants, held_out
from simulator.cost.attention import flash_forward_seconds
from simulator.cost.gemm import gemm_seconds_of
from simulator.files import read_record, read_toml
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import FitRecord, FittedConstants, Origin
from simulator.hardware.kernel_constants import GemmLayout, MemoryClass
from simulator.hardware.profile import PROFILE_FOLDER, load_profile
from simulator.units import US
from simulator.workload.operator import AttentionShape

A100 = load_profile("dgx-a100-80gb")
GPU = A100.accelerator
TRUE = A100.constants.gemm[Dtype.BF16]
NOMINAL = PROFILE_FOLDER / "fitted" / "nominal_gpu.toml"


def random_shapes(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    random = np.random.default_rng(1)
    return np.round(2 ** random.uniform(6, 14, size=(3, count)))


def test_a_constant_is_found_between_its_prior_and_its_data() -> None:
    free = {"x": FreeConstant(prior=1.0, low=0.1, high=10.0)}
    found = fit_constants(free, lambda values: np.log(np.full(100, values["x"] / 3.0)))
    assert found["x"] == pytest.approx(3.0, rel=0.02)


def test_without_data_a_constant_stays_at_its_prior() -> None:
    free = {"x": FreeConstant(prior=2.0, low=0.1, high=10.0)}
    assert fit_constants(free, lambda _: np.zeros(0)) == {"x": pytest.approx(2.0)}


def test_a_fifth_is_left_out_and_never_fitted() -> None:
    fit, out = held_out(101, seed=3)
    assert len(out) == 20
    assert sorted([*fit, *out]) == list(range(101))


def test_errors_are_summed_up_by_median_and_ninetieth_percentile() -> None:
    held = Held(errors=np.arange(11) / 100)
    assert (held.median, held.p90) == pytest.approx((0.05, 0.09))


def test_gemm_constants_that_made_a_table_predict_it_again() -> None:
    shapes = random_shapes(800)
    times = gemm_seconds_of(shapes, dtype=Dtype.BF16, gpu=GPU, constants=TRUE)
    prior = with_values(TRUE, {"efficiency": 0.6, "start": 5 * US, "memory_efficiency": 0.5})
    table = GemmTable(shapes=shapes, seconds=times)
    fit = fit_gemm([table], dtype=Dtype.BF16, gpu=GPU, prior=prior)
    assert fit.held.p90 <= 0.02


def test_attention_constants_that_made_a_table_predict_it_again() -> None:
    true = A100.constants.attention
    shapes = tuple(
        AttentionShape(batch=b, seq_q=s, seq_k=s, heads=h, kv_heads=kv, head_dim=d)
        for b in (1, 4)
        for s in (512, 1024, 2048, 4096, 8192)
        for h in (8, 32)
        for kv in (1, 8)
        for d in (64, 128)
    )
    call = {"dtype": Dtype.BF16, "gpu": GPU, "constants": true, "write_cache": True}
    times = [flash_forward_seconds(shape, **call) for shape in shapes]  # type: ignore[arg-type]
    prior = with_values(true, {"efficiency": 0.5, "start": 3 * US, "tail": 1.0})
    table = AttentionTable(shapes=shapes, seconds=np.array(times))
    fit = fit_attention(table, dtype=Dtype.BF16, gpu=GPU, prior=prior)
    assert fit.held.median <= 0.01


def test_factors_of_a_training_run_are_found_again() -> None:
    shapes = random_shapes(60)
    true = TRUE.model_copy(
        update={
            "sustained_factor": 1.3,
            "layout_factor": {GemmLayout.INPUT_GRADIENT: 1.1, GemmLayout.WEIGHT_GRADIENT: 1.0},
        }
    )
    tables = []
    for layout in (GemmLayout.FORWARD, GemmLayout.INPUT_GRADIENT):
        times = gemm_seconds_of(
            shapes, dtype=Dtype.BF16, gpu=GPU, constants=true, layout=layout, sustained=True
        )
        gemms = GemmTable(shapes=shapes, seconds=times)
        tables.append(LayoutTable(gemms=gemms, layout=layout, accumulate=False))
    found = fit_sustained(tables, dtype=Dtype.BF16, gpu=GPU, burst=TRUE).constants
    assert found.sustained_factor == pytest.approx(1.3, rel=0.01)
    assert found.layout_factor[GemmLayout.INPUT_GRADIENT] == pytest.approx(1.1, rel=0.01)


def test_an_inner_constant_is_replaced_by_its_dotted_name() -> None:
    prior = read_kernels(NOMINAL).gemm[Dtype.FP8]
    changed = with_values(prior, {"cast.row": 1e-9, "start": 1e-6})
    assert changed.cast is not None
    assert (changed.cast.row, changed.start, changed.k_latency) == (1e-9, 1e-6, prior.k_latency)


def test_repeated_gemm_rows_become_their_median(tmp_path: Path) -> None:
    path = tmp_path / "gemm.csv"
    rows = ["dtype,m,n,k,time_us", *(f"bfloat16,1,2,3,{time}" for time in (5, 6, 9)), "fp8,1,2,3,1"]
    path.write_text("\n".join(rows))
    table = read_gemms(path, Dtype.BF16)
    assert table.shapes.tolist() == [[1], [2], [3]]
    assert table.seconds.tolist() == pytest.approx([6 * US])


def test_the_faster_half_of_four_attention_rows_is_windowed(tmp_path: Path) -> None:
    path = tmp_path / "attention.csv"
    head = "batch_size,seq_len,num_heads,num_key_value_heads,head_dim,time_us"
    rows = [f"1,4096,8,8,128,{time}" for time in (10, 40, 12, 10)] + ["1,2048,8,8,128,7"]
    path.write_text("\n".join([head, *rows]))
    table = read_attention(path, (128,))
    assert [shape.seq_q for shape in table.shapes] == [4096]
    assert table.seconds.tolist() == pytest.approx([(12 * 40) ** 0.5 * US])


def test_layout_rows_are_grouped_by_layout_and_accumulation(tmp_path: Path) -> None:
    path = tmp_path / "layouts.csv"
    rows = ["TN,False,bf16", "NT,True,fp32", "NT,True,bf16"]
    lines = [f"1,2,3,4,{row},9,b200" for row in rows]
    path.write_text("\n".join(["b,m,n,k,layout,acc,out,t,gpu", *lines]))
    groups = [(table.layout, table.accumulate) for table in read_layouts(path, "b200")]
    assert groups == [
        (GemmLayout.FORWARD, False),
        (GemmLayout.WEIGHT_GRADIENT, False),
        (GemmLayout.WEIGHT_GRADIENT, True),
    ]


def test_memory_classes_take_the_median_of_their_operators(tmp_path: Path) -> None:
    path = tmp_path / "memory.csv"
    rows = ["X A100,add,10,0.9", "X A100,mulu,10,0.8", "X A100,ln,5,0.6", "X A100,softmax,5,0.7"]
    path.write_text("\n".join(["dev,op,n,bw_eff", *rows, "V100,add,10,0.1"]))
    prior = read_kernels(NOMINAL).memory_bound
    constants, points = fit_memory_bound(path, "A100", prior)
    assert (constants.efficiency[MemoryClass.POINTWISE], points) == (0.85, 30)
    assert constants.efficiency[MemoryClass.NORM] == 0.6
    assert constants.efficiency[MemoryClass.COPY] == prior.efficiency[MemoryClass.COPY]


def test_writing_kernels_keeps_the_collectives_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(NOMINAL.read_text())
    blocks = read_kernels(PROFILE_FOLDER / "fitted" / "b200_sxm.toml")
    record = FitRecord(what="gemm.bf16", origin=Origin.NOMINAL, source="a test")
    before = read_toml(path)
    for _ in range(2):
        write_kernels(path, "machine", FittedKernels(blocks=blocks, records=(record,)))
    after = read_record(FittedConstants, path)
    assert read_toml(path)["collectives"] == before["collectives"]
    kept = [each["what"] for each in before["fit"]]
    others = [what for what in kept if what in ("collectives", "gemm.grouped", "host_copy")]
    assert [each.what for each in after.fit] == [*others, "gemm.bf16"]
    assert after.gemm[Dtype.FP8].cast == blocks.gemm[Dtype.FP8].cast
    assert after.accelerator == "machine"


def test_a_cast_is_part_of_what_a_table_is_compared_with() -> None:
    fp8 = load_profile("dgx-h100")
    constants = fp8.constants.gemm[Dtype.FP8]
    table = GemmTable(shapes=np.full((3, 1), 4096.0), seconds=np.ones(1))
    bare = constants.model_copy(update={"cast": None})
    with_cast, without = (
        predict_gemms(table, Dtype.FP8, fp8.accelerator, each)[0] for each in (constants, bare)
    )
    assert with_cast > without
