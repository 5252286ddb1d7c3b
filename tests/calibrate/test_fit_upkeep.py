"""Times of work on a layer's parameters, as a profile holds them."""

from __future__ import annotations

import pytest

from calibrate.fit_software import measured_software
from calibrate.fit_upkeep import measured_upkeep
from calibrate.points import Upkeep, UpkeepPoint
from calibrate.records import Record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import load_profile
from simulator.hardware.software_constants import MeasuredUpkeep

LAYER = 12 * 768**2 + 13 * 768
"""Parameters of a layer of GPT-2: attention 4 h^2, MLP 8 h^2, biases and norms 13 h."""
UPDATED = MeasuredUpkeep(
    hidden_size=768,
    width=3072,
    heads=12,
    kv_heads=12,
    precision=Dtype.FP32,
    parameters=LAYER,
    update=4e-3,
)


def times(work: Upkeep, seconds: float, *, dp: int = 1, ranks: int = 1, tp: int = 1) -> Record:
    point = UpkeepPoint(work=work, model="gpt2", dp=dp, tp=tp, dtype=Dtype.FP32, ranks=ranks)
    return Record(point=point, seconds=seconds)


def test_a_reduction_is_what_both_passes_take_beyond_their_gathers() -> None:
    records = [times(Upkeep.GATHER, 3e-3, dp=2), times(Upkeep.SHARDED, 10e-3, dp=2)]

    (found,) = measured_upkeep(records)
    assert (found.dp, found.gather, found.reduce, found.buckets) == (2, 3e-3, 4e-3, None)


def test_repeats_count_as_their_median_and_only_those_of_most_ranks() -> None:
    at_once = [times(Upkeep.UPDATE, seconds, ranks=2) for seconds in (3e-3, 4e-3, 9e-3)]

    (found,) = measured_upkeep([times(Upkeep.UPDATE, 1e-3), *at_once])
    assert found == UPDATED


def test_each_share_of_a_layer_is_a_record_of_its_own() -> None:
    cut = [times(Upkeep.UPDATE, 5e-3, tp=2), times(Upkeep.BUCKETS, 2e-3, dp=4)]

    found = list(measured_upkeep([times(Upkeep.UPDATE, 4e-3), *cut]))
    assert [(each.tp, each.dp, each.update, each.buckets) for each in found] == [
        (1, 1, 4e-3, None),
        (2, 1, 5e-3, None),
        (1, 4, None, 2e-3),
    ]
    # Matrices and their column-parallel biases are cut; norms and row-parallel biases are not.
    assert found[1].parameters == 12 * 768**2 / 2 + (3 + 4) * 768 / 2 + (1 + 1 + 4) * 768


def test_a_layer_that_no_forecast_matches_is_left_out() -> None:
    point = UpkeepPoint(work=Upkeep.UPDATE, model="mixtral-8x7b", dtype=Dtype.FP32)
    assert list(measured_upkeep([Record(point=point, seconds=1e-3)])) == []


def test_a_new_measurement_takes_the_place_of_the_known_one_of_that_share() -> None:
    base = load_profile("dgx-h100")
    first = measured_software([times(Upkeep.UPDATE, 9e-3)], base)
    known = base.constants.model_copy(update={"software": first})
    machine = base.model_copy(update={"constants": known})
    second = measured_software(
        [times(Upkeep.UPDATE, 4e-3), times(Upkeep.BUCKETS, 2e-3, dp=2)], machine
    )

    assert second is not None
    assert second.upkeep == (
        UPDATED,
        UPDATED.model_copy(update={"dp": 2, "update": None, "buckets": 2e-3}),
    )


@pytest.mark.parametrize(
    ("work", "sizes", "rule"),
    [
        (Upkeep.GATHER, {"dp": 1}, "gather is between data ranks, so that dp must be at least 2"),
        (Upkeep.BUCKETS, {"dp": 2, "tp": 2}, "DDP takes no tensor-parallel parameters"),
    ],
)
def test_work_that_no_layout_has_is_refused(work: Upkeep, sizes: dict[str, int], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        UpkeepPoint(work=work, model="gpt2", dtype=Dtype.FP32, **sizes)
