"""Settings shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.browser import launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium, started once for all tests that open pages."""
    with launched() as started:
        yield started
