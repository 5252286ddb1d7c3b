"""Kernels and layers that all ranks run at the same time: planned, measured, fitted, compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calibrate.batches import Batch, World
from calibrate.fit_input import read_measurements
from calibrate.fit_passes import measured_passes
from calibrate.plan import expand
from calibrate.point_words import words_of
from calibrate.points import (
    CollectivePoint,
    GemmPoint,
    LaunchPoint,
    LayerPart,
    LayerPoint,
    MemoryBoundPoint,
    Point,
    Timing,
)
from calibrate.records import Record
from calibrate.straggle import Part, SlowRank, Stragglers, find_stragglers
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from tests.calibrate.fit_folders import write_folder
from tests.calibrate.gloo_ranks import on_ranks
from tests.calibrate.measured import gemm, record
from tests.calibrate.test_plan import CPU, GPU, MODEL, NODE, made

PAIR = World(size=2, local_size=2)


def layer(ranks: int, **more: Any) -> LayerPoint:
    """Return a layer of GPT-2."""
    given = {"part": LayerPart.LAYER, "model": "gpt2", "micro_batch": 1, "seq": 128}
    return LayerPoint.model_validate({**given, "dtype": Dtype.FP32, "ranks": ranks, **more})


def batches(world: World, **sections: object) -> dict[str, Batch]:
    """Return the batches of a plan on a node of GPUs, by name."""
    return {batch.name: batch for batch in expand(made(model=MODEL, **sections), world, GPU)}


def test_stragglers_are_two_lasting_products_and_a_sum_on_all_ranks() -> None:
    batch = batches(NODE, stragglers={})["stragglers"]
    one, two, memory = batch.points

    assert batch.ranks == "all"
    assert isinstance(one, GemmPoint)
    assert isinstance(two, GemmPoint)
    assert isinstance(memory, MemoryBoundPoint)
    assert one.sustained
    assert two.sustained
    assert one.m * one.n * one.k >= two.m * two.n * two.k
    assert {one.ranks, two.ranks, memory.ranks} == {8}


def test_one_process_has_no_stragglers() -> None:
    assert set(batches(World(), stragglers={}, launch=True)) == {"kernels"}


def test_layers_of_all_ranks_have_batches_of_their_own() -> None:
    alone = batches(NODE, layers={})
    together = batches(NODE, layers={"ranks": "all"})

    assert {(name, batch.ranks) for name, batch in alone.items()} == {("kernels", "one")}
    assert {(name, batch.ranks) for name, batch in together.items()} == {("layers", "all")}
    assert [ranks_of(point) for point in alone["kernels"].points] == [1] * 7
    assert [ranks_of(point) for point in together["layers"].points] == [8] * 7


def test_layers_of_all_ranks_are_those_of_one_where_there_is_one() -> None:
    assert batches(World(), layers={"ranks": "all"}) == batches(World(), layers={})


def ranks_of(point: Point) -> int:
    assert isinstance(point, LayerPoint)
    return point.ranks


def test_two_ranks_exchange_apart_at_every_size() -> None:
    points = expand(made(apart={"cpu_bytes": ["1 MiB", "4 MiB"]}), PAIR, CPU)[0].points

    found = {
        (p.collective, p.timing, p.bytes, p.ranks) for p in points if isinstance(p, CollectivePoint)
    }
    assert found == {
        (kind, Timing.APART, size * 2.0**20, 2)
        for kind in (Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        for size in (1, 4)
    }


def test_nccl_writes_its_choices_only_where_nothing_else_is_timed() -> None:
    found = batches(NODE, collectives={}, launch=True, interference={}, pairs={})

    telling = {name for name, batch in found.items() if batch.nccl_choice}
    assert telling == {"collectives", "more-collectives", "pairs"}
    assert isinstance(found["steps"].points[0], LaunchPoint)


def test_a_plan_can_keep_nccl_quiet() -> None:
    found = batches(NODE, collectives={"nccl_choice": False}, pairs={})

    assert not any(batch.nccl_choice for batch in found.values())


def test_all_ranks_time_the_same_kernel_and_a_slow_one_would_show(tmp_path: Path) -> None:
    outcomes = on_ranks(2, _measured_at_once, tmp_path)

    assert outcomes[0] == outcomes[1]
    for seconds, by_rank in outcomes[0]:
        assert len(by_rank) == 2
        assert min(by_rank) > 0
        assert seconds >= min(by_rank)


def _measured_at_once(context: Any) -> list[tuple[float, tuple[float, ...]]]:
    from calibrate.measure_registry import measure

    points: list[Point] = [
        GemmPoint(dtype=Dtype.FP32, m=64, n=64, k=64, ranks=2),
        MemoryBoundPoint(
            operator="add",
            memory_class=MemoryClass.POINTWISE,
            dtype=Dtype.FP32,
            bytes=2.0**20,
            ranks=2,
        ),
        layer(2, seq=8, tp=2),
    ]
    outcomes = [measure(point, context) for point in points]
    return [(outcome.seconds, outcome.by_rank) for outcome in outcomes]


@pytest.mark.parametrize("point", [gemm(64, 64, 64), layer(2)], ids=["gemm", "layer"])
def test_another_number_of_processes_than_the_point_says_is_refused(point: Point) -> None:
    torch = pytest.importorskip("torch")
    from calibrate.limits import Limits
    from calibrate.measure_context import Context
    from calibrate.measure_registry import measure
    from simulator.errors import InputError
    from tests.calibrate.test_measure_apart import Heard

    ranks = Heard(rank=0, size=3)
    context = Context(device=torch.device("cpu"), limits=Limits(), ranks=ranks)
    with pytest.raises(InputError, match="here 3 do"):
        measure(point, context)


def test_kernels_of_all_ranks_name_the_slow_one_and_fit_nothing(tmp_path: Path) -> None:
    times = (1e-3, 1e-3, 1.2e-3, 1e-3)
    shared = gemm().model_copy(update={"ranks": 4})
    both = [record(gemm()), record(shared, 1.2e-3, by_rank=times)]
    write_folder(tmp_path, both)

    measured = read_measurements(tmp_path)

    assert measured.usable == (both[0],)
    assert "by 4 ranks at once" in str(measured.rejected[0])
    slow = SlowRank(rank=2, part=Part.COMPUTE, factor=1.2e-3 / 1e-3)
    assert find_stragglers(both) == Stragglers(ranks=(slow,))


def test_passes_of_more_ranks_at_once_are_preferred() -> None:
    records = [
        Record(point=layer(ranks, backward=backward), seconds=seconds)
        for ranks, forward in ((4, 0.3), (1, 0.1), (2, 0.2))
        for backward, seconds in ((False, forward), (True, 2 * forward))
    ]

    (measured,) = measured_passes(records)

    assert (measured.forward, measured.backward) == (0.3, 0.6)


def test_words_tell_how_many_ranks_ran_at_once() -> None:
    shared = gemm(1, 2, 3).model_copy(update={"ranks": 8})

    assert words_of(shared) == "1 x 2 x 3, forward, on 8 ranks at once"
    assert words_of(gemm(1, 2, 3)) == "1 x 2 x 3, forward"
