"""Points in words: the family that a point is judged with, and a line that tells it from others."""

from __future__ import annotations

from typing import assert_never, get_args

from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    GroupKind,
    HostCopyPoint,
    InterferencePoint,
    KernelSumPoint,
    LaunchPoint,
    LayerPoint,
    MemoryBoundPoint,
    Point,
    SoakPoint,
    StepPoint,
    Timing,
    UpkeepPoint,
)
from simulator.units import GIB, KIB, MIB

KINDS: tuple[str, ...] = tuple(
    str(kind.model_fields["what"].default) for kind in get_args(get_args(Point)[0])
)
"""What `Point.what` can be."""
_SIZES = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


def family_of(point: Point) -> str:
    """Return what a point is judged together with: its kind and what its forecast depends on most.

    >>> from calibrate.points import Direction
    >>> family_of(HostCopyPoint(direction=Direction.TO_HOST, bytes=1e6))
    'host copy to host'
    """
    match point:
        case GemmPoint():
            family = f"gemm {point.dtype}"
        case AttentionPoint():
            family = f"attention {_pass(point.backward)}"
        case MemoryBoundPoint():
            family = f"memory bound {_plain(point.memory_class)}"
        case HostCopyPoint():
            family = f"host copy {_plain(point.direction)}"
        case LaunchPoint() | SoakPoint() | StepPoint():
            family = point.what
        case CollectivePoint():
            family = _collective_family(point)
        case InterferencePoint():
            family = f"interference with {_plain(point.kernel)}"
        case LayerPoint():
            family = f"{point.part} {_pass(point.backward)}"
        case UpkeepPoint():
            family = f"upkeep: {point.work}"
        case KernelSumPoint():
            family = f"kernels of a trace: {_plain(point.kernel)}"
        case _:
            assert_never(point)
    return family


def words_of(point: Point) -> str:
    """Return one line for a point, without its family.

    >>> from simulator.hardware.accelerator import Dtype
    >>> words_of(GemmPoint(dtype=Dtype.BF16, m=4096, n=1024, k=512))
    '4096 x 1024 x 512, forward'
    """
    match point:
        case GemmPoint():
            words = _gemm(point)
        case AttentionPoint():
            heads = f"{point.heads} heads ({point.kv_heads} kv) of {point.head_dim}"
            mask = "causal" if point.causal else "no mask"
            words = f"{point.batch} x {point.seq} tokens, {heads}, {mask}, {point.dtype}"
        case MemoryBoundPoint():
            words = f"{point.operator}, {size_words(point.bytes)}, {point.dtype}{_at_once(point)}"
        case HostCopyPoint():
            words = size_words(point.bytes)
        case LaunchPoint():
            words = f"of a {point.launch}"
        case SoakPoint():
            words = f"{point.duration:g} s, {point.dtype}"
        case CollectivePoint():
            words = f"{size_words(point.bytes)}, {group_words(point)}{_timing(point)}"
        case InterferencePoint():
            words = f"{point.collective} of {size_words(point.bytes)} on {point.ranks} ranks"
        case LayerPoint() | UpkeepPoint():
            words = _of_layer(point)
        case StepPoint():
            words = _step(point)
        case KernelSumPoint():
            rank = "" if point.rank is None else f", rank {point.rank}"
            words = f"step {point.step}{rank}"
        case _:
            assert_never(point)
    return words


def group_words(point: CollectivePoint) -> str:
    """Return which ranks a collective is over.

    >>> from simulator.parallel.groups import Collective
    >>> kind = Collective.ALL_REDUCE
    >>> group_words(CollectivePoint(collective=kind, ranks=16, nodes=2, bytes=1024))
    '16 ranks on 2 nodes'
    """
    where = f"{point.ranks} ranks"
    if point.nodes > 1:
        where += f" on {point.nodes} nodes"
    match point.group:
        case GroupKind.FIRST:
            return where
        case GroupKind.PAIR:
            return pair_words(point.first, point.second)
        case GroupKind.ONE_A_NODE:
            return f"{where}, one a node"
        case GroupKind.HALVES:
            return f"{where}, two such groups at once"
        case GroupKind.RAILS:
            return f"{where}, one such group a rail at once"
        case _:
            assert_never(point.group)


def pair_words(first: int | None, second: int | None) -> str:
    """Return which two ranks a message is between."""
    return f"ranks {first} and {second}"


def size_words(size: float) -> str:
    """Return bytes in the largest binary unit that leaves at least 1.

    >>> size_words(1536), size_words(2**30), size_words(12)
    ('1.5 KiB', '1 GiB', '12 B')
    """
    for unit, name in _SIZES:
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size:g} B"


def _collective_family(point: CollectivePoint) -> str:
    where = "in a node" if point.nodes == 1 else "over nodes"
    timing = "" if point.timing is Timing.DEVICE else f", {_plain(point.timing)}"
    return f"{_plain(point.collective)} {where}{timing}"


def _gemm(point: GemmPoint) -> str:
    shape = f"{point.m} x {point.n} x {point.k}, {_plain(point.layout)}"
    kinds = (point.accumulate, "accumulated in fp32"), (point.sustained, "sustained")
    return ", ".join([shape, *(words for said, words in kinds if said)]) + _at_once(point)


def _of_layer(point: LayerPoint | UpkeepPoint) -> str:
    """Return which part of a layer a point is of."""
    if isinstance(point, UpkeepPoint):
        share = f"tp {point.tp}, dp {point.dp}"
    else:
        share = f"micro-batch {point.micro_batch} x {point.seq}, tp {point.tp}"
    return f"{point.model}, {share}, {point.dtype}{_at_once(point)}"


def _at_once(point: GemmPoint | MemoryBoundPoint | LayerPoint | UpkeepPoint) -> str:
    return "" if point.ranks == 1 else f", on {point.ranks} ranks at once"


def _step(point: StepPoint) -> str:
    layers = "" if point.layers is None else f" with {point.layers} layers"
    layout, job = point.layout, point.job
    axes = ("tp", "cp", "pp", "vpp", "dp", "ep", "zero_stage")
    defaults = type(layout).model_fields
    named = [(axis, getattr(layout, axis)) for axis in axes]
    shown = [f"{axis} {size}" for axis, size in named if size != defaults[axis].default]
    if layout.schedule is not None:
        shown.append(str(layout.schedule))
    if point.bucket_bytes is not None:
        shown.append(f"buckets of {size_words(point.bucket_bytes)}")
    batch = f"{job.global_batch_size} x {job.seq_length} tokens, mb {layout.micro_batch_size}"
    return ", ".join([f"{point.model}{layers}", batch, str(job.precision), *shown])


def _timing(point: CollectivePoint) -> str:
    return "" if point.in_place is None else f", {'in' if point.in_place else 'out of'} place"


def _pass(backward: bool) -> str:
    return "backward" if backward else "forward"


def _plain(name: str) -> str:
    return str(name).replace("_", " ")
