"""What was measured of the software goes into the profile as it is."""

from __future__ import annotations

import pytest

from calibrate.fit_software import measured_software, scaled_to_steps
from calibrate.points import (
    InterferencePoint,
    Launch,
    LaunchPoint,
    LayerPart,
    LayerPoint,
    StepPoint,
)
from calibrate.predict import predict
from calibrate.records import Record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile, load_profile
from simulator.hardware.software_constants import KernelClass, MeasuredPart
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.units import MIB, US
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model

MODEL = "llama3.1-8b"
LAYER = LayerPoint(part=LayerPart.LAYER, model=MODEL, micro_batch=2, seq=512, dtype=Dtype.BF16)


def step(batch: int) -> StepPoint:
    return StepPoint(
        model=MODEL,
        layers=2,
        job=TrainingJob(global_batch_size=batch, seq_length=1024, stack="torchtitan"),
        layout=ParallelLayout(micro_batch_size=1),
    )


def steps(machine: Profile, factor: float) -> list[Record]:
    """Return steps that take `factor` times as long as the machine's forecast."""
    points = [step(batch) for batch in (1, 2, 3, 4, 6)]
    return [
        Record(point=point, seconds=factor * predict(Record(point=point), machine).seconds)
        for point in points
    ]


def beside(kernel: KernelClass, ratio: float) -> Record:
    point = InterferencePoint(kernel=kernel, collective=Collective.ALL_REDUCE, ranks=2, bytes=MIB)
    names = ("compute_alone", "compute_beside", "communication_alone", "communication_beside")
    values = dict(zip(names, (1.0, ratio, 1.0, 2 * ratio), strict=True))
    return Record(point=point, seconds=1.0, values=values)


def test_launches_are_medians() -> None:
    records = [
        Record(point=LaunchPoint(launch=Launch.KERNEL), seconds=each * US) for each in (4, 5, 50)
    ]
    software = measured_software(records)
    assert software is not None
    assert software.cpu_launch == pytest.approx(5 * US)
    assert software.cpu_collective is None


def test_slowdowns_are_medians_of_a_class_and_never_below_one() -> None:
    gemm = [beside(KernelClass.GEMM, ratio) for ratio in (1.1, 1.2, 1.9)]
    software = measured_software([*gemm, beside(KernelClass.MEMORY_BOUND, 0.9)])
    assert software is not None
    assert software.compute_slowdown == {KernelClass.GEMM: 1.2, KernelClass.MEMORY_BOUND: 1.0}
    assert software.comm_slowdown == pytest.approx((2.2 + 2.4) / 2)


def test_both_passes_of_a_layer_become_one_measured_pass() -> None:
    backward = LAYER.model_copy(update={"backward": True})
    lone = LAYER.model_copy(update={"micro_batch": 4})
    records = [
        Record(point=point, seconds=time)
        for point, time in ((LAYER, 1e-3), (backward, 2e-3), (lone, 3e-3))
    ]
    software = measured_software(records)
    assert software is not None
    (found,) = software.passes
    spec = load_model(MODEL).spec
    assert (found.part, found.forward, found.backward) == (MeasuredPart.LAYER, 1e-3, 2e-3)
    assert (found.hidden_size, found.heads) == (spec.hidden_size, spec.num_attention_heads)
    assert (found.width, found.gated) == (spec.intermediate_size, True)


def test_nothing_measured_is_no_software() -> None:
    assert measured_software([]) is None


def test_steps_set_a_scale_that_makes_their_forecasts_right() -> None:
    machine = load_profile("dgx-h100")
    records = steps(machine, 1.3)
    with_stack = _with_software(machine, records)
    scaled = scaled_to_steps(records, with_stack)
    found = [predict(record, scaled).seconds for record in records]
    assert found == pytest.approx([record.seconds for record in records], rel=0.02)


def test_enough_steps_give_a_spread_of_their_own() -> None:
    machine = load_profile("dgx-h100")
    records = steps(machine, 1.3)
    records[0] = records[0].model_copy(update={"seconds": 1.1 * (records[0].seconds or 0.0)})
    software = scaled_to_steps(records, _with_software(machine, records)).constants.software
    assert software is not None
    assert software.step_spread is not None
    assert 0 < software.step_spread < 0.1


def _with_software(machine: Profile, records: list[Record]) -> Profile:
    software = {"software": measured_software(records)}
    return machine.model_copy(update={"constants": machine.constants.model_copy(update=software)})
