"""On a full disk a run ends with clear words, loses nothing and goes on when there is room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from calibrate.journal import read_journal
from calibrate.records import Record, Status
from tests.calibrate.test_kill import PLAN, ROOT

SCRIPT = """
mount -t tmpfs -o size=12k none "$1/disk" || exit 77
"$0" -m tests.calibrate.light_run "$1/disk/run" "$1/plan.toml" 2> "$1/errors"
echo $? > "$1/code"
cp "$1/disk/run/measured.jsonl" "$1/full.jsonl"
mount -o remount,size=1m "$1/disk"
"$0" -m tests.calibrate.light_run "$1/disk/run" "$1/plan.toml" || exit 1
cp "$1/disk/run/measured.jsonl" "$1/all.jsonl"
"""
NO_MOUNT = 77


def records(path: Path) -> list[Record]:
    return [line for line in read_journal(path).lines if isinstance(line, Record)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mount namespaces")
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a disk of its own needs the right to mount")
    (tmp_path / "disk").mkdir()
    (tmp_path / "plan.toml").write_text(PLAN)
    command = ["unshare", "--mount", "sh", "-c", SCRIPT, sys.executable, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode == NO_MOUNT or "unshare" in done.stderr:
        pytest.skip(f"no disk of its own: {done.stderr.strip()}")
    kept = records(tmp_path / "full.jsonl")
    words = f"the disk is full; nothing is lost: {len(kept)} points are on disk"
    assert (
        (tmp_path / "code").read_text().strip(),
        words in (tmp_path / "errors").read_text(),
    ) == (
        "2",
        True,
    )
    final = records(tmp_path / "all.jsonl")
    assert (done.returncode, final[: len(kept)], {r.status for r in final}) == (
        0,
        kept,
        {Status.OK},
    )
    assert len(final) > len(kept) > 0
