"""A folder of measurements becomes a profile: what was measured is found, the rest is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrate.fit import Fitted, fit_folder
from calibrate.fit_block import Fitting, judge
from calibrate.fit_blocks import DISAGREES
from calibrate.fit_memory import memory_bound_model
from calibrate.points import Direction, GemmPoint, HostCopyPoint, MemoryBoundPoint, Point
from calibrate.records import Record, Status
from calibrate.used_points import digest_of, used_points
from simulator.errors import InputError
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import Origin
from simulator.hardware.kernel_constants import MemoryClass
from simulator.hardware.profile import Profile, load_profile
from simulator.hardware.software_constants import KernelClass
from simulator.units import MIB, US
from tests.calibrate.fit_folders import (
    MACHINE,
    collective_points,
    kernel_points,
    measured,
    software_records,
    true_machine,
    write_folder,
)

NOISE = 0.01
TRUE = true_machine()
BROKEN = Record(
    point=HostCopyPoint(direction=Direction.TO_DEVICE, bytes=MIB),
    status=Status.TIMEOUT,
    reason="no answer for 60 s",
)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    few = [point for point in collective_points() if getattr(point, "bytes", 0) in (2**10, 2**22)]
    return measured([*kernel_points(), *few], TRUE, noise=NOISE)


@pytest.fixture(scope="module")
def fitted(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    everything = [*records, *software_records(), BROKEN]
    return fit_folder(write_folder(tmp_path_factory.mktemp("measured"), everything))


def kernels(count: int = 8, *, noise: float = 0.0) -> list[Record]:
    """Return memory-bound kernels that run as the shipped profile says."""
    points = [
        MemoryBoundPoint(
            operator="add",
            memory_class=MemoryClass.POINTWISE,
            dtype=Dtype.BF16,
            bytes=4.0**power * 1e4,
        )
        for power in range(count)
    ]
    return measured(points, load_profile("dgx-h100"), noise=noise)


def test_the_constants_of_the_machine_are_found(fitted: Fitted) -> None:
    constants = fitted.profile.constants
    assert constants.gemm[Dtype.BF16].efficiency == pytest.approx(0.6, rel=0.03)
    assert constants.gemm[Dtype.BF16].sustained_factor == pytest.approx(1.2, rel=0.03)
    assert constants.attention.backward_factor == pytest.approx(3.4, rel=0.03)
    assert constants.memory_bound.efficiency[MemoryClass.NORM] == pytest.approx(0.5, rel=0.03)


def test_points_that_were_held_out_are_predicted(fitted: Fitted) -> None:
    assert fitted.check is not None
    assert fitted.check.median < 0.03 < fitted.check.default_median


def test_software_is_taken_as_measured(fitted: Fitted) -> None:
    software = fitted.profile.constants.software
    assert software is not None
    assert software.cpu_launch == pytest.approx(6 * US)
    assert (software.compute_slowdown, software.comm_slowdown) == ({KernelClass.GEMM: 1.25}, 1.5)


def test_a_failed_point_is_listed_with_its_reason(fitted: Fitted) -> None:
    assert [each.reason for each in fitted.rejected] == ["timeout: no answer for 60 s"]


def test_the_file_holds_all_that_was_fitted(fitted: Fitted, tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(fitted.profile_text)
    assert load_profile(str(path)) == fitted.profile


def test_a_check_can_tell_which_points_were_used(fitted: Fitted, records: list[Record]) -> None:
    kept = {block.name for block in fitted.blocks if not block.is_fitted}
    own = {r for b in fitted.blocks if b.name not in kept for r in map(_digest, b.records)}
    assert (
        own
        <= used_points(fitted.profile)
        <= set(map(_digest, records)) | set(map(_digest, software_records()))
    )


def _digest(record: Record) -> str:
    return digest_of(record.point)


def test_formats_that_shared_their_constants_still_do(fitted: Fitted) -> None:
    gemm = fitted.profile.constants.gemm
    assert gemm[Dtype.FP16] == gemm[Dtype.BF16].model_copy(update={"cast": gemm[Dtype.FP16].cast})
    origins = {record.what: record.origin for record in fitted.profile.constants.fit}
    assert (origins["gemm.bf16"], origins["gemm.fp16"]) == (Origin.FITTED, Origin.NOMINAL)


def test_what_was_not_measured_keeps_the_constants_and_records_of_the_base(fitted: Fitted) -> None:
    base = load_profile("dgx-h100")
    assert fitted.profile.constants.gemm[Dtype.FP8] == base.constants.gemm[Dtype.FP8]
    kept = {record.what: record for record in fitted.profile.constants.fit}
    assert kept["gemm.fp8"] in base.constants.fit


def test_constants_that_points_settle_are_less_uncertain_than_others(fitted: Fitted) -> None:
    (gemm,) = (block for block in fitted.blocks if block.name == "gemm.bf16")
    assert gemm.uncertainty["sustained_factor"] < 0.05 < gemm.uncertainty["split_start"]


def test_the_spread_is_that_of_points_left_out(fitted: Fitted) -> None:
    assert 0.3 * NOISE < fitted.profile.constants.spread < 5 * NOISE


def test_a_point_that_disagrees_is_listed_and_hardly_counts(tmp_path: Path) -> None:
    good = kernels()
    (wrong,) = (record for record in good if record.seconds == good[4].seconds)
    disturbed = [
        r.model_copy(update={"seconds": 3 * (r.seconds or 0)}) if r is wrong else r for r in good
    ]
    fitted = fit_folder(write_folder(tmp_path, disturbed))
    assert [(each.record.point, each.reason) for each in fitted.rejected] == [
        (wrong.point, DISAGREES)
    ]


def test_a_fit_that_is_worse_than_the_base_is_not_kept(tmp_path: Path) -> None:
    """The points scatter around the base: a fit to a few of them follows the scatter."""
    fitted = fit_folder(write_folder(tmp_path, kernels(4, noise=0.1)))
    (block,) = fitted.blocks
    (record,) = (r for r in fitted.profile.constants.fit if r.what == "memory_bound")
    assert not block.is_fitted
    assert "kept: a fit leaves" in record.source
    assert fitted.profile.constants.memory_bound == load_profile("dgx-h100").constants.memory_bound


def test_files_of_two_machines_are_refused_by_name(tmp_path: Path) -> None:
    write_folder(tmp_path, kernels(), name="first")
    other = MACHINE.model_copy(update={"accelerator": "NVIDIA H200", "accelerator_memory": 150e9})
    write_folder(tmp_path, kernels(), name="second", machine=other)
    with pytest.raises(InputError) as raised:
        fit_folder(tmp_path)
    text = str(raised.value)
    assert "second.jsonl: is of another machine than first.jsonl: accelerator" in text
    assert "accelerator_memory 8.5e+10 and 1.5e+11" in text


def test_other_software_is_refused_until_it_is_accepted(tmp_path: Path) -> None:
    write_folder(tmp_path, kernels(), name="first")
    other = MACHINE.model_copy(update={"torch": "2.8.0", "environment": {"NCCL_ALGO": "Ring"}})
    write_folder(tmp_path, kernels(), name="second", machine=other)
    with pytest.raises(InputError, match=r"torch 2\.9\.0 and 2\.8\.0") as raised:
        fit_folder(tmp_path)
    assert "--accept-software-differences" in str(raised.value)
    fitted = fit_folder(tmp_path, accept_software_differences=True)
    assert any("NCCL_ALGO not set and Ring" in note for note in fitted.notes)


def test_a_log_of_two_ranks_is_of_the_same_machine_as_one_of_eight(tmp_path: Path) -> None:
    for ranks in (2, 8):
        machine = MACHINE.model_copy(update={"accelerators_per_node": ranks})
        name, made_by = f"log{ranks}", f"calibrate import log{ranks}.txt"
        write_folder(tmp_path, kernels(), name=name, machine=machine, made_by=made_by)
    assert fit_folder(tmp_path).profile.node.accelerators == 8


def test_in_place_and_out_of_place_are_one_cell(tmp_path: Path) -> None:
    """Both stand in every log; a table of corrections has one value a size."""
    twice = [
        record.model_copy(update={"point": record.point.model_copy(update={"in_place": each})})
        for record in measured(collective_points()[:20], TRUE)
        for each in (True, False)
    ]
    fitted = fit_folder(write_folder(tmp_path, twice))
    (block,) = fitted.blocks
    curves = fitted.profile.constants.collectives.residual
    assert [len(set(curve.payload)) for curve in curves] == [len(c.payload) for c in curves]
    assert (len(block.records), block.held_out.size) == (40, 8)


def test_a_format_that_the_base_has_not_is_listed(tmp_path: Path) -> None:
    strange = Record(point=GemmPoint(dtype=Dtype.FP4, m=64, n=64, k=64), seconds=1e-3)
    fitted = fit_folder(write_folder(tmp_path, [*kernels(), strange]))
    assert [str(each.reason) for each in fitted.rejected] == [
        "the base has no peak or no constants for fp4"
    ]


def test_a_folder_without_a_good_point_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one measurement that is fine"):
        fit_folder(write_folder(tmp_path, [BROKEN]))


def test_an_illegal_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--name: name"):
        fit_folder(write_folder(tmp_path, kernels()), name="My machine")


def test_the_seed_draws_what_is_held_out(records: list[Record], tmp_path: Path) -> None:
    products = [record for record in records if isinstance(record.point, MemoryBoundPoint)]
    folder = write_folder(tmp_path, products)
    held = [fit_folder(folder, seed=seed).blocks[0].held_out for seed in (0, 0, 1)]
    assert np.array_equal(held[0], held[1])
    assert not np.array_equal(held[0], held[2])


def test_repeats_of_a_point_are_left_out_together() -> None:
    model, lone = memory_bound_model(), kernels(6)
    seen: list[list[Point]] = []

    def fit(kept: Sequence[Record], profile: Profile) -> Fitting:
        seen.append([record.point for record in kept])
        return model.fit(kept, profile)

    judge(replace(model, fit=fit), [*lone, *lone[:2]], load_profile("dgx-h100"))
    assert [len(set(points)) for points in seen] == [len(lone) - 1] * len(lone)
