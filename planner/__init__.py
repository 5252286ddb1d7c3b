"""Searches layouts and plans whole runs: feasibility, time, money, energy, failures."""

from planner.planning import plan
from planner.result import Plan, PlannedLayout
from planner.tables import to_json, to_rows

__all__ = ["Plan", "PlannedLayout", "plan", "to_json", "to_rows"]
