"""Layers over stages of different machines: their balance, its memory, and what plans offer."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.balance import balanced_layers
from planner.bound import quick_bound, step_time_bound
from planner.mixed import balanced_layout
from planner.planning import plan
from simulator.api import Forecaster
from simulator.hardware.profile import Profile
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.scenario import PartFile, Scenario, SearchFile
from simulator.units import GIB
from simulator.workload.job import TrainingJob
from tests.fakes import changed
from tests.planner.scenarios import gpt, machine, mixtral, scenario

TIMES = st.floats(min_value=0.1, max_value=3.0)


def splits(layers: int, stages: int) -> list[tuple[int, ...]]:
    """Return every way to give each stage one layer or more."""
    cuts = combinations(range(1, layers), stages - 1)
    return [tuple(b - a for a, b in pairwise((0, *inner, layers))) for inner in cuts]


def slowest(seconds: np.ndarray, ends: list[float], split: tuple[int, ...]) -> float:
    """Return the time of the slowest stage of a split."""
    starts = np.cumsum((0, *split))
    spans = enumerate(pairwise(starts))
    return max(float(seconds[s, a:b].sum()) + ends[s] for s, (a, b) in spans)


@given(st.data())
def test_no_split_within_memory_has_a_faster_slowest_stage(data: st.DataObject) -> None:
    stages = data.draw(st.integers(1, 4))
    layers = data.draw(st.integers(stages, 9))
    rows = st.lists(TIMES, min_size=layers, max_size=layers)
    seconds = np.array([data.draw(rows) for _ in range(stages)])
    ends = [data.draw(TIMES) for _ in range(stages)]
    most = [data.draw(st.integers(1, layers)) for _ in range(stages)]
    held = [s for s in splits(layers, stages) if all(a <= b for a, b in zip(s, most, strict=True))]
    found = balanced_layers(seconds, ends, most)
    if not held:
        assert found is None
        return
    assert found in held
    least = min(slowest(seconds, ends, split) for split in held)
    assert slowest(seconds, ends, found) == pytest.approx(least, rel=1e-12)


def slower(times: float, memory: str = "80 GiB") -> Profile:
    """Return the made-up machine with kernels that many times slower."""
    plain = machine(memory=memory, price=2.0 / times)
    gpu = plain.accelerator
    peak = {dtype: rate / times for dtype, rate in gpu.peak.items()}
    board = changed(gpu, peak=peak, memory_bandwidth=gpu.memory_bandwidth / times)
    made = changed(plain.machine, name=f"slower-{times:g}", accelerator=board)
    return changed(plain, machine=made, sha256=made.name)


def two_generations(times: float = 2.0, *, memory: str = "80 GiB", **given: object) -> Scenario:
    """Return a scenario on one node of the machine and one that is slower, behind it."""
    found = scenario(
        given.pop("model", gpt(12, 2048)),  # type: ignore[arg-type]
        job=TrainingJob(global_batch_size=32, seq_length=1024, tokens=10**9),
        search=SearchFile(tp=(2, 4, 8), micro_batch_size=(1, 2), zero_stage=(1,)),
        profile=slower(1.0),
    )
    cluster = found.file.cluster.model_copy(update={"part": (PartFile(profile="b", nodes=1),)})
    file = found.file.model_copy(update={"cluster": cluster})
    update = {"file": file, "others": (slower(times, memory),)}
    return found.model_copy(update=update)


@pytest.mark.parametrize(("tp", "pp"), [(8, 2), (4, 4)])
def test_the_balanced_split_is_the_fastest_of_all_splits(tp: int, pp: int) -> None:
    cast = Forecaster.of(two_generations())
    layout = ParallelLayout(tp=tp, pp=pp, dp=1, zero_stage=1)
    found = balanced_layout(cast, layout)
    assert found is not None
    each = [changed(layout, layers_per_stage=split) for split in splits(12, pp)]
    times = [cast.step_time(other) for other in each]
    assert cast.step_time(found) == pytest.approx(min(times), rel=0.01)
    assert cast.step_time(found) < 0.85 * cast.step_time(layout)


def test_chunks_of_a_stage_have_equally_many_layers_more_where_it_is_faster() -> None:
    cast = Forecaster.of(two_generations())
    layout = ParallelLayout(tp=8, pp=2, vpp=2)
    found = balanced_layout(cast, layout)
    assert found is not None
    assert found.layers_per_stage is not None
    assert found.layers_per_stage[:2] == found.layers_per_stage[2:]
    assert found.layers_per_stage[0] > found.layers_per_stage[1]
    assert cast.step_time(found) < 0.85 * cast.step_time(layout)


def test_layers_that_differ_are_cut_where_their_times_are_even() -> None:
    """A dense layer before mixtures of experts: still no better cut than the one that is found."""
    model = mixtral(8, 1024, moe={**EXPERTS, "dense_layers": [0, 1, 2]})
    cast = Forecaster.of(two_generations(model=model))
    layout = ParallelLayout(tp=4, pp=2, dp=2, sequence_parallel=True)
    found = balanced_layout(cast, layout)
    assert found is not None
    times = [cast.step_time(changed(layout, layers_per_stage=s)) for s in splits(8, 2)]
    assert cast.step_time(found) == pytest.approx(min(times), rel=0.01)


EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 2048}


def test_a_stage_holds_no_more_layers_than_its_memory() -> None:
    """The faster part comes second here and is small: layers move back to the slower one."""
    roomy = two_generations(0.5)
    layout = ParallelLayout(tp=8, pp=2)
    free = balanced_layout(Forecaster.of(roomy), layout)
    assert free is not None
    use = Forecaster.of(roomy).memory(free)[1].reserved
    small = two_generations(0.5, memory=f"{use / GIB * 0.9:.3f} GiB")
    cast = Forecaster.of(small)
    held = balanced_layout(cast, layout)
    assert held is not None
    assert held.layers_per_stage is not None
    assert free.layers_per_stage is not None
    assert held.layers_per_stage[1] < free.layers_per_stage[1]
    assert cast.estimate(held).fits
    one_more = (held.layers_per_stage[0] - 1, held.layers_per_stage[1] + 1)
    assert not cast.estimate(changed(layout, layers_per_stage=one_more)).fits
    assert balanced_layout(Forecaster.of(two_generations(memory="1.6 GiB")), layout) is None


def test_a_plan_of_a_mixed_cluster_offers_the_balance_and_is_that_of_a_full_search() -> None:
    given_scenario = two_generations()
    found = plan(given_scenario)
    best = found.layouts[0].layout
    assert best.layers_per_stage is not None
    assert any("mixed" in line for line in found.assumptions)
    assert found.searched.estimated < found.searched.fitting
    cast = Forecaster.of(given_scenario)
    spread = {str(changed(e.layout, layers_per_stage=None)): e.layout for e in found.layouts}
    even = [changed(layout, layers_per_stage=None) for layout in spread.values()]
    assert min(map(cast.step_time, even)) > found.layouts[0].step_time
    assert found.run is not None
    assert found.run.cost == pytest.approx(found.run.accelerator_hours * (2.0 + 1.0) / 2)


def test_no_bound_is_above_the_estimate_of_a_mixed_cluster() -> None:
    given_scenario = two_generations(3.0)
    cast = Forecaster.of(given_scenario)
    for layout in (
        ParallelLayout(tp=8, dp=2),
        ParallelLayout(tp=8, pp=2),
        ParallelLayout(tp=4, pp=2, dp=2, vpp=3, zero_stage=1),
        ParallelLayout(tp=4, pp=4, layers_per_stage=(4, 4, 2, 2)),
        ParallelLayout(tp=4, pp=4, schedule=ScheduleName.ZERO_BUBBLE_H1),
        ParallelLayout(tp=4, pp=2, dp=2, vpp=2, schedule=ScheduleName.ZERO_BUBBLE_V),
    ):
        seconds = cast.step_time(layout)
        for bound in (quick_bound(cast, layout), step_time_bound(cast, layout)):
            assert 0.4 * seconds < bound <= seconds


def test_a_stack_that_cannot_be_told_layers_is_not_offered_them() -> None:
    found = scenario(gpt(12, 2048), profile=slower(1.0), stack="torchtitan")
    assert not found.stack.custom_partition
    mixed = two_generations().model_copy(update={"stack": found.stack})
    assert balanced_layout(Forecaster.of(mixed), ParallelLayout(tp=8, pp=2)) is None
