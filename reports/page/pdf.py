"""A page as PDF, printed by the Chromium or Chrome that is installed: no second layout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from simulator.errors import InputError, Problem

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names under which it is looked for on the PATH."""
VARIABLE = "TRAINCAST_BROWSER"
"""Names the browser where it is not on the PATH."""
_SECONDS = 120
_LAST_WORDS = 300
"""Characters of what a browser said last that are shown."""
_DRAWING_MS = 20_000
"""Virtual milliseconds that the page has for drawing its figures."""
_ARGUMENTS = (
    "--headless",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--no-pdf-header-footer",
    f"--virtual-time-budget={_DRAWING_MS}",
)


def pdf_of(page: str, browser: str | None = None) -> bytes:
    """Return an HTML page as PDF, with all of its figures.

    Raises:
        InputError: there is no browser, it ended with an error, or it took over two minutes.
    """
    program = browser_path(browser)
    with tempfile.TemporaryDirectory(prefix="traincast-print-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        source, target = folder / "report.html", folder / "report.pdf"
        source.write_text(page, encoding="utf-8")
        command = [
            program,
            *_ARGUMENTS,
            # The sandbox of Chromium does not start as root, in containers say.
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={target}",
            f"{source.as_uri()}#print",
        ]
        said = _run(command)
        if not target.is_file() or not target.stat().st_size:
            raise InputError(_no_pdf(program, said))
        return target.read_bytes()


def _no_pdf(program: str, said: str) -> Problem:
    """Return what is wrong where a browser ended without a PDF, with its last words, if any."""
    last = "".join(said.strip().splitlines()[-1:])[:_LAST_WORDS]
    rule = (
        f"the browser wrote no PDF: {last}" if last else "the browser wrote no PDF, and no reason"
    )
    fix = "the path of Chromium or Chrome, or a page: -o report.html"
    return Problem(key="--browser", found=program, rule=rule, fix=fix)


def browser_path(given: str | None) -> str:
    """Return the browser to print with: the one given, that of `VARIABLE`, or one on the PATH."""
    wanted = given or os.environ.get(VARIABLE)
    if wanted is not None:
        found = shutil.which(wanted)
        if found is None:
            rule = "is no program that can be run"
            fix = "the path of Chromium or Chrome"
            raise InputError(Problem(key="--browser", found=wanted, rule=rule, fix=fix))
        return found
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise InputError(
            Problem(
                key="--out",
                rule="PDF is printed by Chromium or Chrome, and none is on the PATH",
                fix=f"install one, name it with --browser or {VARIABLE}, or write .html",
            )
        )
    return found


def _run(command: list[str]) -> str:
    """Run a browser to its end and return what it said; all that it started ends with it."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            _, said = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            rule = f"the browser took over {_SECONDS} s to print"
            fix = "a page: -o report.html"
            raise InputError(
                Problem(key="--browser", found=command[0], rule=rule, fix=fix)
            ) from None
        finally:
            _end(process)
    return said


def _end(process: subprocess.Popen[str]) -> None:
    """End a browser and its helpers, which are the process group that it leads."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
