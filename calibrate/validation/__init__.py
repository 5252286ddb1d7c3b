"""Comparison of forecasts with measurements: steps, collectives and kernels."""

from calibrate.validation.records import Group, RowResult, Status, Validation
from calibrate.validation.run import to_json, validate_rows
from calibrate.validation.table import render

__all__ = ["Group", "RowResult", "Status", "Validation", "render", "to_json", "validate_rows"]
