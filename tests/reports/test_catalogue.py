"""The list of machines: how far each is calibrated."""

from __future__ import annotations

import pytest

from reports.catalogue import profile_row
from simulator.hardware.profile import load_profile


@pytest.mark.parametrize(
    ("profile", "calibration"),
    [
        ("dgx-a100-80gb", "fitted"),
        ("dgx-h100", "partly fitted"),  # memory-bound kernels are assumed
        ("gb200-nvl72", "partly fitted"),  # collectives alone
        ("mi300x-node", "nominal"),
        ("tpu-v5p-pod", "nominal"),
    ],
)
def test_a_row_says_how_far_the_blocks_of_every_run_were_fitted(
    profile: str, calibration: str
) -> None:
    assert profile_row(load_profile(profile))["calibration"] == calibration
