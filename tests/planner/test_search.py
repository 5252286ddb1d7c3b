"""The search: exactly what a full evaluation finds, in the same order every time."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import plan, to_json, to_rows
from planner.division import fits_of
from planner.feasible import divide_by_memory, layout_key
from planner.search import fastest
from planner.space import enumerate_layouts
from simulator.api import Forecaster
from simulator.hardware.profile import Profile
from simulator.parallel.checks import Reason
from simulator.parallel.layout import Recompute, ScheduleName
from simulator.scenario import Scenario, SearchFile, load_scenario
from simulator.schedule.registry import SCHEDULES
from simulator.units import GIB
from simulator.workload.job import TrainingJob
from simulator.workload.stack import stack_names
from tests.planner.scenarios import gpt, gpt3_175b, machine, mixtral, scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_USUAL = (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
Entry = TypeVar("Entry")


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return small scenarios on any shipped stack, with tight and ample memory."""
    layers, hidden_size = draw(st.sampled_from((4, 6, 8))), draw(st.sampled_from((256, 1024)))
    return scenario(
        gpt(layers, hidden_size, tie_word_embeddings=draw(st.booleans())),
        job=TrainingJob(global_batch_size=draw(st.sampled_from((8, 12, 16))), seq_length=1024),
        stack=draw(st.sampled_from(stack_names())),
        profile=draw(machines()),
        search=SearchFile(
            schedule=once(draw(st.sampled_from(list(SCHEDULES))), *_USUAL),
            micro_batch_size=(1, 2),
            top=draw(st.integers(1, 8)),
        ),
    )


@st.composite
def modern_scenarios(draw: st.DrawFn) -> Scenario:
    """Return small mixtures of experts with every axis of experts, sequences and host memory."""
    recompute = draw(st.sampled_from(Recompute))
    return scenario(
        mixtral(draw(st.sampled_from((4, 5))), draw(st.sampled_from((256, 1024)))),
        job=TrainingJob(global_batch_size=draw(st.sampled_from((8, 12))), seq_length=1024),
        profile=draw(machines()),
        search=SearchFile(
            tp=(1, draw(st.sampled_from((2, 4)))),
            cp=(1, draw(st.sampled_from((2, 4)))),
            pp=(1, 2),
            schedule=(draw(st.sampled_from(list(SCHEDULES))),),
            micro_batch_size=(1, 2),
            zero_stage=(1,),
            sequence_parallel=(True,),
            recompute=(recompute,),
            recompute_num_layers=("all", 1) if recompute is Recompute.FULL else ("all",),
            offload_layers=once(0, draw(st.integers(0, 2))),
            optimizer_offload=once(0.0, draw(st.sampled_from((0.0, 0.5, 1.0)))),
            top=draw(st.integers(1, 8)),
        ),
    )


def once(*drawn: Entry) -> tuple[Entry, ...]:
    """Return the entries of a list of the search table, each once."""
    return tuple(dict.fromkeys(drawn))


@st.composite
def machines(draw: st.DrawFn) -> Profile:
    """Return machines whose memory or network may be scarce."""
    return machine(
        memory=f"{draw(st.sampled_from((2.0, 2.5, 4.0, 80.0)))} GiB",
        nic_gbps=draw(st.sampled_from((10, 200))),
    )


def with_search(given_scenario: Scenario, **changes: Any) -> Scenario:
    """Return a scenario with some search keys replaced."""
    search = given_scenario.file.search.model_copy(update=changes)
    file = given_scenario.file.model_copy(update={"search": search})
    return given_scenario.model_copy(update={"file": file})


def small() -> Scenario:
    """Return 8 accelerators, a model of 8 layers and a few hundred layouts."""
    return scenario(gpt(8, 1024), search=SearchFile(top=3))


@given(scenarios() | modern_scenarios())
def test_search_finds_what_a_full_evaluation_finds(given_scenario: Scenario) -> None:
    cast = Forecaster.of(given_scenario)
    layouts, count = enumerate_layouts(given_scenario).layouts, given_scenario.file.search.top
    found = fastest(cast, fits_of(cast, layouts), count)
    everything = sorted((cast.step_time(layout), layout_key(layout)) for layout in layouts)
    assert [(best.seconds, best.key) for best in found.best] == everything[:count]


@given(scenarios() | modern_scenarios())
def test_memory_divides_layouts_as_testing_each_does(given_scenario: Scenario) -> None:
    cast = Forecaster.of(given_scenario)
    limit = 0.94 * given_scenario.profile.accelerator.memory
    space = enumerate_layouts(given_scenario)
    layouts = space.layouts
    peaks = {layout: max(use.reserved for use in cast.memory(layout)) for layout in layouts}
    found = divide_by_memory(cast, space, limit, keep=1)
    assert set(found.fitting) == {layout for layout, peak in peaks.items() if peak <= limit}
    assert found.too_large == len(layouts) - len(found.fitting)
    least = [] if found.fitting else sorted(peaks.values())[:1]
    assert [peaks[layout] for layout in found.nearest] == least
    assert divide_by_memory(cast, space, limit, keep=1, processes=2) == found


