"""The class of work of a kernel or an operator, in the forecast's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

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


def kernel_label(name: str, args: Mapping[str, Any], groups: Groups, *, in_optimizer: bool) -> str:
    """Return the class of a kernel; `in_optimizer` where an optimizer's step launched it."""
    kind = class_of(name)
    if kind == COLLECTIVE:
        return _group_label(args, groups)
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


def _group_label(args: Mapping[str, Any], groups: Groups) -> str:
    """Return what a collective is for, by the names of its process group."""
    keys = ("Process Group Description", "Process Group Name")
    names = [str(args[key]) for key in keys if args.get(key) not in (None, "", "undefined")]
    for name in names:
        if name in groups:
            return groups[name]
    for name in names:
        for kind, words in _GROUPS:
            if words.search(name.lower()):
                return kind
    if not names:
        return UNKNOWN_COMM
    size = args.get("Group size")
    return f"{GROUP_COMM}{names[0]}" + (f" of {size}" if size is not None else "")
