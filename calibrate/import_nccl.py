"""Logs of nccl-tests and rccl-tests, of every version, as runs of samples."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calibrate.import_nccl_columns import columns_of
from calibrate.import_nccl_facts import begins_run, facts_of_line
from calibrate.import_nccl_lines import Line, clean_lines
from calibrate.import_nccl_reader import headless_row, runs_of
from calibrate.import_nccl_table import is_row
from calibrate.import_samples import Facts, Run

_AVERAGE = "Avg bus bandwidth"
_HEADER = re.compile(r"(?:size|bytes)\b.*\btime", re.I)
_DELIMITERS = ",;"


def read_log(text: str) -> tuple[Run, ...]:
    """Return the runs of a log, in order; each process's lines are read for themselves."""
    lines = list(clean_lines(_spaced(text)))
    labels = list(dict.fromkeys(line.label for line in lines if line.label))
    tabled = [label for label in labels if _has_table(lines, label)]
    if len(tabled) <= 1:
        wanted = ("", *(tabled or labels))
        return runs_of([line for line in lines if line.label in wanted])
    shared = [line for line in lines if not line.label and not is_row(line.text)]
    streams = [[*shared, *(line for line in lines if line.label == each)] for each in tabled]
    if _has_table(lines, ""):
        streams.append([line for line in lines if not line.label])
    ordered = (sorted(stream, key=lambda line: line.number) for stream in streams)
    return tuple(run for stream in ordered for run in runs_of(stream))


def looks_like_log(text: str) -> bool:
    """Return whether a text is what nccl-tests or rccl-tests print."""
    return (
        "NCCL INFO" in text
        or _is_spelt_out(text)
        or any(
            begins_run(line.text)
            or columns_of(line.text) is not None
            or facts_of_line(Facts(), line.text).devices
            or _AVERAGE in line.text
            or (is_row(line.text) and isinstance(headless_row(line), tuple))
            for line in clean_lines(text)
        )
    )


def _spaced(text: str) -> str:
    """Return a log with spaces between cells where someone has put commas or the like."""
    if not _is_spelt_out(text):
        return text
    return text.translate(dict.fromkeys(map(ord, _DELIMITERS), " "))


def _is_spelt_out(text: str) -> bool:
    """Return whether only the commas between its columns keep a line from being a header."""
    header = next((line for line in text.split("\n") if _HEADER.search(line)), "")
    plain = header.translate(dict.fromkeys(map(ord, _DELIMITERS), " "))
    return plain != header and columns_of(header) is None and columns_of(plain) is not None


def _has_table(lines: Sequence[Line], label: str) -> bool:
    return any(line.label == label and is_row(line.text) for line in lines)
