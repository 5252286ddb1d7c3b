"""The class of work of a kernel or an operator, in the forecast's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from calibrate.import_kineto_groups import (
    DESCRIPTION,
    NAME,
    RANKS,
    Axes,
    Group,
    purpose,
    ranks_of,
)
from calibrate.import_kineto_kernels import (
    ATTENTION,
    COLLECTIVE,
    COPY,
    GEMM,
    MEMORY_BOUND,
    class_of,
    is_host_copy,
    is_optimizer,
)
from simulator.results import Category

OTHER = "other"
"""Work whose name tells no class."""
UNKNOWN_COMM = "communication, group not recorded"
GROUP_COMM = "communication, group "
"""Followed by the name of a group whose purpose its name does not tell."""
Groups: TypeAlias = Mapping[str, Category]
"""What process groups are for, by their name or description."""

GROUP_KINDS = {
    "tensor": Category.TENSOR_COMM,
    "context": Category.CONTEXT_COMM,
    "expert": Category.EXPERT_COMM,
    "pipeline": Category.PIPELINE_COMM,
    "data": Category.DATA_COMM,
}
_UNNAMED = (None, "", "undefined")
_EDGE = r"(?:^|[^a-z])"
_END = r"(?:$|[^a-z])"
_GROUPS = tuple(
    (kind, re.compile(words))
    for kind, words in (
        (
            Category.DATA_COMM,
            rf"data_?parallel|fsdp|hsdp|ddp|{_EDGE}(?:dp|edp|replicate|shard){_END}",
        ),
        (Category.EXPERT_COMM, rf"expert|{_EDGE}ep{_END}"),
        (Category.PIPELINE_COMM, rf"pipeline|{_EDGE}pp{_END}"),
        (Category.CONTEXT_COMM, rf"context|ulysses|{_EDGE}(?:cp|sp){_END}"),
        (Category.TENSOR_COMM, rf"tensor|{_EDGE}tp{_END}"),
    )
)
"""Words of Megatron-LM (TENSOR_MODEL_PARALLEL_GROUP) and torch's device meshes (mesh_dp_shard). The
first counts: groups of data parallelism are named after the axes that they span (DATA_PARALLEL_
GROUP_WITH_CP, EXPERT_DATA_PARALLEL_GROUP)."""
_KERNELS = {
    ATTENTION: Category.ATTENTION,
    GEMM: Category.GEMM,
    MEMORY_BOUND: Category.MEMORY_BOUND,
}
_OPERATORS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (Category.OPTIMIZER, re.compile(r"^optimizer\.")),
    (Category.ATTENTION, re.compile(r"attention|flash")),
    (UNKNOWN_COMM, re.compile(r"^(?:gloo|nccl|mpi|ucc):|c10d")),
    (
        Category.GEMM,
        re.compile(
            r"^(?:aten|mkl\w*)::_?(?:addmm|addmv|mm|mv|bmm|baddbmm|linear|matmul|convolution|conv\dd|mkldnn_linear|thnn_conv2d)"
        ),
    ),
    (Category.MEMORY_BOUND, re.compile(r"^aten::")),
)


class Told(Enum):
    """What tells the class of a collective."""

    NAME = auto()
    """That of its group, or what the user says of it."""
    RANKS = auto()
    """Which ranks its group has, in the layout of the forecast."""
    ONLY = auto()
    """The forecast communicates for one thing only."""
    NOTHING = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Purposes:
    """What is known of process groups beside what kernels say."""

    said: Groups = field(default_factory=dict)
    """By the user."""
    described: Mapping[str, Group] = field(default_factory=dict)
    """By the trace, by name."""
    axes: Axes | None = None
    """Of the forecast's layout; None where it is not known, or of another number of ranks."""
    only: Category | None = None
    """The one thing that the forecast communicates for."""


def kernel_label(
    name: str, args: Mapping[str, Any], purposes: Purposes, *, in_optimizer: bool
) -> str:
    """Return the class of a kernel; `in_optimizer` where an optimizer's step launched it."""
    kind = class_of(name)
    if kind == COLLECTIVE:
        return group_label(args, purposes)[0]
    if kind == COPY and is_host_copy(name):
        return Category.HOST_COMM
    if in_optimizer or is_optimizer(name):
        return Category.OPTIMIZER
    return Category.MEMORY_BOUND if kind == COPY else _KERNELS.get(kind, OTHER)


def operator_label(name: str, around: str | None) -> str:
    """Return the class of an operator of the CPU inside one of the class `around`.

    >>> operator_label("aten::addmm", None), operator_label("aten::mul", "optimizer")
    (<Category.GEMM: 'gemm'>, 'optimizer')
    """
    if around in (Category.OPTIMIZER, Category.ATTENTION, UNKNOWN_COMM):
        return around
    lower = name.lower()
    found = next((kind for kind, words in _OPERATORS if words.search(lower)), None)
    return found or around or OTHER


def group_label(args: Mapping[str, Any], purposes: Purposes) -> tuple[str, Told]:
    """Return what a collective is for, and what tells it; `args` are those of its kernel."""
    names = [str(args[key]) for key in (DESCRIPTION, NAME) if args.get(key) not in _UNNAMED]
    known = purposes.described.get(str(args.get(NAME, "")))
    if known is not None and known.description and known.description not in names:
        names.insert(0, known.description)
    for name in names:
        if name in purposes.said:
            return purposes.said[name], Told.NAME
    for name in names:
        for kind, words in _GROUPS:
            if words.search(name.lower()):
                return kind, Told.NAME
    ranks = ranks_of(args.get(RANKS)) or (known.ranks if known is not None else ())
    by_ranks = purpose(ranks, purposes.axes) if purposes.axes is not None else None
    if by_ranks is not None:
        return by_ranks, Told.RANKS
    if purposes.only is not None:
        return purposes.only, Told.ONLY
    if not names:
        return UNKNOWN_COMM, Told.NOTHING
    size = args.get("Group size")
    return f"{GROUP_COMM}{names[0]}" + (f" of {size}" if size is not None else ""), Told.NOTHING
