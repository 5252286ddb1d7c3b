"""The journal keeps every record through cuts, zeros, full disks and second writers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit_input import read_measurements
from calibrate.journal import append_line, read_folder, read_journal, repair
from calibrate.points import Direction, HostCopyPoint
from calibrate.records import Fingerprint, Header, Record, Status
from simulator.errors import InputError
from simulator.folder_lock import lock_folder

HEADER = Header(
    traincast="0", made_by="test", at="2026-01-01T00:00:00+00:00", fingerprint=Fingerprint()
)


def record(size: int, **changes: object) -> Record:
    point = HostCopyPoint(direction=Direction.TO_HOST, bytes=size)
    return Record.model_validate({"point": point, "seconds": 1.0, **changes})


def journal(folder: Path, count: int = 3) -> Path:
    path = folder / "measured.jsonl"
    for line in (HEADER, *(record(size + 1) for size in range(count))):
        append_line(path, line)
    return path


def sizes(path: Path) -> list[float]:
    points = [line.point for line in read_journal(path).lines if isinstance(line, Record)]
    return [point.bytes for point in points if isinstance(point, HostCopyPoint)]


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    lines = read_journal(journal(tmp_path)).lines
    assert lines == (HEADER, record(1), record(2), record(3))


@given(cut=st.integers(min_value=1, max_value=10_000))
def test_a_file_cut_anywhere_loses_at_most_its_last_record(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = journal(tmp_path_factory.mktemp("cut"))
    data = path.read_bytes()
    left = data[: cut % len(data)]
    path.write_bytes(left)
    whole = max(0, left.count(b"\n") - 1)
    repair(path)
    append_line(path, record(9))
    kept = sizes(path)
    # A record that lacks only its newline is whole too.
    assert (kept[:whole], kept[-1], len(kept) - whole) in (
        ([1, 2, 3][:whole], 9, 1),
        ([1, 2, 3][:whole], 9, 2),
    )


def test_a_cut_last_line_is_kept_aside_with_a_message(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    (note,) = repair(path)
    aside = (tmp_path / "measured.jsonl.broken").read_bytes()
    assert (sizes(path), f"its {len(aside) - 1} bytes are kept" in note) == ([1, 2], True)


def test_a_reader_leaves_a_cut_line_out_and_the_file_alone(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    before = path.read_bytes()
    read = read_journal(path)
    assert (len(read.lines), read.notes, path.read_bytes() == before) == (
        3,
        (f"{path}: the last line is cut and was left out",),
        True,
    )


def test_zeros_after_a_power_loss_are_moved_out(tmp_path: Path) -> None:
    path = journal(tmp_path)
    with path.open("ab") as file:
        file.write(b"\0" * 4096)
    repair(path)
    assert (sizes(path), b"\0" in path.read_bytes()) == ([1, 2, 3], False)


def test_a_broken_line_in_the_middle_is_an_error_for_readers(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_text(path.read_text().replace('"bytes":2.0', '"bytes":2.0}}}'))
    with pytest.raises(InputError, match=r"measured.jsonl, line 3: every line must be a JSON"):
        read_journal(path)


def test_the_owner_moves_a_broken_line_in_the_middle_aside(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_text(path.read_text().replace('"bytes":2.0', '"bytes":2.0}}}'))
    (note,) = repair(path)
    assert (sizes(path), "line 3 was broken" in note) == ([1, 3], True)


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.FAILED, Status.NOISY])
def test_a_point_that_was_measured_again_counts_as_it_was_last(
    tmp_path: Path, status: Status
) -> None:
    path = tmp_path / "measured.jsonl"
    for line in (record(1, status=status), record(1)):
        append_line(path, line)
    read = read_journal(path)
    assert (read.lines, read.notes[0][-42:]) == (
        (record(1),),
        "1 lost or noisy points were measured again",
    )


def test_a_record_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    path = journal(tmp_path, 1)
    append_line(path, record(1))
    read = read_journal(path)
    assert (sizes(path), read.notes) == (
        [1],
        (f"{path}: 1 records are there twice and count once",),
    )


def test_a_lost_point_that_was_measured_later_counts_as_measured(tmp_path: Path) -> None:
    path = tmp_path / "measured.jsonl"
    append_line(path, record(1, seconds=None, status=Status.TIMEOUT))
    append_line(path, record(1))
    assert read_journal(path).lines == (record(1),)


def test_a_later_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_text(path.read_text().replace('"format":1', '"format":2'))
    with pytest.raises(InputError, match=r"format: .*reads format 1 \(found 2\)"):
        read_journal(path)


def test_a_line_of_another_program_is_an_error_and_is_not_moved(tmp_path: Path) -> None:
    path = journal(tmp_path)
    with path.open("a") as file:
        file.write('{"line":"record","colour":"red"}\n')
    assert repair(path) == ()
    with pytest.raises(InputError, match="line 5"):
        read_journal(path)


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    journal(tmp_path, 1)
    append_line(tmp_path / "a.jsonl", record(7))
    assert read_folder(tmp_path).lines == (record(7), HEADER, record(1))


def test_an_empty_folder_says_how_to_measure(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="traincast calibrate run"):
        read_folder(tmp_path)


def test_a_second_run_in_a_folder_is_told_who_has_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from simulator.folder_lock import lock_folder;"
        "lock_folder(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(InputError, match=f"found process {owner.pid} on "):
            lock_folder(tmp_path, sleep=lambda seconds: None)
        owner.kill()


def test_a_folder_is_free_after_its_owner_was_killed(tmp_path: Path) -> None:
    lock_folder(tmp_path).release()
    lock_folder(tmp_path).release()


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.calibrate.test_journal import record
from calibrate.journal import append_line
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, resource.RLIM_INFINITY))
try:
    append_line(path, record(4))
except OSError as error:
    print(error.errno, flush=True)
"""


def test_a_record_that_does_not_fit_on_the_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = journal(tmp_path)
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    # 27 is EFBIG, which a file-size limit raises where a full disk raises ENOSPC.
    assert (done.stdout.strip(), path.read_bytes() == before) == ("27", True)


@pytest.mark.parametrize(
    ("was", "becomes", "key"),
    [
        ('"by_rank":[]', '"by_rank":[1.0,-1.0]', "by_rank.1"),
        ('"seconds":null', '"seconds":1e-320', "seconds"),
        ('"format":1', '"format":-3', "format"),
    ],
)
def test_a_number_that_nothing_can_measure_is_named(
    tmp_path: Path, was: str, becomes: str, key: str
) -> None:
    lines = (
        Header(traincast="0.1.0", made_by="a test", at="", fingerprint=Fingerprint()),
        Record(point=HostCopyPoint(direction=Direction.TO_HOST, bytes=1.0)),
    )
    text = "".join(line.model_dump_json() + "\n" for line in lines)
    path = tmp_path / "measured.jsonl"
    path.write_text(text.replace(was, becomes))
    with pytest.raises(InputError, match=key):
        read_journal(path)


def test_a_file_without_a_header_is_told_at_the_fit(tmp_path: Path) -> None:
    append_line(tmp_path / "measured.jsonl", record(1))
    (note,) = read_measurements(tmp_path).notes
    assert "no header says which machine this is" in note
