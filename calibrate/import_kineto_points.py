"""Matrix products and collectives in a trace as points."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrate.import_kineto_events import COLLECTIVE_NAME, Kernel, Trace, whole
from calibrate.import_kineto_kernels import GEMM, class_of, nccl_kernel
from calibrate.import_options import ImportOptions
from calibrate.import_records import Measured
from calibrate.import_words import collective_of, dtype_of, wire_dtype
from calibrate.points import CollectivePoint, GemmPoint, GroupKind
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.parallel.groups import Collective

_MATRICES = {
    "aten::mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::bmm": (0, 1),
    "aten::baddbmm": (1, 2),
}
"""Which of an operator's inputs are multiplied; aten::linear calls one of these."""
_TF32 = re.compile(r"tf32|s1688", re.I)
_FLAT, _STACKED = 2, 3
"""Dimensions of a matrix, and of a batch of them."""
_LARGEST = 2**31
_LIST = re.compile(r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]")


def products(trace: Trace, skipped: Counter[str]) -> Iterator[Measured]:
    """Yield the matrix products whose shapes are known, each with the time of its kernels."""
    kernels: dict[int, list[Kernel]] = {}
    for kernel in trace.kernels:
        operator = operator_of(trace, kernel)
        if operator in trace.products and class_of(kernel.name) == GEMM:
            kernels.setdefault(operator, []).append(kernel)
    for operator, parts in kernels.items():
        point = _product(trace.products[operator], trace.operators[operator], parts)
        if isinstance(point, str):
            skipped[point] += 1
            continue
        yield Measured(point=point, seconds=sum(part.seconds for part in parts), line=0)


def collectives(trace: Trace, options: ImportOptions, skipped: Counter[str]) -> Iterator[Measured]:
    """Yield the collectives whose size and group are known, each with its kernel's time."""
    for kernel in trace.kernels:
        named = nccl_kernel(kernel.name)
        if named is None:
            continue
        operator = operator_of(trace, kernel)
        args = kernel.args or trace.operators.get(operator or 0, {})
        word = str(args.get(COLLECTIVE_NAME, ""))
        collective = collective_of(word) or named.collective
        if collective is None:
            skipped["collectives of unknown kind"] += 1
            continue
        point = _collective(collective, args, trace, options)
        if isinstance(point, str):
            skipped[point] += 1
            continue
        yield Measured(
            point=point,
            seconds=kernel.seconds,
            line=0,
            algorithm=named.algorithm,
            protocol=named.protocol,
        )


def operator_of(trace: Trace, kernel: Kernel) -> int | None:
    """Return the external id of the operator that launched a kernel."""
    if kernel.external is not None or kernel.correlation is None:
        return kernel.external
    launch = trace.launches.get(kernel.correlation)
    return launch[1] if launch else None


def per_node(trace: Trace, options: ImportOptions) -> int | None:
    """Return the ranks on each node: as asked for, or the devices that the process sees."""
    world = whole(trace.distributed.get("world_size"))
    if options.per_node is not None:
        return options.per_node
    if options.nodes is not None and world:
        return max(1, -(-world // options.nodes))
    return len(trace.devices) or None


def _product(name: str, args: Mapping[str, Any], parts: Sequence[Kernel]) -> GemmPoint | str:
    shapes, strides, types = (
        args.get(key) for key in ("Input Dims", "Input Strides", "Input type")
    )
    if name not in _MATRICES:
        return "matrix products without their own operator"
    one, two = (_matrix(shapes, place) for place in _MATRICES[name])
    if one is None or two is None:
        return "matrix products without shapes (record_shapes=True keeps them)"
    batch = one[0] if len(one) == _STACKED else 1
    if batch > 1:
        return "batched matrix products"
    if one[-1] != two[-2] or not all(1 <= size < _LARGEST for size in (*one, *two)):
        return "matrix products of impossible shapes"
    first = _MATRICES[name][0]
    word = types[first] if isinstance(types, list) and len(types) > first else ""
    dtype = dtype_of(str(word))
    if dtype is None:
        return "matrix products of other number formats"
    if dtype is Dtype.FP32 and any(_TF32.search(part.name) for part in parts):
        dtype = Dtype.TF32
    layout = _layout(*(_matrix(strides, place) for place in _MATRICES[name]))
    return GemmPoint(dtype=dtype, m=one[-2], n=two[-1], k=one[-1], layout=layout, sustained=True)


def _matrix(lists: object, place: int) -> list[int] | None:
    """Return the numbers of one input, of a matrix or a batch of them."""
    if not isinstance(lists, list) or len(lists) <= place or not isinstance(lists[place], list):
        return None
    numbers = [whole(each) for each in lists[place]]
    found = [each for each in numbers if each is not None]
    return found if len(found) == len(numbers) in (_FLAT, _STACKED) else None


def _layout(one: Sequence[int] | None, two: Sequence[int] | None) -> GemmLayout:
    """Return which product of a linear layer it is, by which operands are transposed."""
    if one is not None and one[-1] != 1:
        return GemmLayout.WEIGHT_GRADIENT
    if two is not None and two[-1] == 1:
        return GemmLayout.INPUT_GRADIENT
    return GemmLayout.FORWARD


def _collective(
    collective: Collective, args: Mapping[str, Any], trace: Trace, options: ImportOptions
) -> CollectivePoint | str:
    sent, got = (whole(args.get(key)) for key in ("In msg nelems", "Out msg nelems"))
    dtype = wire_dtype(str(args.get("dtype", "")))
    elements = got if collective is Collective.ALL_GATHER else sent
    elements = max(sent or 0, got or 0) if collective is Collective.BROADCAST else elements
    if not elements or dtype is None:
        return "collectives without size or number format"
    ranks = whole(args.get("Group size")) or options.ranks
    if ranks is None:
        return "collectives without group size (--ranks)"
    if ranks <= 1:
        return "collectives of one rank"
    nodes = _nodes(ranks, args, trace, options)
    if nodes is None:
        return "collectives over an unknown number of nodes (--ranks-per-node)"
    return CollectivePoint(
        collective=collective,
        ranks=ranks,
        nodes=nodes,
        bytes=float(elements * dtype[1]),
        dtype=dtype[0],
        group=GroupKind.RAILS if nodes == ranks else GroupKind.FIRST,
    )


def _nodes(ranks: int, args: Mapping[str, Any], trace: Trace, options: ImportOptions) -> int | None:
    """Return the nodes of a group: by its ranks, or where it can only be one or all of them."""
    each, world = per_node(trace, options), whole(trace.distributed.get("world_size"))
    if each is None:
        return None
    members = _members(args.get("Process Group Ranks"))
    if len(members) == ranks:
        return len({member // each for member in members})
    if world is not None and world <= each:
        return 1
    return -(-ranks // each) if world == ranks else None


def _members(said: object) -> list[int]:
    """Return the ranks of a group; a list that was cut short ("[0, 1, ...]") is none."""
    if isinstance(said, list):
        found = [whole(each) for each in said]
        return [each for each in found if each is not None]
    if isinstance(said, str) and _LIST.fullmatch(said.strip()):
        return [int(each) for each in re.findall(r"\d{1,9}", said)]
    return []
