from collections.abc import Mapping
from pathlib import Path

import pytest

from calibrate.validation import Status, validate_rows
from simulator.cost.collectives.select import plan_collective
from simulator.cost.gemm import gemm_seconds
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.hardware.profile import load_profile
from simulator.parallel.groups import Collective, GroupShape
from tests.calibrate.validation.tables import write_table

COLLECTIVE = {
    "gpu": "h100_sxm",
    "op": "all_reduce",
    "dtype": "half",
    "gpus": "8",
    "nodes": "1",
    "bytes": "1048576",
    "time_us": "50",
}
GEMM = {"dtype": "bfloat16", "m": "4096", "n": "4096", "k": "4096", "time_us": "200"}
ATTENTION = {
    "batch_size": "1",
    "seq_len": "4096",
    "num_heads": "16",
    "num_key_value_heads": "16",
    "head_dim": "128",
    "time_us": "500",
}


def test_a_collective_of_one_node_is_planned_in_one_domain(tmp_path: Path) -> None:
    path = write_table(tmp_path / "c.csv", [COLLECTIVE])
    (row,) = validate_rows(path).rows
    plan = plan_collective(
        Collective.ALL_REDUCE, 2.0**20, GroupShape(size=8, per_domain=8), load_profile("dgx-h100")
    )
    assert (row.id, row.predicted) == ("0", plan.seconds)
    assert row.measured == pytest.approx(50e-6)


def test_a_collective_of_several_nodes_spans_them_evenly(tmp_path: Path) -> None:
    path = write_table(tmp_path / "c.csv", [{**COLLECTIVE, "gpus": "16", "nodes": "2"}])
    (row,) = validate_rows(path).rows
    plan = plan_collective(
        Collective.ALL_REDUCE, 2.0**20, GroupShape(size=16, per_domain=8), load_profile("dgx-h100")
    )
    assert row.predicted == plan.seconds


def test_nodes_of_one_rack_share_their_domain(tmp_path: Path) -> None:
    row = {**COLLECTIVE, "gpu": "GB200", "gpus": "72", "nodes": "18", "fabric": "MNNVL-1rack"}
    other = {**row, "gpus": "8", "nodes": "2", "fabric": "RoCE-cross-domain(1x400G/GPU)"}
    inside, across = validate_rows(write_table(tmp_path / "c.csv", [row, other])).rows
    profile = load_profile("gb200-nvl72")
    shapes = [GroupShape(size=72, per_domain=72), GroupShape(size=8, per_domain=4)]
    plans = [plan_collective(Collective.ALL_REDUCE, 2.0**20, shape, profile) for shape in shapes]
    assert inside.predicted == plans[0].seconds
    assert across.predicted == pytest.approx(plans[1].seconds)


def test_a_narrower_fabric_makes_a_collective_slower(tmp_path: Path) -> None:
    wide = {**COLLECTIVE, "gpus": "16", "nodes": "2", "bytes": "1e9", "fabric": "IB-NDR-8x400G"}
    narrow = {**wide, "fabric": "IB-4x100G"}
    rows = validate_rows(write_table(tmp_path / "c.csv", [wide, narrow])).rows
    assert rows[0].predicted is not None
    assert rows[1].predicted is not None
    assert rows[1].predicted > 4 * rows[0].predicted


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"op": "gossip"}, "op: 'gossip' is not one of"),
        ({"op": ""}, "op: not given"),
        ({"gpu": "abacus"}, "gpu: 'abacus' is not a name or alias"),
        ({"gpu": ""}, "gpu: not given"),
        ({"gpus": "1"}, "gpus: 1 has nobody to talk to"),
        ({"gpus": "9", "nodes": "2"}, "gpus: 9 do not divide over 2 nodes"),
        ({"bytes": "-1"}, "bytes: '-1' is not a positive finite number"),
        ({"time_us": "0"}, "time_us: '0' is not a positive finite number"),
        ({"dtype": "int8"}, "reductions of integers"),
    ],
)
def test_a_collective_that_cannot_be_predicted_says_why(
    tmp_path: Path, changes: Mapping[str, str], reason: str
) -> None:
    (row,) = validate_rows(write_table(tmp_path / "c.csv", [{**COLLECTIVE, **changes}])).rows
    assert row.status is Status.SKIPPED
    assert reason in row.reason


