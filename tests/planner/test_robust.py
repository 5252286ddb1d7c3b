"""Layouts under draws of uncertain constants: what cancels, what decides, what is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import plan
from planner.error_sources import error_sources, error_table, layout_deviation
from planner.robust import OWN, REPEATS, SHARED, layout_parts
from simulator.aims import LayoutChoice, UncertaintyFile
from simulator.errors import InputError
from simulator.hardware.constants import FitRecord, Origin
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from simulator.workload.stack import load_stack
from tests.planner.scenarios import gpt, machine, scenario

_NAMES = [each.name for each in error_table().error]


def drawn(
    *,
    only: str = "",
    deviation: float = 0.3,
    own: float = 1e-12,
    seed: int = 0,
    choice: LayoutChoice = LayoutChoice.CENTRE,
) -> Scenario:
    """Return two contenders: tp 1 and tp 8, where one source of error is off by 30 %."""
    spread = {name: deviation if name == only else 0.0 for name in _NAMES}
    stack = load_stack("megatron-core")
    fit = stack.fit.model_copy(update={"layout_spread": own})
    search = SearchFile(
        tp=(1, 8),
        pp=(1,),
        micro_batch_size=(1,),
        zero_stage=(1,),
        recompute=(stack.recompute[0],),
        sequence_parallel=(True,),
        choice=choice,
        top=2,
        simulate=2,
    )
    found = scenario(
        gpt(4, 2048),
        job=TrainingJob(global_batch_size=8, seq_length=1024),
        stack=stack.model_copy(update={"fit": fit}),
        profile=machine(),
        search=search,
    )
    uncertainty = UncertaintyFile(draws=8, seed=seed, spread=spread)
    file = found.file.model_copy(update={"uncertainty": uncertainty})
    return found.model_copy(update={"file": file})


def chances(given: Scenario) -> dict[int, Any]:
    """Return the chance of each layout of a plan by its tp."""
    return {entry.layout.tp: entry.chance for entry in plan(given).layouts}


def test_nothing_is_drawn_unless_it_is_asked_for() -> None:
    given = drawn()
    plain = given.model_copy(update={"file": given.file.model_copy(update={"uncertainty": None})})
    answer = plan(plain)
    assert answer.drawn is None
    assert all(entry.chance is None for entry in answer.layouts)


def test_what_all_layouts_share_decides_nothing() -> None:
    best, other = plan(drawn()).layouts
    assert best.chance is not None
    assert other.chance is not None
    assert (best.chance.best, best.chance.regret, other.chance.best) == (1.0, 0.0, 0.0)
    assert other.chance.regret == pytest.approx(other.step_time / best.step_time - 1, rel=1e-9)


def test_the_interval_of_the_first_layout_is_that_of_its_forecast() -> None:
    best = plan(drawn()).layouts[0]
    assert best.chance is not None
    assert (best.chance.low, best.chance.high) == pytest.approx((best.low, best.high), rel=0.02)


def test_slower_or_faster_links_move_the_layouts_that_need_them() -> None:
    plain, other = (plan(drawn(only=only)).layouts for only in ("", "scale-up bandwidth"))
    assert [entry.layout.tp for entry in plain] == [1, 8]
    shifted = [each[1].chance.regret for each in (plain, other) if each[1].chance]
    assert shifted[1] != pytest.approx(shifted[0], rel=1e-3)


def test_a_spread_that_leads_out_of_the_range_of_a_constant_is_refused() -> None:
    with pytest.raises(InputError, match="a draw takes a constant out of its range"):
        plan(drawn(only="attention backward", deviation=1.0))


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    first, again, other = (chances(drawn(own=0.2, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_large_error_of_each_layout_makes_a_toss_of_a_small_gap() -> None:
    found = chances(drawn(own=0.9))
    assert sum(chance.best for chance in found.values()) == pytest.approx(1.0)
    assert all(0.2 < chance.best < 0.8 for chance in found.values())


def test_a_robust_choice_is_in_order_of_regret() -> None:
    answer = plan(drawn(own=0.9, choice=LayoutChoice.ROBUST))
    regrets = [entry.chance.regret for entry in answer.layouts if entry.chance]
    assert regrets == sorted(regrets)
    assert [entry.rank for entry in answer.layouts] == [1, 2]
    assert answer.reason.startswith("least expected regret of the best 2 by step time")


def test_parts_of_a_layout_tell_kernels_pipeline_and_data_apart() -> None:
    one, other = ParallelLayout(tp=2, pp=2, dp=2), ParallelLayout(tp=2, pp=2, vpp=2, dp=2)
    same = [a == b for a, b in zip(layout_parts(one), layout_parts(other), strict=True)]
    assert same == [True, False, True]


def test_deviations_come_from_fits_where_there_are_any() -> None:
    given = drawn().model_copy(
        update={"file": drawn().file.model_copy(update={"uncertainty": None})}
    )
    fit = FitRecord(
        what="attention", origin=Origin.FITTED, source="made up", held_out_median_error=0.05
    )
    constants = given.profile.constants.model_copy(update={"fit": (fit,)})
    profile = given.profile.model_copy(update={"constants": constants})
    table = error_table()
    fitted, nominal = (
        {each.name: each for each in error_sources(each, table)}["attention"]
        for each in (given.model_copy(update={"profile": profile}), given)
    )
    # A median of 5 % off is that of a normal of log(1.05) / 0.6745.
    assert fitted.deviation == pytest.approx(0.0723, abs=1e-4)
    assert fitted.origin == "attention: median 5.0% off on held-out points"
    assert nominal.origin.startswith("assumed.")


def test_a_stack_without_measured_layouts_says_what_is_assumed() -> None:
    given = scenario(gpt(4, 512), stack="torchtitan")
    deviation, origin = layout_deviation(given, error_table())
    assert deviation == pytest.approx(np.log1p(0.64 * 0.34) / 1.2816, rel=1e-3)
    assert origin.startswith("assumed: 0.64 of the stack's spread")


def test_a_source_that_is_not_there_is_named() -> None:
    given = drawn()
    uncertainty = UncertaintyFile(spread={"matrix product": 0.1})
    file = given.file.model_copy(update={"uncertainty": uncertainty})
    with pytest.raises(InputError, match="did you mean 'matrix products'"):
        plan(given.model_copy(update={"file": file}))


def test_what_was_drawn_is_told_with_its_sources() -> None:
    told = plan(drawn(only="attention")).drawn
    assert told is not None
    assert (told.draws, told.compared, REPEATS) == (8, 2, 16)
    assert told.origins.keys() == told.sources.keys() > {OWN, SHARED, "attention"}
    assert replace(told, seed=1) != told
