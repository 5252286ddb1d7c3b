"""How sources of error move a step: bounded by their own size, and together the whole of it."""

from __future__ import annotations

from math import exp, log

import pytest

from planner import plan
from planner.error_sources import INTERVAL_END, error_table
from planner.robust import OWN
from planner.sensitivity import Sensitivity, sensitivities
from simulator.aims import UncertaintyFile
from simulator.scenario import SearchFile
from simulator.workload.job import TrainingJob
from tests.planner.scenarios import gpt, scenario


def moved(deviation: float) -> tuple[float, dict[str, Sensitivity]]:
    """Return a step and what moves it where every source is off by the same deviation."""
    spread = {each.name: deviation for each in error_table().error}
    given = scenario(
        gpt(4, 2048),
        job=TrainingJob(global_batch_size=8, seq_length=1024),
        search=SearchFile(tp=(8,), pp=(1,), micro_batch_size=(1,), top=1, simulate=1),
    )
    uncertainty = UncertaintyFile(draws=8, spread=spread)
    file = given.file.model_copy(update={"uncertainty": uncertainty})
    given = given.model_copy(update={"file": file})
    found = plan(given)
    each = sensitivities(given, found.layouts[0], found.drawn)
    assert [one.width for one in each] == sorted((one.width for one in each), reverse=True)
    return found.layouts[0].step_time, {one.source: one for one in each}


def test_no_source_moves_a_step_by_more_than_itself() -> None:
    step, found = moved(0.2)
    most = exp(INTERVAL_END * 0.2) * (1 + 1e-9)
    for source in (each.name for each in error_table().error if each.name in found):
        assert step / most <= found[source].low <= step * (1 + 1e-12)
        assert step * (1 - 1e-12) <= found[source].high <= step * most
    assert found["matrix products"].width > 0


def test_small_errors_of_all_sources_add_up_to_that_of_the_step() -> None:
    # If all constants of time grow by a factor the step does: its logarithmic derivatives add to 1.
    # That of the backward pass of attention is a factor on the forward pass, which is among them.
    step, found = moved(1e-4)
    names = {each.name for each in error_table().error} - {"attention backward"}
    whole = sum(log(one.high / step) for name, one in found.items() if name in names)
    # The rest is what no source covers, such as the start of split products.
    assert 0.95 < whole / (INTERVAL_END * 1e-4) <= 1.0


def test_the_error_of_a_layout_is_a_factor_on_its_step() -> None:
    step, found = moved(0.2)
    assert found[OWN].low * found[OWN].high == pytest.approx(step**2, rel=1e-12)
    assert found[OWN].high > step
