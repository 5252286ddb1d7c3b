"""From the software columns of a row to a stack, changed where the row contradicts it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.practices import (
    fuses_experts,
    is_mlperf,
    tensor_overlap,
)
from simulator.parallel.layout import ZERO_PARAMETERS, ParallelLayout
from simulator.workload.stack import Stack, load_stack, stack_names
from simulator.workload.stack_choices import AttentionKernel, PartitionRule

_FLASH_SINCE = 2024
"""From this year on Megatron-LM runs use flash attention and bf16."""
_YEAR = re.compile(r"\b(20[0-4]\d)\b")
_RELEASE = re.compile(r"\b(\d\d)\.(?:0[1-9]|1[0-2])\b")
"""NVIDIA's releases are named by year and month, such as 24.09."""
_NO_FLASH = re.compile(r"no flash|unfused|without flash", re.I)
_GRAPHS = re.compile(r"full|layer", re.I)
"""Whole iterations or layers are launched as one CUDA graph."""
_GRAPHED_ROUTER = re.compile(r"cuda graphs?\b", re.I)
"""Parts of a layer that are launched as graphs: attention, router, what precedes the exchange."""
_NO_OVERLAP = {
    "gradient_reduce": False,
    "parameter_gather": False,
    "pipeline_send": False,
    "tensor_backward": False,
    "tensor_fraction": 0.0,
    "expert_fraction": 0.0,
}
_GRADIENTS: tuple[tuple[str, Mapping[str, float]], ...] = (
    (r"fp32 accumulation", {"gradient_bytes": 4.0}),
    (r"fp32 reduce", {"reduce_bytes": 4.0}),
    (r"reduce[\w ]* in low precision", {"reduce_bytes": 2.0}),
    (r"(bf16|fp16) grad sync", {"gradient_bytes": 2.0, "reduce_bytes": 2.0}),
    (r"^fp32$", {"gradient_bytes": 4.0, "reduce_bytes": 4.0}),
    (r"^(bf16|fp16)$", {"gradient_bytes": 2.0, "reduce_bytes": 2.0}),
)
"""What the words of `grad_dtype` say; the first that is found counts."""


def is_fsdp(stack: Stack) -> bool:
    """Return whether a stack shards parameters and has no half-way stage."""
    return ZERO_PARAMETERS in stack.zero_stages and 1 not in stack.zero_stages


class Stacks:
    """Finds the stack of a row; keeps the stacks it has read or changed."""

    def __init__(self, override: str | None = None) -> None:
        self._override = load_stack(override) if override else None
        self._shipped = {name: load_stack(name) for name in stack_names()}
        self._changed: dict[tuple[object, ...], Stack] = {}

    @property
    def used_to_fit(self) -> dict[str, str]:
        """The rows that fitted a stack, with its name."""
        stacks = [*self._shipped.values(), *([self._override] if self._override else [])]
        return {row: stack.name for stack in stacks for row in stack.fit.rows}

    def of_step(self, row: Row) -> Stack:
        """Return the stack of a step row, with what the row says of attention, overlap, dtypes.

        Raises:
            SkippedRowError: no stack file describes the row's framework or its optimizer.
        """
        stack = self._override or self._by_framework(row)
        for part, update in (
            ("kernels", _kernels(row, stack)),
            ("overlap", _overlap(row, stack)),
            ("numerics", _numerics(row, stack)),
        ):
            if update:
                words = ", ".join(f"{key} = {value}" for key, value in update.items())
                row.assume(f"{stack.name} with {words}")
                stack = self._with(stack, part, update)
        return stack

    def for_layers(self, row: Row, stack: Stack, layout: ParallelLayout, layers: int) -> Stack:
        """Return `stack`, counting embedding and head as layers where only that divides evenly."""
        stages = layout.virtual_stages
        even = stack.partition is PartitionRule.EVEN and layout.layers_per_stage is None
        if not even or layers % stages == 0 or (layers + 2) % stages:
            return stack
        row.assume("embedding and head count as a layer each when layers are spread over stages")
        key = (id(stack), "partition")
        if key not in self._changed:
            self._changed[key] = stack.model_copy(
                update={"partition": PartitionRule.EMBEDDING_COUNTS}
            )
        return self._changed[key]

    def _by_framework(self, row: Row) -> Stack:
        framework = _framework(row)
        if not framework:
            raise SkippedRowError("framework: not given, and no stack was named")
        lengths = {
            name: max(
                (len(f) for f in stack.frameworks if framework.lower().startswith(f.lower())),
                default=0,
            )
            for name, stack in self._shipped.items()
        }
        longest = max(lengths.values())
        if not longest:
            raise SkippedRowError(f"framework: no stack file for {framework[:60]!r}")
        candidates = [self._shipped[name] for name, n in lengths.items() if n == longest]
        if len(candidates) == 1:
            return candidates[0]
        wanted = AttentionKernel.FLASH if _is_recent(row) else AttentionKernel.UNFUSED
        alike = [stack for stack in candidates if stack.kernels.attention is wanted]
        year = max(_years(row), default=0)
        chosen = max(
            alike or candidates, key=lambda s: (s.since <= year, s.since * (s.since <= year))
        )
        row.assume(f"stack {chosen.name}")
        return chosen

    def _with(self, stack: Stack, part: str, update: Mapping[str, object]) -> Stack:
        """Return one and the same object for the same change, so that it can key caches."""
        key = (id(stack), part, *update.items())
        if key not in self._changed:
            inner = getattr(stack, part).model_copy(update=dict(update))
            self._changed[key] = stack.model_copy(update={part: inner})
        return self._changed[key]


