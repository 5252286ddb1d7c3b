"""Copies and updates that were measured, added to collectives and taken for layers; by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.api import Forecaster
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile
from simulator.hardware.software_constants import MeasuredUpkeep, SoftwareConstants
from simulator.parallel.layout import ParallelLayout
from simulator.schedule.tasks import Work, WorkKind
from simulator.workload.job import Lora, Optimizer
from tests.simulator.small_cpu import (
    LAYER_PARAMETERS,
    LAYERS,
    PARAMETERS,
    forecaster,
    with_software,
)

GATHER, REDUCE, BUCKETS, UPDATE = 3e-3, 5e-3, 2e-3, 4e-3
DDP = ParallelLayout(dp=2)
FSDP = ParallelLayout(dp=2, zero_stage=3)
LAYERS_OF_ALL = PARAMETERS / LAYER_PARAMETERS
"""Parameters of the model, embedding and head among them, in those of a layer."""


def upkeep(dp: int, **times: float) -> MeasuredUpkeep:
    return MeasuredUpkeep(
        hidden_size=256,
        width=1024,
        heads=4,
        kv_heads=4,
        dp=dp,
        precision=Dtype.FP32,
        parameters=LAYER_PARAMETERS,
        **times,  # type: ignore[arg-type]
    )


def calibrated(scale: float = 1.0, *measured: MeasuredUpkeep) -> Forecaster:
    software = SoftwareConstants(stack="pytorch-gloo", step_scale=scale, upkeep=measured)
    return forecaster(with_software(software))


def seconds_of(found: Forecaster, layout: ParallelLayout, kind: WorkKind) -> float:
    """Return the seconds of a work over the whole model."""
    return found.costs.work(found.program(layout), Work(kind, 0, 0)).seconds


def test_fsdp_gathers_each_unit_twice_and_reduces_it_once_a_micro_batch() -> None:
    plain, found = calibrated(), calibrated(1.0, upkeep(2, gather=GATHER, reduce=REDUCE))
    micro_batches = FSDP.micro_batches(plain.job.global_batch_size)
    more = micro_batches * LAYERS_OF_ALL * (2 * GATHER + REDUCE)

    assert micro_batches == 2
    for step in (Forecaster.step_time, lambda f, layout: f.simulate(layout).step_time):
        assert step(found, FSDP) - step(plain, FSDP) == pytest.approx(more)


def test_ddp_fills_and_empties_its_buckets() -> None:
    plain, found = calibrated(), calibrated(1.0, upkeep(2, buckets=BUCKETS, gather=GATHER))
    more = seconds_of(found, DDP, WorkKind.REDUCE) - seconds_of(plain, DDP, WorkKind.REDUCE)

    assert more == pytest.approx(LAYERS_OF_ALL * BUCKETS)


def test_copies_are_scaled_as_all_compute_is() -> None:
    plain, found = calibrated(1.5), calibrated(1.5, upkeep(2, buckets=BUCKETS))
    more = seconds_of(found, DDP, WorkKind.REDUCE) - seconds_of(plain, DDP, WorkKind.REDUCE)

    assert more == pytest.approx(1.5 * LAYERS_OF_ALL * BUCKETS)


def test_the_update_of_layers_is_the_measured_one_and_the_rest_as_modelled() -> None:
    plain, found = calibrated(), calibrated(1.0, upkeep(1, update=UPDATE))
    modelled = seconds_of(plain, DDP, WorkKind.OPTIMIZER)
    ends = modelled * (1 - LAYERS * LAYER_PARAMETERS / PARAMETERS)

    taken = seconds_of(found, DDP, WorkKind.OPTIMIZER)
    assert taken == pytest.approx(LAYERS * UPDATE + ends)


@pytest.mark.parametrize(
    "job",
    [{"optimizer": Optimizer.SGD}, {"optimizer": Optimizer.ADAFACTOR}, {"lora": Lora(rank=8)}],
)
@pytest.mark.parametrize("layout", [DDP, FSDP])
def test_another_update_than_that_of_all_weights_by_adam_is_as_modelled(
    job: dict[str, Any], layout: ParallelLayout
) -> None:
    measured = upkeep(1, update=UPDATE), upkeep(2, update=UPDATE)
    software = SoftwareConstants(stack="pytorch-gloo", step_scale=1.0, upkeep=measured)
    plain = SoftwareConstants(stack="pytorch-gloo", step_scale=1.0)

    taken, modelled = (
        seconds_of(forecaster(with_software(each), **job), layout, WorkKind.OPTIMIZER)
        for each in (software, plain)
    )
    assert taken == modelled


@pytest.mark.parametrize("layout", [DDP, FSDP.model_copy(update={"dp": 4})])
def test_shards_of_another_number_of_ranks_say_nothing(layout: ParallelLayout) -> None:
    plain = calibrated()
    found = calibrated(1.0, upkeep(2, gather=GATHER, reduce=REDUCE, update=UPDATE))

    assert found.step_time(layout) == plain.step_time(layout)


def test_another_stack_takes_none_of_it() -> None:
    def step_time(profile: Profile) -> float:
        return forecaster(profile, stack="pytorch-eager").step_time(FSDP)

    measured = (upkeep(2, gather=GATHER, reduce=REDUCE, update=UPDATE),)
    bare = SoftwareConstants(stack="pytorch-gloo")
    found = bare.model_copy(update={"upkeep": measured})
    assert step_time(with_software(found)) == step_time(with_software(bare))