def test_a_table_without_nodes_is_of_one_node(tmp_path: Path) -> None:
    row = {key: value for key, value in COLLECTIVE.items() if key not in ("nodes", "dtype")}
    both = write_table(tmp_path / "a.csv", [row]), write_table(tmp_path / "b.csv", [COLLECTIVE])
    (plain,), (full,) = (validate_rows(path).rows for path in both)
    assert plain.predicted == full.predicted


def test_the_machine_of_a_gemm_follows_from_the_files_name(tmp_path: Path) -> None:
    (row,) = validate_rows(write_table(tmp_path / "h100_sxm_gemm_x.csv", [GEMM])).rows
    profile = load_profile("dgx-h100")
    assert row.predicted == pytest.approx(
        gemm_seconds(
            4096,
            4096,
            4096,
            dtype=Dtype.BF16,
            gpu=profile.accelerator,
            constants=profile.constants.gemm[Dtype.BF16],
        )
    )


def test_a_table_with_layouts_was_timed_in_training_runs(tmp_path: Path) -> None:
    training = {"b": "2", "layout": "NT", "acc": "True", "out": "fp32", "gpu": "b200"}
    path = write_table(tmp_path / "layouts.csv", [{**GEMM, **training}])
    (row,) = validate_rows(path).rows
    profile = load_profile("dgx-b200")
    assert row.predicted == pytest.approx(
        gemm_seconds(
            4096,
            4096,
            4096,
            dtype=Dtype.BF16,
            gpu=profile.accelerator,
            constants=profile.constants.gemm[Dtype.BF16],
            batch=2,
            accumulate=True,
            layout=GemmLayout.WEIGHT_GRADIENT,
            sustained=True,
        )
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dtype": "fp8_block"}, "dtype: 'fp8_block' is not one of"),
        ({"m": "0"}, "m: '0' is not a positive finite number"),
        ({"k": "1e30"}, "k: '1e30' is not at most"),
        ({"time_us": "fast"}, "time_us: 'fast' is not a positive finite number"),
    ],
)
def test_a_gemm_that_cannot_be_predicted_says_why(
    tmp_path: Path, changes: Mapping[str, str], reason: str
) -> None:
    path = write_table(tmp_path / "g.csv", [{**GEMM, **changes}, GEMM])
    bad, good = validate_rows(path, profile="dgx-h100").rows
    assert reason in bad.reason
    assert good.status is Status.PREDICTED


def test_kernels_of_an_unnamed_machine_are_skipped(tmp_path: Path) -> None:
    (row,) = validate_rows(write_table(tmp_path / "gemms.csv", [GEMM])).rows
    assert "the file's name begins with no alias" in row.reason


def test_the_faster_half_of_repeated_attention_rows_may_be_windowed(tmp_path: Path) -> None:
    times = ["500", "300", "290", "510"]
    rows = [{**ATTENTION, "time_us": time} for time in times] + [{**ATTENTION, "head_dim": "64"}]
    path = write_table(tmp_path / "h100_sxm_attention.csv", rows)
    results = validate_rows(path).rows
    assert [row.status is Status.PREDICTED for row in results] == [True, False, False, True, False]


def test_attention_heads_must_divide(tmp_path: Path) -> None:
    path = write_table(tmp_path / "h100_sxm.csv", [{**ATTENTION, "num_key_value_heads": "5"}])
    (row,) = validate_rows(path).rows
    assert row.reason == "num_key_value_heads: 5 do not divide 16 heads"
