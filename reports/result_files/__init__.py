"""What reports are made of: the files that verbs write with `--json`, read as typed records."""

from reports.result_files.calibration import CalibrationFile
from reports.result_files.explain import ExplainFile
from reports.result_files.goodput import GoodputFile
from reports.result_files.loading import Result, ResultFile, load_results
from reports.result_files.plan import PlanFile
from reports.result_files.step import StepFile
from reports.result_files.sweep import CompareFile, SweepFile
from reports.result_files.trace_comparison import TraceComparisonFile
from reports.result_files.validation import ValidationFile
from reports.result_kinds import FORMAT, ResultKind, result_of

__all__ = [
    "FORMAT",
    "CalibrationFile",
    "CompareFile",
    "ExplainFile",
    "GoodputFile",
    "PlanFile",
    "Result",
    "ResultFile",
    "ResultKind",
    "StepFile",
    "SweepFile",
    "TraceComparisonFile",
    "ValidationFile",
    "load_results",
    "result_of",
]
