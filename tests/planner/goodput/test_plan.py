"""Run plans of a small job: totals, choices, what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from planner.goodput import RunPlan, run_plan, run_plan_table
from planner.goodput.rates import Hazard
from planner.goodput.replicate import World, check_count, quantiles
from planner.goodput.shape import Cause, Level, RunShape
from simulator.api import Forecaster
from simulator.errors import InfeasibleError, InputError
from simulator.files import parse_record
from simulator.parallel.layout import ParallelLayout
from simulator.results import Breakdown, Category
from simulator.run_file import RunFile
from simulator.scenario import Scenario
from tests.planner.scenarios import gpt, machine, scenario

LAYOUT = ParallelLayout(tp=8, dp=4)
FAILING: dict[str, Any] = {
    "checkpoint": {"write_bandwidth": "1 GB/s"},
    "failures": {"rates": ["opt-175b"], "repair": "6 h"},
}


@dataclass(frozen=True, kw_only=True)
class RoundStep:
    """A step of 10 s."""

    step_time: float = 10.0
    high: float = 10.0

    @property
    def breakdown(self) -> Breakdown:
        return Breakdown(stage=0, seconds={Category.GEMM: 10.0})


def given_run(table: dict[str, Any], *, price: float | None = None) -> Scenario:
    """Return four nodes that train as `table` says."""
    asked = scenario(gpt(), nodes=4, profile=machine(price=price))
    run = parse_record(RunFile, {"steps": 86_400, "replications": 20, **table}, "run")
    return asked.model_copy(update={"file": asked.file.model_copy(update={"run": run})})


def planned(table: dict[str, Any], high: float = 10.0, price: float | None = None) -> RunPlan:
    """Return the run plan of a table at a step of 10 s."""
    return run_plan(given_run(table, price=price), LAYOUT, RoundStep(high=high))


def test_without_failures_the_run_is_its_steps() -> None:
    plan = planned({"price": 2.0})
    # 86,400 steps of 10 s are 10 days of 32 accelerators.
    assert (plan.ideal.days, plan.days.p10, plan.days.p90, plan.cost) == (
        10.0,
        10.0,
        10.0,
        plan.cost,
    )
    assert plan.cost is not None
    assert (plan.accelerator_hours.p50, plan.cost.p50) == (7680.0, 15360.0)


def test_the_interval_of_the_step_becomes_that_of_the_days() -> None:
    plan = planned({"replications": 1000}, high=11.0)
    found = (plan.days.p10, plan.days.p50, plan.days.p90)
    assert found == pytest.approx((10.0 / 1.1, 10.0, 11.0), rel=0.015)


def test_every_run_is_kept_and_quantiles_are_theirs() -> None:
    plan = planned({**FAILING, "price": 2.0})
    assert plan.cost is not None
    assert plan.samples.cost == tuple(2.0 * hours for hours in plan.samples.accelerator_hours)
    for column, found in (
        (plan.samples.days, plan.days),
        (plan.samples.goodput, plan.goodput),
        (plan.samples.cost, plan.cost),
    ):
        assert len(column) == 20
        assert found == quantiles(column)


def test_spares_are_paid_and_draw_idle_power() -> None:
    alone = planned(FAILING)
    spared = planned({**FAILING, "failures": {**FAILING["failures"], "spares": 4}})
    hours = spared.days.p50 * 24 * 64
    assert spared.accelerator_hours.p50 == pytest.approx(hours)
    assert spared.shares[Cause.WAITING] < alone.shares[Cause.WAITING]


def test_shares_add_up_to_the_whole_run() -> None:
    assert sum(planned(FAILING).shares.values()) == pytest.approx(1.0)


def test_energy_is_power_times_time_with_cooling_and_grid() -> None:
    plan = planned({"energy": {"pue": 1.5, "grid_intensity": 100}})
    assert plan.energy.site is not None
    assert plan.energy.co2 is not None
    joules = 4 * plan.energy.node.training * 864_000
    assert (plan.energy.machines.p50, plan.energy.site.p50) == pytest.approx((joules, 1.5 * joules))
    assert plan.energy.co2.p50 == pytest.approx(1.5 * joules / 3.6e6 * 0.1)


def test_a_seed_gives_the_same_plan_and_another_seed_another() -> None:
    first, again, other = (run_plan_table(planned({**FAILING, "seed": seed})) for seed in (1, 1, 2))
    assert first == again != other


def test_the_best_interval_is_at_least_as_good_as_youngs_and_dalys() -> None:
    failures = planned(FAILING).failures
    assert failures is not None
    best, *others = failures.intervals
    assert all(best.goodput >= each.goodput for each in others)


def test_the_searched_interval_is_the_one_that_is_used() -> None:
    plan = planned(FAILING)
    assert plan.failures is not None
    assert plan.checkpoint is not None
    assert (plan.checkpoint.interval_steps, plan.checkpoint.chosen) == (
        plan.failures.intervals[0].steps,
        "search",
    )


def test_the_best_spares_pay_the_fewest_node_days() -> None:
    failures = planned(FAILING).failures
    assert failures is not None
    least = min(failures.spare_choices, key=lambda each: each.node_days)
    assert failures.best_spares == least.nodes


def test_an_interval_in_time_is_rounded_up_to_whole_steps() -> None:
    plan = planned({"checkpoint": {"write_bandwidth": "1 GB/s", "interval": "61 s", "keep": 3}})
    assert plan.checkpoint is not None
    assert (plan.checkpoint.interval_steps, plan.checkpoint.count) == (7, 3)


def test_checkpoints_that_all_stay_are_told_with_what_they_take() -> None:
    # 86,400 steps with one every 2,160 are 40; the model's checkpoint is `size` bytes.
    table = {"write_bandwidth": "1 GB/s", "interval_steps": 2160}
    plan = planned({"checkpoint": table})
    assert plan.checkpoint is not None
    size = plan.checkpoint.size.total
    assert plan.warnings[0] == (
        f"all 40 checkpoints are kept, {40 * size / 1e12:.3g} TB in storage by the end; "
        f"run.checkpoint.keep = 10: {10 * size / 1e12:.3g} TB"
    )
    limited = planned({"checkpoint": {**table, "keep": 40}})
    assert not any("are kept" in warning for warning in limited.warnings)


def test_checkpoints_before_planned_stops_are_among_those_in_storage() -> None:
    # 10 days of steps with a stop every 3 days of training make three of them.
    plan = planned(
        {
            "checkpoint": {"write_bandwidth": "1000 GB/s", "interval_steps": 43_200},
            "maintenance": {"every": "3 days", "lasts": "1 h"},
        }
    )
    assert plan.checkpoint is not None
    assert plan.checkpoint.count == 2 + 3


def test_a_smaller_cluster_trains_the_same_batch_more_slowly() -> None:
    failures = planned({**FAILING, "failures": {**FAILING["failures"], "elastic": True}}).failures
    assert failures is not None
    # 32 sequences: of 4 replicas, 2 or 1 are the smaller numbers that divide them.
    sizes = [(level.nodes, level.slowdown > 1.0) for level in failures.levels]
    assert sizes == [(4, False), (2, True), (1, True)]


def test_loaders_and_storage_that_cannot_keep_up_are_told() -> None:
    data = {"read_bandwidth": "1 kB/s", "workers_per_node": 1, "tokens_per_worker": 10.0}
    warned = " ".join(planned({"data": data}).warnings)
    assert "run.data.read_bandwidth" in warned
    assert "run.data.workers_per_node" in warned


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            {
                "checkpoint": {"write_bandwidth": "1000 GB/s"},
                "failures": {"rates": ["opt-175b"], "restart": "3 h"},
                "maintenance": {"every": "3 h", "lasts": "1 h"},
            },
            "run.maintenance.every: starting again takes 1.08e+04 s, so that nothing is trained",
        ),
        ({"steps": None}, "run.steps: a run needs to know how much is trained"),
        ({"failures": {"rates": ["rsc"]}}, "run.failures.rates.0: is neither shipped"),
        ({"failures": {"rates": ["opt-175b"]}}, "run.checkpoint.write_bandwidth: must say"),
        (
            {
                "checkpoint": {
                    "write_bandwidth": "1 MB/s",
                    "mode": "async",
                    "interval_steps": 3,
                }
            },
            "run.checkpoint.interval_steps: a checkpoint is in storage only after",
        ),
        ({"energy": {"power_model": "mine"}}, "run.energy.power_model: is neither shipped"),
    ],
)
def test_what_is_missing_or_wrong_is_said_at_its_key(table: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        planned(table)
    assert said in str(error.value)


def test_all_problems_come_together() -> None:
    with pytest.raises(InputError) as error:
        planned({"steps": None, "failures": {"rates": ["rsc", "opt-175"]}})
    assert {problem.key for problem in error.value.problems} == {
        "run.steps",
        "run.failures.rates.0",
        "run.failures.rates.1",
        "run.checkpoint.write_bandwidth",
    }


def test_a_run_that_makes_no_progress_is_refused() -> None:
    table = {**FAILING, "failures": {**FAILING["failures"], "restart": "500 days"}}
    with pytest.raises(InfeasibleError, match="over 50 times as long as without"):
        planned(table)


def test_more_failures_than_are_simulated_are_refused_with_how_many_would_do() -> None:
    hazards = [
        World(number=n, hazard=Hazard(per_second=1.0, loses_node=0), pace=1.0) for n in (0, 1)
    ]
    run = RunShape(work=1e8, interval=1.0, stall=0.0, levels=(Level(nodes=1),))
    with pytest.raises(InputError, match=r"at most 5e\+06 failures.*\n.*a shorter run"):
        check_count(run, hazards, "x.toml")


def test_a_given_forecaster_changes_nothing() -> None:
    asked = given_run(FAILING)
    both = (run_plan(asked, LAYOUT, RoundStep(), each) for each in (None, Forecaster.of(asked)))
    assert next(both) == next(both)
