"""A real headless Chromium for tests of pages, and a marker for tests that need one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = (
    "--no-sandbox",  # its own sandbox does not start where tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE_S, _BETWEEN_MS = 60.0, 20.0
_LOCAL = ("file:", "data:", "blob:", "about:")


def browser_path() -> str | None:
    """Return the executable of Chromium or Chrome; None where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(
    browser_path() is None or find_spec("playwright") is None,
    reason="needs Chromium (Debian, Ubuntu: apt-get install chromium) and the package playwright",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """An open page, with what went wrong in it and what it fetched."""

    page: Page
    errors: list[str] = field(default_factory=list)
    """Console errors, warnings, uncaught exceptions, and refusals by the page's policy."""
    requests: list[str] = field(default_factory=list)
    """Addresses asked for beyond the page's own file."""


@contextmanager
def launched() -> Iterator[Browser]:
    """Give a browser that is closed afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=list(_ARGUMENTS), timeout=60_000
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visited(
    browser: Browser,
    page: Path | str,
    *,
    width: int = 1280,
    height: int = 900,
    scheme: Literal["light", "dark"] = "light",
    language: str = "en-US",
) -> Iterator[Visit]:
    """Open a file, or an address, in a fresh context; everything that it reports is kept."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale=language
    )
    context.set_default_timeout(30_000)
    visit = Visit(page=context.new_page())
    visit.page.on("console", lambda message: _keep_message(visit, message))
    visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
    visit.page.on("request", lambda request: _keep_request(visit, request))
    visit.page.goto(page.resolve().as_uri() if isinstance(page, Path) else page)
    try:
        yield visit
    finally:
        context.close()


def until(page: Page, condition: str) -> None:
    """Wait until a JavaScript expression is true.

    It is asked from here: a page whose policy forbids `eval` cannot ask itself again and again.

    Raises:
        TimeoutError: it is not after half a minute.
    """
    end = monotonic() + _PATIENCE_S
    while not page.evaluate(condition):
        if monotonic() > end:
            raise TimeoutError(condition)
        page.wait_for_timeout(_BETWEEN_MS)


def busy_seconds(page: Page) -> Callable[[], float]:
    """Return what tells the processor seconds that the main thread of a page has worked so far.

    Tests share their machine: the time on the clock would be that of all of them.
    """
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    return read


def _keep_message(visit: Visit, message: ConsoleMessage) -> None:
    if message.type in {"error", "warning"}:
        visit.errors.append(message.text)


def _keep_request(visit: Visit, request: Request) -> None:
    if not request.url.startswith(_LOCAL):
        visit.requests.append(request.url)
