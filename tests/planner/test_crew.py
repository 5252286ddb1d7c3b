"""Work that processes share: the same answers, whatever becomes of the helpers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.crew import hands, in_shares

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
_SOON = 20.0
"""Seconds that a loaded machine may take to end a process."""


def test_results_stand_in_the_order_of_the_shares_each_from_its_own_process() -> None:
    found = in_shares(lambda share: (share, os.getpid()), ["a", "b", "c"])
    assert [share for share, _ in found] == ["a", "b", "c"]
    assert len({process for _, process in found}) == len(found)
    assert found[0][1] == os.getpid()


def test_no_shares_and_one_share_need_no_helper() -> None:
    assert in_shares(lambda share: (share, os.getpid()), []) == []
    assert in_shares(lambda share: (share, os.getpid()), [7]) == [(7, os.getpid())]


def test_the_share_of_a_helper_that_dies_is_done_here() -> None:
    here = os.getpid()

    def work(share: int) -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return 10 * share

    assert in_shares(work, [1, 2]) == [10, 20]


def test_an_error_in_a_helper_is_raised_as_if_there_were_none(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def work(share: int) -> int:
        if share:
            raise ValueError(f"share {share}")
        return share

    with pytest.raises(ValueError, match="share 1"):
        in_shares(work, [0, 1])
    assert capfd.readouterr() == ("", "")


def test_where_no_process_can_be_forked_all_is_done_here() -> None:
    script = """
import os
from planner.crew import in_shares
def refuse():
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = refuse
print(in_shares(lambda share: (share, os.getppid()), [1, 2]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (f"[(1, {os.getpid()}), (2, {os.getpid()})]", "")


def test_a_helper_has_no_helpers() -> None:
    assert in_shares(lambda _: hands(), [0, 1])[1] == 1


def test_a_helper_ends_when_its_process_is_killed(tmp_path: Path) -> None:
    named = tmp_path / "helper"
    script = f"""
import os, time
from collections.abc import Callable
from pathlib import Path
from planner.crew import in_shares
def work(share):
    if share:
        Path({str(named)!r}).write_text(str(os.getpid()))
        time.sleep(0.5)
        return bytes(2**22)  # more than a pipe holds
    time.sleep(600)
in_shares(work, [0, 1])
"""
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        _until(named.exists)
        helper = int(named.read_text() or "0")
        process.kill()
    try:
        _until(lambda: not _runs(helper))
    finally:
        if _runs(helper):
            os.kill(helper, signal.SIGKILL)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _SOON
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def _runs(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
