"""Where published measurements lie, and a marker for tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder() -> Path:
    """Return the folder of published measurements; `TRAINCAST_DATA` names another one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("TRAINCAST_DATA", beside))


needs_data = pytest.mark.skipif(
    not data_folder().is_dir(),
    reason="needs the published measurements: set TRAINCAST_DATA to their folder",
)
