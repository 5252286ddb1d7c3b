"""How other tools write collectives and number formats."""

from __future__ import annotations

import re

from simulator.hardware.accelerator import Dtype
from simulator.parallel.groups import Collective

OTHER_COLLECTIVES = frozenset(
    ("alltoallv", "alltoalls", "gather", "scatter", "hypercube", "allreducebias", "bisection")
)
"""Benchmarked by nccl-tests or rccl-tests, but no part of what is simulated; without separators."""
_BY_WORD = {
    "allreduce": Collective.ALL_REDUCE,
    "allreducecoalesced": Collective.ALL_REDUCE,
    "allgather": Collective.ALL_GATHER,
    "allgatherbase": Collective.ALL_GATHER,
    "allgathersingle": Collective.ALL_GATHER,
    "allgatherintotensor": Collective.ALL_GATHER,
    "allgatherintotensorcoalesced": Collective.ALL_GATHER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "reducescatterbase": Collective.REDUCE_SCATTER,
    "reducescattersingle": Collective.REDUCE_SCATTER,
    "reducescattertensor": Collective.REDUCE_SCATTER,
    "reducescattertensorcoalesced": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "a2a": Collective.ALL_TO_ALL,
    "all2all": Collective.ALL_TO_ALL,
    "alltoallbase": Collective.ALL_TO_ALL,
    "alltoallsingle": Collective.ALL_TO_ALL,
    "broadcast": Collective.BROADCAST,
    "broadcastoop": Collective.BROADCAST,
    "bcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
    "reduceoop": Collective.REDUCE,
    "sendrecv": Collective.SEND_RECV,
    "send": Collective.SEND_RECV,
    "recv": Collective.SEND_RECV,
    "pointtopoint": Collective.SEND_RECV,
}
_IN_NAMES = re.compile(
    r"(?<![a-z])(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all|a2a|broadcast|bcast"
    r"|send_?recv|reduce)(?![a-z])",
    re.I,
)
_DTYPES = {
    Dtype.FP32: ("float", "float32", "fp32", "f32", "torch.float32"),
    Dtype.TF32: ("tf32",),
    Dtype.BF16: ("bfloat16", "bf16", "c10::bfloat16", "torch.bfloat16"),
    Dtype.FP16: ("half", "float16", "fp16", "f16", "c10::half", "torch.float16"),
    Dtype.FP8: ("fp8", "float8", "f8e4m3", "c10::float8_e4m3fn", "float8_e4m3fn", "float8_e4m3"),
    Dtype.INT8: ("int8", "i8", "torch.int8"),
}
_DTYPE_BY_WORD = {word: dtype for dtype, words in _DTYPES.items() for word in words}
_ON_WIRE = {
    "float": ("float32", 4),
    "f32": ("float32", 4),
    "fp32": ("float32", 4),
    "float32": ("float32", 4),
    "half": ("float16", 2),
    "f16": ("float16", 2),
    "float16": ("float16", 2),
    "fp16": ("float16", 2),
    "double": ("float64", 8),
    "float64": ("float64", 8),
    "bfloat16": ("bfloat16", 2),
    "bf16": ("bfloat16", 2),
    "fp8_e4m3": ("float8_e4m3", 1),
    "f8e4m3": ("float8_e4m3", 1),
    "float8_e4m3": ("float8_e4m3", 1),
    "float8_e4m3fn": ("float8_e4m3", 1),
    "fp8_e5m2": ("float8_e5m2", 1),
    "f8e5m2": ("float8_e5m2", 1),
    "float8_e5m2": ("float8_e5m2", 1),
    "int8": ("int8", 1),
    "char": ("int8", 1),
    "uint8": ("uint8", 1),
    "byte": ("uint8", 1),
    "bool": ("bool", 1),
    "short": ("int16", 2),
    "int": ("int32", 4),
    "int32": ("int32", 4),
    "uint32": ("uint32", 4),
    "long": ("int64", 8),
    "int64": ("int64", 8),
    "uint64": ("uint64", 8),
}


def collective_of(word: str) -> Collective | None:
    """Return the collective that a tool means; None where it is none that is simulated.

    >>> collective_of("AllReduce"), collective_of("_reduce_scatter_base")
    (<Collective.ALL_REDUCE: 'all_reduce'>, <Collective.REDUCE_SCATTER: 'reduce_scatter'>)
    """
    return _BY_WORD.get(plain(word))


def plain(word: str) -> str:
    """Return a word in lower case without separators or prefix, as the tables above write it."""
    return re.sub(r"[^a-z0-9]", "", word.lower().rpartition("::")[2])


def collective_in(name: str) -> Collective | None:
    """Return the one collective that a file's name holds; None for none or several.

    >>> collective_in("dgx_a100_1n_reducescatter"), collective_in("run3")
    (<Collective.REDUCE_SCATTER: 'reduce_scatter'>, None)
    """
    found = {collective_of(match) for match in _IN_NAMES.findall(name)}
    return found.pop() if len(found) == 1 else None


def dtype_of(word: str) -> Dtype | None:
    """Return the number format of a matrix product; None where it is not known."""
    return _DTYPE_BY_WORD.get(word.strip().lower())


def wire_dtype(word: str) -> tuple[str, int] | None:
    """Return the name and the bytes of one element as collectives write it."""
    return _ON_WIRE.get(word.strip().lower().rpartition("::")[2].rpartition("torch.")[2])
