"""Results as pandas data frames, for notebooks and spreadsheets."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from planner import Plan, to_rows
from simulator.results import StepResult


def plan_frame(plan: Plan) -> pd.DataFrame:
    """Return the layouts of a plan, best first, one a row."""
    return pd.DataFrame(to_rows(plan))


def memory_frame(result: StepResult) -> pd.DataFrame:
    """Return the bytes of one rank of each stage at its peak, by what they hold.

    >>> import traincast
    >>> result = traincast.estimate_step("examples/llama3.1-8b-dgx-h100.toml")
    >>> list(memory_frame(result).index)
    [0]
    """
    rows = [
        {**asdict(use), "allocated": use.allocated, "reserved": use.reserved}
        for use in result.memory
    ]
    return pd.DataFrame(rows).set_index("stage")


def breakdown_frame(result: StepResult) -> pd.DataFrame:
    """Return the busiest stage's seconds by category, largest first; they add up to the step.

    >>> import traincast
    >>> result = traincast.estimate_step("examples/llama3.1-8b-dgx-h100.toml")
    >>> breakdown_frame(result).index[0]
    'gemm'
    """
    seconds = {str(kind): value for kind, value in result.breakdown.seconds.items()}
    frame = pd.DataFrame({"seconds": pd.Series(seconds, dtype=float)})
    frame.index.name = "category"
    frame["share"] = frame["seconds"] / result.breakdown.total
    return frame.sort_values("seconds", ascending=False)


def span_frame(result: StepResult) -> pd.DataFrame:
    """Return the bars of a simulated step's timeline, one a row, by start; times in seconds."""
    columns = ["stage", "stream", "name", "start", "stop", "micro_batch", "chunk"]
    rows = [asdict(span) for span in result.spans]
    return pd.DataFrame(rows, columns=columns).sort_values("start", ignore_index=True)