def _framework(row: Row) -> str:
    """Return the framework; submissions to MLPerf name releases only, their hardware the vendor."""
    framework, hardware = row.text("framework"), row.text("hardware")
    if is_mlperf(row) and hardware and "deepspeed" not in framework.lower():
        return f"MLPerf {hardware.split()[0]}, {framework}"
    return framework


def _is_recent(row: Row) -> bool:
    """Return whether a row of a framework with an old and a new stack belongs to the new one."""
    attention = row.text("attention_kernel")
    if attention:
        return not _NO_FLASH.search(attention)
    years = _years(row)
    if years:
        return max(years) >= _FLASH_SINCE
    return row.text("precision").lower().startswith("bf16")


def _years(row: Row) -> list[int]:
    columns = ("run_date", "framework", "framework_version", "source", "attention_kernel")
    text = " ".join(row.text(column) for column in columns)
    releases = [2000 + int(year) for year in _RELEASE.findall(row.text("framework"))]
    return [int(year) for year in _YEAR.findall(text)] + releases


def _kernels(row: Row, stack: Stack) -> dict[str, object]:
    text = row.text("attention_kernel")
    update: dict[str, object] = {}
    if "flash" in text.lower() or _NO_FLASH.search(text):
        flash = not _NO_FLASH.search(text)
        kernel = AttentionKernel.FLASH if flash else AttentionKernel.UNFUSED
        if kernel is not stack.kernels.attention:
            update["attention"] = kernel
    if _GRAPHS.match(row.text("cuda_graph")) and stack.kernels.cpu_launch:
        update |= {"cpu_launch": 0.0, "cpu_collective": 0.0, "cpu_experts": 0.0}
    elif _GRAPHED_ROUTER.search(row.text("overlap")):
        update["cpu_experts"] = 0.0
    if fuses_experts(row):
        update |= {"fused_clamp": True, "fused_expert_bias": True}
    return {key: v for key, v in update.items() if getattr(stack.kernels, key) != v}


def _overlap(row: Row, stack: Stack) -> dict[str, object]:
    """Return what a row hides less of than its stack can."""
    changes: dict[str, object] = {}
    if row.text("overlap").lower().startswith("none"):
        changes = dict(_NO_OVERLAP)
    changes |= tensor_overlap(row)
    return {key: v for key, v in changes.items() if getattr(stack.overlap, key) != v}


def _numerics(row: Row, stack: Stack) -> dict[str, object]:
    text = row.text("grad_dtype").lower()
    for words, update in _GRADIENTS:
        if re.search(words, text):
            return {key: v for key, v in update.items() if getattr(stack.numerics, key) != v}
    return {}
