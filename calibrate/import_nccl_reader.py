"""The lines of one process of a benchmark, read into runs of samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from calibrate.import_nccl_columns import PLAIN, Columns, columns_of, unit_of
from calibrate.import_nccl_facts import begins_run, facts_of_line
from calibrate.import_nccl_lines import Line
from calibrate.import_nccl_table import is_broken_row, is_row, samples_of
from calibrate.import_samples import Facts, Printed, Run, Sample, printed
from calibrate.import_words import wire_dtype
from simulator.units import GB

_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*(\S+)")
_OUT_OF_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d+)\s+FAILED")
_FAILURE = re.compile(
    r"Test (?:NCCL|CUDA) failure|test timeout|Test failure|NCCL WARN.*(?:error|fail)|out of memory"
    r"|Segmentation fault|MPI_ABORT|Aborted|DUE TO TIME LIMIT|srun: error",
    re.I,
)
_NO_BYTES = "left out: rows of 0 bytes"
_SHOWN = 120
_LONGEST_COMMAND = 8192


def runs_of(lines: Sequence[Line]) -> tuple[Run, ...]:
    """Return the runs of one process, in order."""
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.finish()


def headless_row(line: Line) -> tuple[Sample, ...] | str:
    """Return the samples of a row without a header, by the columns of recent versions."""
    found = samples_of(PLAIN, line.text, line.number)
    if isinstance(found, str) or not found or wire_dtype(found[0].dtype) is None:
        return "stands in no table"
    return found


class _Reader:
    """Reads the lines of one process; made for one log."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._facts = Facts()
        self._later: Facts | None = None
        self._columns: Columns | None = None
        self._samples: list[Sample] = []
        self._busbws: list[float] = []
        self._average: Printed | None = None
        self._notes: list[tuple[int, str]] = []
        self._places: list[bool] = []
        self._begun = ""
        self._read_rows = False

    def read(self, line: Line) -> None:
        """Take in one line."""
        text = line.text
        columns = columns_of(text)
        if columns is not None:
            self._head(columns)
        elif (unit := unit_of(text)) is not None and self._columns is not None:
            self._columns = replace(self._columns, unit=unit)
        elif is_row(text):
            self._row(line)
        elif self._columns is not None and is_broken_row(text):
            self._note(line, f"left out: a broken row ({text.strip()[:_SHOWN]})")
        else:
            self._word(line)

    def finish(self) -> tuple[Run, ...]:
        """Return all runs."""
        self._close()
        if self._notes or not self._runs:
            self._append()
        return tuple(self._runs)

    def _head(self, columns: Columns) -> None:
        self._begin()
        named = len(self._places) == len(columns.blocks)
        self._columns = replace(columns, places=tuple(self._places)) if named else columns
        self._places = []

    def _row(self, line: Line) -> None:
        if self._columns is None:
            found = headless_row(line)
            if isinstance(found, str):
                return
            self._begin()
            self._note(line, "no header stands above: read by the columns of nccl-tests 2.13")
            self._columns = PLAIN
        found = samples_of(self._columns, line.text, line.number)
        if isinstance(found, str):
            self._note(line, f"left out: the row {found}")
            return
        if found and self._samples and found[0].bytes < self._samples[-1].bytes:
            self._close()
        self._busbws += [sample.busbw.value for sample in found if sample.busbw is not None]
        self._read_rows = True
        if found and not found[0].bytes and all(words != _NO_BYTES for _, words in self._notes):
            self._note(line, _NO_BYTES)
        self._samples += [sample for sample in found if sample.bytes > 0]
        if len(found) < len(self._columns.blocks):
            self._note(line, "a part of the row has no time")

    def _word(self, line: Line) -> None:
        """Take in a line that is neither a header nor a row."""
        text = self._begun + line.text
        self._begun = ""
        if text.endswith("\\"):
            self._begun = text[:_LONGEST_COMMAND].removesuffix("\\")
            return
        if (average := _AVERAGE.search(text)) is not None:
            number = printed(average[1])
            self._average = number and number.times(GB)
            return
        if _OUT_OF_BOUNDS.search(text) or _FAILURE.search(text):
            self._note(line, text.strip("# ")[:_SHOWN])
            return
        if "out-of-place" in text or "in-place" in text:
            named = re.findall(r"out-of-place|in-place", text)
            self._places = [place == "in-place" for place in named]
        if self._samples and begins_run(text):
            self._close()
            self._columns = None
        if not self._read_rows:
            self._facts = facts_of_line(self._facts, text)
            return
        fresh = Facts(accelerator=self._facts.accelerator, library=self._facts.library)
        later = facts_of_line(self._later or fresh, text)
        self._later = None if later == fresh else later

    def _begin(self) -> None:
        """End the run and take what was said since its table for the next."""
        self._close()
        later = self._later
        if later is not None and replace(later, environment=(), library=None, isolated=False) != (
            Facts(accelerator=self._facts.accelerator)
        ):
            self._facts = later
        self._later, self._read_rows = None, False

    def _close(self) -> None:
        """End the run, if there is one; the table may go on."""
        if self._samples:
            if self._columns is not None and self._columns.unit is None:
                first = self._samples[0].line
                self._notes.append((first, "no unit of time is given: taken as microseconds"))
            self._append()

    def _append(self) -> None:
        self._runs.append(
            Run(
                facts=self._facts,
                samples=tuple(self._samples),
                average=self._average,
                busbws=tuple(self._busbws),
                cpu_time=self._columns is not None and self._columns.cpu_time,
                notes=tuple(self._notes),
            )
        )
        self._samples, self._busbws, self._notes = [], [], []
        self._average = None

    def _note(self, line: Line, words: str) -> None:
        self._notes.append((line.number, words))