def test_few_layouts_are_estimated() -> None:
    searched = plan(small()).searched
    assert (searched.legal, searched.fitting, searched.estimated, searched.simulated) == (
        600,
        600,
        3,
        3,
    )


def test_a_plan_is_the_same_every_time() -> None:
    assert to_json(plan(small())) == to_json(plan(small()))


def test_layouts_are_ranked_by_step_time() -> None:
    answer = plan(small())
    times = [entry.step_time for entry in answer.layouts]
    assert times == sorted(times)
    assert [entry.rank for entry in answer.layouts] == [1, 2, 3]


@given(scenarios() | modern_scenarios(), st.integers(1, 4))
def test_the_first_layout_is_the_one_that_simulating_all_would_put_first(
    given_scenario: Scenario, least: int
) -> None:
    first = [
        plan(with_search(given_scenario, simulate=count)).layouts[:1] for count in (least, 1000)
    ]
    assert first[0] == first[1]
    assert all(entry.simulated for entry in first[0])


def test_contention_makes_no_step_faster() -> None:
    assert all(e.step_time >= e.estimate * (1 - 1e-9) for e in plan(small()).layouts)


def test_progress_ends_at_its_total_and_never_goes_back() -> None:
    told: list[tuple[int, int]] = []
    answer = plan(small(), progress=lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {answer.searched.legal + len(answer.layouts)}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]


def test_where_nothing_fits_the_nearest_layouts_say_what_is_over() -> None:
    answer = plan(scenario(gpt(8, 1024), profile=machine(memory="2 GiB")))
    assert not answer.found
    assert answer.rejected[Reason.MEMORY] == answer.searched.legal
    nearest = answer.nearest[0]
    assert nearest.peak_memory == max(stage.peak for stage in nearest.stages)
    assert nearest.peak_memory > answer.memory_limit == 0.94 * 2 * GIB
    assert max(stage.over for stage in nearest.stages) == nearest.peak_memory - answer.memory_limit


def test_json_has_finite_numbers_and_the_documented_keys() -> None:
    table = json.loads(to_json(plan(small())))
    assert all(math.isfinite(number) for number in numbers(table))
    first = table["layouts"][0]
    assert first["layout"].keys() >= {
        "tp",
        "pp",
        "dp",
        "cp",
        "ep",
        "vpp",
        "micro_batch_size",
        "schedule",
        "zero_stage",
        "recompute",
        "sequence_parallel",
    }
    assert first.keys() >= {"rank", "step_time_s", "low", "high", "tokens_per_s", "mfu"}
    assert table["searched"]["considered"] == table["searched"]["legal"] + sum(
        count for reason, count in table["rejected"].items() if reason != Reason.MEMORY
    )


def test_rows_are_flat_and_name_the_same_columns() -> None:
    rows = to_rows(plan(small()))
    assert len({tuple(row) for row in rows}) == 1
    assert all(isinstance(value, int | float | str) for row in rows for value in row.values())


def test_gpt3_on_1024_accelerators_needs_few_exact_estimates() -> None:
    job = TrainingJob(global_batch_size=1536, seq_length=2048)
    given_scenario = scenario(gpt3_175b(), nodes=128, job=job, search=SearchFile(top=1))
    searched = plan(given_scenario).searched
    assert (searched.considered, searched.legal, searched.estimated) == (10998, 5724, 1)


@pytest.mark.parametrize(
    ("example", "counts", "priced"),
    [
        ("deepseek-v3-2048-h100", (152, 84, 29, 10), 115),
        ("mixtral-8x22b-plan", (5216, 5216, 1132, 10), 271),
    ],
)
def test_examples_of_mixtures_take_this_much_work(
    example: str, counts: tuple[int, ...], priced: int
) -> None:
    given_scenario = load_scenario(EXAMPLES / f"{example}.toml")
    cast, search = Forecaster.of(given_scenario), given_scenario.file.search
    limit = search.memory_fraction * given_scenario.profile.accelerator.memory
    space = enumerate_layouts(given_scenario)
    fits = divide_by_memory(cast, space, limit, keep=1, processes=1).fits
    found = fastest(cast, fits, search.top)
    sizes = (space.considered, len(space.layouts), len(fits), found.estimated)
    assert (sizes, cast.costs.blocks_priced) == (counts, priced)


def numbers(value: Any) -> list[float]:
    """Return all numbers in a JSON value."""
    if isinstance(value, dict):
        return [n for inner in value.values() for n in numbers(inner)]
    if isinstance(value, list):
        return [n for inner in value for n in numbers(inner)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []
