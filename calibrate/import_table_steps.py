"""Tables of measured training steps: one run a row, in the columns of `traincast validate`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from calibrate.import_options import Companion, Imported, ImportOptions
from calibrate.import_records import Measured
from calibrate.import_table_rows import ReadRow, TableRow, imported_rows, read_rows
from calibrate.points import StepPoint
from calibrate.records import Status
from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.jobs import job_of
from calibrate.validation.layouts import layout_of, with_stages
from calibrate.validation.reported import (
    failed,
    measured_step_time,
    refuse_suspect,
    step_time_of_flops,
)
from calibrate.validation.shapes import model_of
from calibrate.validation.software import Stacks
from simulator.parallel.checks import check_layout
from simulator.workload.load import load_model, model_names
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack, load_stack, stack_names

_NEEDED = frozenset(("layers", "hidden", "seq_len"))
_TIMES = frozenset(("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu_reported"))
_MEMORY = re.compile(r"oom|out of memory", re.I)
_DIGITS = 8
_LONGEST_SLUG = 60
_TOML = ".toml"
MODELS, STACKS = "models", "stacks"
"""Folders beside the calibration files for models and stacks that are not shipped."""


def is_steps(columns: frozenset[str]) -> bool:
    """Return whether a header is that of a table of training steps."""
    return columns >= _NEEDED and bool(columns & _TIMES)


def read_steps(rows: Sequence[TableRow], path: Path, options: ImportOptions) -> Imported:
    """Return the rows as calibration lines, and the models that they name beside them.

    Raises:
        InputError: not one row could be read.
    """
    files: dict[str, Companion] = {}
    stacks = Stacks(None)

    def read(row: Row, line: int) -> ReadRow:
        refuse_suspect(row)
        point, spec, stack = _point(row, stacks)
        named: dict[str, Companion] = {point.model: spec, point.job.stack: stack}
        files.update({name: each for name, each in named.items() if name.endswith(_TOML)})
        machine = options.accelerator or row.text("hardware") or None
        measured = _measured(row, line, point, spec)
        each = row.integer("gpus_per_node") if row.known("gpus_per_node") else None
        assumed = tuple(row.assumed)
        return ReadRow(accelerator=machine, measured=measured, per_node=each, notes=assumed)

    found, problems = read_rows(rows, read, path)
    kind = "table of training steps"
    return imported_rows(found, problems, path, kind, sorted(files.items()))


def _point(row: Row, stacks: Stacks) -> tuple[StepPoint, ModelSpec, Stack]:
    """Return what a row ran; all that its cells do not say is assumed as validation does."""
    gpus, spec, stack = row.integer("gpus"), model_of(row), stacks.of_step(row)
    layout = layout_of(row, stack, gpus)
    job = job_of(row, stack, layout)
    layout = with_stages(row, layout, spec.num_hidden_layers)
    stack = stacks.for_layers(row, stack, layout, spec.num_hidden_layers)
    check_layout(spec, job, stack, layout)
    job = job.model_copy(update={"stack": _stack_name(stack)})
    return StepPoint(model=_model_name(spec), job=job, layout=layout), spec, stack


def _measured(row: Row, line: int, point: StepPoint, spec: ModelSpec) -> Measured:
    if failed(row):
        status = Status.OUT_OF_MEMORY if _MEMORY.search(row.text("status")) else Status.FAILED
        said = row.text("status")
        return Measured(point=point, seconds=None, line=line, status=status, reason=said)
    seconds = measured_step_time(row) or step_time_of_flops(row, spec)
    if seconds is None:
        raise SkippedRowError("step_time_s: not given, nor a rate that it follows from")
    return Measured(point=point, seconds=seconds, line=line)


def _model_name(spec: ModelSpec) -> str:
    """Return the preset that a model is, or the path of the file that it will be written to."""
    text = spec.model_copy(update={"name": "model"}).model_dump_json()
    return _presets().get(text) or _path(MODELS, spec.name, text)


def _stack_name(stack: Stack) -> str:
    """Return the shipped stack that a row used, or the path of the changed one."""
    if stack.name in stack_names() and stack == load_stack(stack.name):
        return stack.name
    return _path(STACKS, stack.name, stack.model_dump_json())


def _path(folder: str, name: str, text: str) -> str:
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:_LONGEST_SLUG] or "unnamed"
    return f"{folder}/{slug}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}{_TOML}"


@cache
def _presets() -> dict[str, str]:
    specs = {name: load_model(name).spec for name in model_names()}
    return {
        spec.model_copy(update={"name": "model"}).model_dump_json(): name
        for name, spec in specs.items()
    }
