"""Forecasts distributed training runs: the public interface.

Names load when they are first used, so that `import traincast` costs nothing.

>>> import traincast
>>> result = traincast.simulate_step("examples/llama3.1-8b-dgx-h100.toml")
>>> result.world_size, result.fits
(8, True)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrate.validation import Validation
    from planner import Plan
    from planner.goodput import RunPlan
    from simulator.errors import InfeasibleError, InputError, TraincastError
    from simulator.hardware.profile import load_profile
    from simulator.parallel.layout import ParallelLayout
    from simulator.results import StepResult
    from simulator.scenario import Scenario, load_scenario
    from simulator.workload.job import TrainingJob
    from simulator.workload.load import load_model
    from simulator.workload.stack import load_stack
    from traincast.forecasts import (
        estimate_step,
        explain,
        plan,
        plan_run,
        simulate_step,
        trace_step,
        validate,
    )
    from traincast.frames import breakdown_frame, memory_frame, plan_frame, span_frame
    from traincast.sweeps import compare, sweep

_HOME = {
    "InfeasibleError": "simulator.errors",
    "InputError": "simulator.errors",
    "ParallelLayout": "simulator.parallel.layout",
    "Plan": "planner",
    "RunPlan": "planner.goodput",
    "Scenario": "simulator.scenario",
    "StepResult": "simulator.results",
    "TraincastError": "simulator.errors",
    "TrainingJob": "simulator.workload.job",
    "Validation": "calibrate.validation",
    "breakdown_frame": "traincast.frames",
    "compare": "traincast.sweeps",
    "estimate_step": "traincast.forecasts",
    "explain": "traincast.forecasts",
    "load_model": "simulator.workload.load",
    "load_profile": "simulator.hardware.profile",
    "load_scenario": "simulator.scenario",
    "load_stack": "simulator.workload.stack",
    "memory_frame": "traincast.frames",
    "plan": "traincast.forecasts",
    "plan_frame": "traincast.frames",
    "plan_run": "traincast.forecasts",
    "simulate_step": "traincast.forecasts",
    "span_frame": "traincast.frames",
    "sweep": "traincast.sweeps",
    "trace_step": "traincast.forecasts",
    "validate": "traincast.forecasts",
}

__all__ = [
    "InfeasibleError",
    "InputError",
    "ParallelLayout",
    "Plan",
    "RunPlan",
    "Scenario",
    "StepResult",
    "TraincastError",
    "TrainingJob",
    "Validation",
    "breakdown_frame",
    "compare",
    "estimate_step",
    "explain",
    "load_model",
    "load_profile",
    "load_scenario",
    "load_stack",
    "memory_frame",
    "plan",
    "plan_frame",
    "plan_run",
    "simulate_step",
    "span_frame",
    "sweep",
    "trace_step",
    "validate",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'traincast' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
