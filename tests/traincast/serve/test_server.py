"""A real server, started as a user does: it answers its own page on this machine alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import needs_browser, visited

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("dash")
_SECONDS = 60
_TP = """[id='{"key":"layout.tp","type":"field"}']"""


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Give the port of a page that saves to `folder`."""
    command = [sys.executable, "-m", "traincast", "serve", "--no-browser", "--port", "0"]
    # Where tests run in the background of a script, Ctrl-C is ignored, and would be in the server.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*command, "--folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[0]
        yield int(address.rstrip("/").rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    with served(folder) as given:
        yield given


def request(
    port: int, method: str = "GET", path: str = "/", body: str = "", **headers: str
) -> tuple[int, str, str]:
    """Return status, content security policy and text of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        policy = answer.headers["Content-Security-Policy"]
        return answer.status, policy, answer.read().decode()
    finally:
        connection.close()


def test_the_page_is_answered_under_a_policy_that_fetches_nothing(port: int) -> None:
    status, policy, _ = request(port)
    assert status == 200
    assert policy.startswith("default-src 'self'; script-src 'self' 'sha256-")
    assert "http" not in policy


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "", "evil.example:{port}"])
def test_another_host_is_refused(host: str, port: int) -> None:
    assert request(port, Host=host.format(port=port))[0] == 403


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://127.0.0.1:1"])
def test_work_for_a_page_of_another_origin_is_refused(
    origin: str | None, port: int, folder: Path
) -> None:
    headers = {"Content-Type": "application/json", **({"Origin": origin} if origin else {})}
    assert request(port, "POST", "/_dash-update-component", saving("a.toml"), **headers)[0] == 403
    assert list(folder.iterdir()) == []


def test_a_request_too_large_is_refused(port: int) -> None:
    own = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"}
    status, _, _ = request(port, "POST", "/_dash-update-component", "x" * 3_000_000, **own)
    assert status == 413


def test_the_page_itself_saves_but_not_outside_its_folder(port: int, folder: Path) -> None:
    own = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"}
    _, _, refused = request(port, "POST", "/_dash-update-component", saving("../a.toml"), **own)
    assert "must stay in the folder" in refused
    _, _, done = request(port, "POST", "/_dash-update-component", saving("a.toml"), **own)
    assert "saved as a.toml" in done
    assert (folder / "a.toml").read_text() == 'model = "x"\n'
    assert not (folder.parent / "a.toml").exists()


def test_a_port_in_use_is_said_with_a_free_one(port: int) -> None:
    command = [sys.executable, "-m", "traincast", "serve", "--no-browser", "--port", str(port)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert f"--port: is in use by another program (found {port})\n    fix: --port " in found.stderr


@needs_browser
def test_a_change_in_the_form_changes_the_numbers(browser: Browser, port: int) -> None:
    address = f"http://127.0.0.1:{port}/"
    with visited(browser, address) as visit:
        page = visit.page
        before = step_time(page, "")
        page.wait_for_selector("#map .heatmaplayer image")
        page.fill(_TP, "4")
        assert step_time(page, before) != before
        assert "tp = 4\n" in page.input_value("#toml")
        page.fill("#toml", page.input_value("#toml").replace("tp = 4", "tp = 3"))
        page.wait_for_selector("#problems .problem")
        assert "tp" in page.inner_text("#problems")
        assert page.input_value(_TP) == "3"
        page.click("#take")
        page.wait_for_selector("#problems .problem", state="detached")
        page.wait_for_function(f"""() => document.querySelector(`{_TP}`).value === "8" """)
    assert visit.errors == []
    assert [each for each in visit.requests if not each.startswith(address)] == []


def step_time(page: Page, before: str) -> str:
    """Return the step time shown once it is another than `before`."""
    shown = "document.querySelector('.card .value')?.innerText ?? ''"
    page.wait_for_function(f"before => !['', before].includes({shown})", arg=before)
    return page.inner_text(".card .value")


def saving(name: str) -> str:
    """Return what the page sends to save a scenario under a name."""
    values = {"toml": 'model = "x"\n', "name": name, "replace": []}
    state = [{"id": each, "property": "value", "value": value} for each, value in values.items()]
    return json.dumps(
        {
            "output": "saved.children",
            "outputs": {"id": "saved", "property": "children"},
            "inputs": [{"id": "save", "property": "n_clicks", "value": 1}],
            "changedPropIds": ["save.n_clicks"],
            "state": state,
        }
    )
