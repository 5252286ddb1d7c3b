"""Whole runs: how long, at what price, with what failures; by simulation from event to event."""

from planner.goodput.answer import ForecastStep
from planner.goodput.plan import run_plan
from planner.goodput.result import RunPlan, run_plan_table

__all__ = ["ForecastStep", "RunPlan", "run_plan", "run_plan_table"]
