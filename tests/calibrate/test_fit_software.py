"""What was measured of the software goes into the profile as it is."""

from __future__ import annotations

import pytest

from calibrate.fit_software import measured_software, scaled_to_steps, slowdown_notes
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
from simulator.hardware.software_constants import KernelClass, MeasuredPart, SoftwareConstants
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.units import MIB, US
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model

MACHINE = load_profile("dgx-h100")
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
    software = measured_software(records, MACHINE)
    assert software is not None
    assert software.cpu_launch == pytest.approx(5 * US)
    assert software.cpu_collective is None


def test_slowdowns_are_medians_of_a_class_and_never_below_one() -> None:
    gemm = [beside(KernelClass.GEMM, ratio) for ratio in (1.1, 1.2, 1.9)]
    software = measured_software([*gemm, beside(KernelClass.MEMORY_BOUND, 0.9)], MACHINE)
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
    software = measured_software(records, MACHINE)
    assert software is not None
    (found,) = software.passes
    spec = load_model(MODEL).spec
    assert (found.part, found.forward, found.backward) == (MeasuredPart.LAYER, 1e-3, 2e-3)
    assert (found.hidden_size, found.heads) == (spec.hidden_size, spec.num_attention_heads)
    assert (found.width, found.gated) == (spec.intermediate_size, True)


def test_repeats_of_a_pass_count_as_their_median_on_most_ranks() -> None:
    backward = LAYER.model_copy(update={"backward": True})
    busy = [point.model_copy(update={"ranks": 8}) for point in (LAYER, backward)]
    times = [(busy[0], 1e-3), (busy[0], 3e-3), (busy[0], 9e-3), (busy[1], 4e-3), (LAYER, 7e-3)]
    software = measured_software([Record(point=p, seconds=t) for p, t in times], MACHINE)
    assert software is not None
    (found,) = software.passes
    assert (found.forward, found.backward) == (3e-3, 4e-3)


def test_layers_of_a_cpu_are_of_the_stack_of_cpus() -> None:
    backward = LAYER.model_copy(update={"backward": True})
    records = [Record(point=point, seconds=1e-3) for point in (LAYER, backward)]
    found = [measured_software(records, load_profile(name)) for name in ("dgx-h100", "local-cpu")]
    assert [each.stack for each in found if each] == ["pytorch-eager", "pytorch-gloo"]


def test_what_was_not_measured_again_stays_as_the_base_has_it() -> None:
    first = [beside(KernelClass.GEMM, 1.2), *_both_passes(LAYER)]
    known = measured_software(first, MACHINE)
    again = [Record(point=LaunchPoint(launch=Launch.KERNEL), seconds=5 * US)]
    other = LAYER.model_copy(update={"seq": 1024})
    second = measured_software([*again, *_both_passes(other)], _with(MACHINE, known))
    assert known is not None
    assert second is not None
    assert second.compute_slowdown == known.compute_slowdown
    assert second.cpu_launch == pytest.approx(5 * US)
    assert [each.seq for each in second.passes] == [512, 1024]


def test_steps_of_another_stack_do_not_set_the_scale() -> None:
    records = steps(MACHINE, 1.3)
    job = step(1).job.model_copy(update={"stack": "megatron-core"})
    strange = [Record(point=step(n).model_copy(update={"job": job}), seconds=9.0) for n in (1, 2)]
    scaled = scaled_to_steps([*records, *strange], _with_software(MACHINE, [*records, *strange]))
    assert scaled == scaled_to_steps(records, _with_software(MACHINE, records))


def test_nothing_measured_is_no_software() -> None:
    assert measured_software([], MACHINE) is None


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


def _both_passes(point: LayerPoint) -> list[Record]:
    backward = point.model_copy(update={"backward": True})
    return [Record(point=each, seconds=1e-3) for each in (point, backward)]


def _with_software(machine: Profile, records: list[Record]) -> Profile:
    return _with(machine, measured_software(records, machine))


def _with(machine: Profile, software: SoftwareConstants | None) -> Profile:
    constants = machine.constants.model_copy(update={"software": software})
    return machine.model_copy(update={"constants": constants})


def test_a_slowdown_that_a_profile_cannot_state_is_told() -> None:
    (note,) = slowdown_notes([beside(KernelClass.GEMM, 0.9), beside(KernelClass.GEMM, 1.2)])
    assert note == (
        "compute took 0.90 of its time alone while both ran; where the median is so, it counts as 1"
    )


def test_steps_that_fewer_ranks_ran_at_once_say_nothing_of_the_spread() -> None:
    busy = [
        record.model_copy(update={"point": record.point.model_copy(update={"ranks": 4})})
        for record in steps(MACHINE, 2.0)
    ]
    busy[0] = busy[0].model_copy(update={"seconds": 1.01 * (busy[0].seconds or 0.0)})
    records = [*busy, *steps(MACHINE, 1.0)]
    found = scaled_to_steps(records, _with_software(MACHINE, records)).constants.software
    assert found is not None
    assert found.step_spread is not None
    assert found.step_spread < 0.02
