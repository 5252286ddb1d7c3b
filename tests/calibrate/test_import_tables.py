"""CSV tables of collectives, kernels and steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.import_options import Imported
from calibrate.importing import write_imported
from calibrate.points import AttentionPoint, CollectivePoint, GemmPoint, GroupKind, StepPoint
from calibrate.records import Header, Record, Status
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.parallel.groups import Collective
from simulator.workload.load import load_model
from tests.calibrate.logs import imported

COLLECTIVES = "gpu,nccl_version,op,dtype,gpus,nodes,bytes,time_us\n"
STEPS = (
    "hardware,gpus,gpus_per_node,framework,model,layers,hidden,ffn_hidden,ffn_matrices,heads,"
    "kv_heads,vocab,seq_len,global_batch,micro_batch,tp,pp,precision,step_time_s,status\n"
)
STEP = "H100,16,8,Megatron-LM,tiny,4,1024,4096,2,16,16,51200,2048,32,1,2,1,bf16,{},{}\n"


def table(folder: Path, text: str, name: str = "t.csv", **options: object) -> Imported:
    return imported(folder, text, name, **options)


def machines(result: Imported) -> list[str | None]:
    return [line.fingerprint.accelerator for line in result.lines if isinstance(line, Header)]


def only(result: Imported) -> Record:
    (record,) = result.records
    return record


def test_a_table_of_collectives_is_read(tmp_path: Path) -> None:
    result = table(tmp_path, COLLECTIVES + "h100,2.21.5,all_reduce,half,8,1,4096,25.5\n")
    record = only(result)
    assert record.point == CollectivePoint(
        collective=Collective.ALL_REDUCE, ranks=8, nodes=1, bytes=4096.0, dtype="float16"
    )
    assert (record.seconds, record.origin) == (pytest.approx(25.5e-6), "t.csv:2")
    header = result.lines[0]
    assert isinstance(header, Header)
    assert (header.fingerprint.accelerator, header.fingerprint.library) == ("h100", "2.21.5")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_read(tmp_path: Path, delimiter: str) -> None:
    text = COLLECTIVES + "h100,2.21.5,all_reduce,half,8,1,4096,25.5\n"
    assert only(table(tmp_path, text.replace(",", delimiter))).seconds == pytest.approx(25.5e-6)


def test_each_machine_of_a_table_has_its_header(tmp_path: Path) -> None:
    rows = "a,1,all_reduce,half,8,1,4096,25\nb,1,all_reduce,half,8,1,4096,30\n"
    assert machines(table(tmp_path, COLLECTIVES + rows)) == ["a", "b"]


def test_a_row_that_cannot_be_read_is_told_by_line(tmp_path: Path) -> None:
    rows = "h,1,all_reduce,half,8,1,4096,25\nh,1,all_reduce,half,8,1,4096,fast\nh,1\n"
    result = table(tmp_path, COLLECTIVES + rows)
    assert len(result.records) == 1
    assert [str(note).partition("t.csv: ")[2] for note in result.notes] == [
        "line 3: left out: time_us: 'fast' is not a positive finite number",
        "line 4: left out: the row has 2 cells, the header 8",
    ]


def test_gpus_of_a_node_times_nodes_are_the_ranks(tmp_path: Path) -> None:
    text = "config,gpus_per_node,nodes,ib_nics_per_node,time_ms\nC,4,2,4,132\nA,1,8,1,363\n"
    result = table(tmp_path, text, "ring_allreduce_1.6GB.csv")
    assert [(r.point, r.seconds) for r in result.records] == [
        (
            CollectivePoint(collective=Collective.ALL_REDUCE, ranks=8, nodes=2, bytes=1.6e9),
            pytest.approx(0.132),
        ),
        (
            CollectivePoint(
                collective=Collective.ALL_REDUCE,
                ranks=8,
                nodes=8,
                bytes=1.6e9,
                group=GroupKind.ONE_A_NODE,
            ),
            pytest.approx(0.363),
        ),
    ]


def test_what_a_table_lacks_is_asked_for_by_option(tmp_path: Path) -> None:
    text = "gpus_per_node,nodes,time_ms\n4,2,132\n"
    with pytest.raises(InputError) as caught:
        table(tmp_path, text, "t.csv")
    assert caught.value.problems[0].fix.startswith('--bytes "1 GiB"')
    with pytest.raises(InputError) as caught:
        table(tmp_path, text, "t.csv", bytes=1e9)
    assert caught.value.problems[0].rule == "the collective is not said anywhere"
    record = only(table(tmp_path, text, bytes=1e9, collective=Collective.ALL_REDUCE))
    assert record.seconds == pytest.approx(0.132)


def test_ranks_per_node_place_a_table_without_nodes(tmp_path: Path) -> None:
    text = "gpus,bytes,busbw,time_us\n32,1048576,15.33,132.54\n"
    result = table(tmp_path, text, per_node=8, collective=Collective.ALL_REDUCE)
    point = only(result).point
    assert isinstance(point, CollectivePoint)
    assert (point.nodes, only(result).status) == (4, Status.OK)


def test_a_table_of_products_is_read(tmp_path: Path) -> None:
    text = "dtype,m,n,k,time_us\nbfloat16,128,256,512,10\nbfloat16,128,256,512,12\n"
    record = only(table(tmp_path, text, "h100_sxm_gemm.csv"))
    assert record.point == GemmPoint(dtype=Dtype.BF16, m=128, n=256, k=512)
    assert (record.seconds, record.samples) == (pytest.approx(11e-6), 2)


def test_a_file_s_name_says_the_accelerator(tmp_path: Path) -> None:
    text = "dtype,m,n,k,time_us\nbfloat16,128,256,512,10\n"
    assert machines(table(tmp_path, text, "h100_sxm_gemm.csv")) == ["NVIDIA H100-SXM5-80GB"]
    result = table(tmp_path, text, "gemm.csv")
    assert machines(result) == [None]
    assert result.notes[-1].fix == "--accelerator NAME"
    assert machines(table(tmp_path, text, "gemm.csv", accelerator="X1")) == ["X1"]


def test_layouts_of_products_are_read(tmp_path: Path) -> None:
    rows = "1,128,256,512,NT,True,fp32,10,b200\n2,1,1,1,TN,False,bf16,3,b200\n"
    text = f"b,m,n,k,layout,acc,out,t,gpu\n{rows}"
    result = table(tmp_path, text)
    assert only(result).point == GemmPoint(
        dtype=Dtype.BF16,
        m=128,
        n=256,
        k=512,
        layout=GemmLayout.WEIGHT_GRADIENT,
        accumulate=True,
        sustained=True,
    )
    assert "2 products in one call are no single product" in str(result.notes[0])


def test_a_table_of_attention_is_read(tmp_path: Path) -> None:
    text = (
        "batch_size,seq_len,num_heads,num_key_value_heads,head_dim,time_us\n2,4096,32,8,128,900\n"
    )
    record = only(table(tmp_path, text))
    assert record.point == AttentionPoint(
        dtype=Dtype.BF16, batch=2, seq=4096, heads=32, kv_heads=8, head_dim=128
    )


def test_rows_that_may_have_had_a_window_are_rejected(tmp_path: Path) -> None:
    shape = "2,4096,32,8,128,"
    rows = "".join(f"{shape}{time}\n" for time in (900, 910, 300, 310)) + "4,4096,32,8,128,1800\n"
    head = "batch_size,seq_len,num_heads,num_key_value_heads,head_dim,time_us\n"
    full, single = table(tmp_path, head + rows).records
    assert (full.status, full.seconds, full.outliers) == (Status.OK, pytest.approx(905e-6), 2)
    assert single.status is Status.REJECTED


def test_a_table_of_steps_is_read(tmp_path: Path) -> None:
    record = only(table(tmp_path, STEPS + STEP.format(1.5, "ok")))
    point = record.point
    assert isinstance(point, StepPoint)
    assert (point.layout.tp, point.layout.dp, point.job.global_batch_size) == (2, 8, 32)
    assert record.seconds == pytest.approx(1.5)


def test_the_models_of_steps_are_written_beside_them(tmp_path: Path) -> None:
    result = table(tmp_path, STEPS + STEP.format(1.5, "ok"))
    write_imported(result, tmp_path / "out", "t.csv.jsonl")
    point = only(result).point
    assert isinstance(point, StepPoint)
    spec = load_model(point.model, relative_to=tmp_path / "out").spec
    assert (spec.num_hidden_layers, spec.hidden_size) == (4, 1024)


def test_a_run_without_memory_has_no_time(tmp_path: Path) -> None:
    record = only(table(tmp_path, STEPS + STEP.format("", "oom")))
    assert (record.status, record.seconds) == (Status.OUT_OF_MEMORY, None)


def test_steps_without_a_time_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: left out: step_time_s: not given"):
        table(tmp_path, STEPS + STEP.format("", "ok"))


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="each column may stand in the header once"):
        table(tmp_path, "gpu,op,gpus,nodes,bytes,time_us,gpu\nx,all_reduce,8,1,8,3,x\n")


def test_a_header_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a header and no row"):
        table(tmp_path, COLLECTIVES)
