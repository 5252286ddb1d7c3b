"""A small model on hosts of one CPU core each, with any measured software."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.api import Forecaster
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile, load_profile
from simulator.hardware.software_constants import SoftwareConstants
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.stack import load_stack

_FOLDER = Path(__file__).parents[1] / "emulation"
RANKS = 4
LAYERS = 4
LAYER_PARAMETERS = 12 * 256**2 + 13 * 256
"""Four square matrices and two of 4 x 256 columns; biases 4 + 4 + 1, two norms of 2 x 256."""
PARAMETERS = LAYERS * LAYER_PARAMETERS + 2 * 2048 * 256 + 2 * 256
"""Embedding, final norm and head too."""


def with_software(software: SoftwareConstants) -> Profile:
    """Return the profile with measurements of its software."""
    profile = load_profile(str(_FOLDER / "emulated-cpu.toml"))
    constants = profile.constants.model_copy(update={"software": software})
    return profile.model_copy(update={"constants": constants})


def forecaster(profile: Profile, stack: str = "pytorch-gloo", **job_keys: Any) -> Forecaster:
    """Return forecasts of four sequences on four hosts; `job_keys` are others of the job."""
    job = TrainingJob(
        global_batch_size=4, seq_length=128, precision=Dtype.FP32, stack=stack, **job_keys
    )
    model = load_model(str(_FOLDER / "tiny.toml")).spec
    return Forecaster(model, job, load_stack(stack), profile, RANKS)
