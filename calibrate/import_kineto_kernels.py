"""Kernels by their names: which class of work each does, and what NCCL's names say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from calibrate.import_words import collective_of, wire_dtype
from simulator.parallel.groups import Collective

COLLECTIVE, COPY, ATTENTION, GEMM, MEMORY_BOUND, OTHER = (
    "collective",
    "copy",
    "attention",
    "gemm",
    "memory_bound",
    "other",
)
CLASSES = (GEMM, ATTENTION, MEMORY_BOUND, COLLECTIVE, COPY, OTHER)
"""Of kernels, as `KernelSumPoint.kernel` names them."""
_CLASS_WORDS = (
    (COLLECTIVE, r"nccl|rccl|msccl|cross_device_reduce|nvshmem|deep_?ep|(?:one|two)_?shot_all"),
    (COPY, r"^mem(?:cpy|set)|copybuffer|fillbuffer"),
    (ATTENTION, r"flash|fmha|attn|attention|sdpa"),
    (
        GEMM,
        r"gemm|gemv|cijk_|nvjet|xmma|cublas|splitk|wgmma|matmul|triton_mm|triton_tem_fused_\w*mm"
        r"|s\d+fprop|tensorop",
    ),
    (
        MEMORY_BOUND,
        r"elementwise|reduce_kernel|norm|softmax|multi_tensor|adam|vectorized|triton_(?:poi|red|per)"
        r"|index|gather|scatter|embedding|catarray|dropout|fill|transpose|copy|nll_loss|entropy"
        r"|rotary|rope|gelu|silu|relu|swiglu|cast|quantize|foreach|at::native|cub::",
    ),
)
"""The first that is found in a name, in lower case, counts: attention kernels hold GEMMs, and
collectives reductions."""
_OPTIMIZER = re.compile(r"multi_tensor|multitensor|adam|lamb_|sgd|lion|muon|foreach")
"""Kernels of optimizers, and of gradient clipping, which is part of their step."""
_HOST = re.compile(r"htod|dtoh|host\s*to\s*device|device\s*to\s*host|hosttodevice|devicetohost")
_CLASSES = tuple((kind, re.compile(words)) for kind, words in _CLASS_WORDS)
_NCCL = re.compile(r"^(?:void\s+)?(?:nccl|rccl|msccl)", re.I)
_COLLECTIVES = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|reduce(?!copy)",
    re.I,
)
_ALGORITHMS = (
    ("nvls_tree", r"NVLS_?TREE"),
    ("nvls", r"NVLS"),
    ("collnet_direct", r"COLLNET_?DIRECT"),
    ("collnet_chain", r"COLLNET_?CHAIN"),
    ("collnet", r"COLLNET"),
    ("pat", r"(?<![A-Z])PAT(?![A-Z])"),
    ("tree", r"TREE|Tree"),
    ("ring", r"RING|Ring"),
)
_PROTOCOLS = (("ll128", r"LL128"), ("ll", r"LL(?![A-Za-z0-9])|LLK"), ("simple", r"SIMPLE|Simple"))
_TYPES = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:nv|hip|rccl)_)?_*"
    r"(f64|f32|f16|bf16|f8e4m3|f8e5m2|double|float8_e4m3|float8_e5m2|float|half|bfloat16|u?int(?:8|32|64)"
    r"|i8|u8|i32|u32|i64|u64)(?:_t)?(?![A-Za-z0-9])"
)
_SHORT = {
    "f64": "double",
    "i8": "int8",
    "u8": "uint8",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclKernel:
    """What a collective kernel's name says; None is not said (`ncclDevKernel_Generic`)."""

    collective: Collective | None = None
    algorithm: str | None = None
    protocol: str | None = None
    dtype: str | None = None


@lru_cache(maxsize=4096)
def class_of(name: str) -> str:
    """Return the class of a kernel.

    >>> (
    ...     class_of("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"),
    ...     class_of("Cijk_Ailk"),
    ... )
    ('gemm', 'gemm')
    """
    lower = name.lower()
    return next((kind for kind, words in _CLASSES if words.search(lower)), OTHER)


def is_optimizer(name: str) -> bool:
    """Return whether a kernel's name says that it updates or clips parameters."""
    return _OPTIMIZER.search(name.lower()) is not None


def is_host_copy(name: str) -> bool:
    """Return whether a copy goes to or from host memory.

    >>> is_host_copy("Memcpy HtoD (Pageable -> Device)"), is_host_copy("Memcpy DtoD")
    (True, False)
    """
    return _HOST.search(name.lower()) is not None


def nccl_kernel(name: str) -> NcclKernel | None:
    """Return what the name of an NCCL or RCCL kernel says; None where it is no such name.

    Up to 2.7 names are ncclAllReduceRingLLKernel_sum_f32, up to 2.18
    ncclKernel_AllReduce_RING_LL_Sum_float, since then ncclDevKernel_AllReduce_Sum_f32_RING_LL.

    >>> found = nccl_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)")
    >>> found.algorithm, found.protocol, found.dtype
    ('ring', 'll', 'float32')
    """
    begin = _NCCL.match(name)
    if begin is None:
        return None
    bare = name[begin.end() :].partition("(")[0]
    word, dtype = _COLLECTIVES.search(bare), _TYPES.search(bare)
    kind = wire_dtype(_SHORT.get(dtype[1], dtype[1])) if dtype else None
    return NcclKernel(
        collective=collective_of(word[0]) if word else None,
        algorithm=_found(_ALGORITHMS, bare),
        protocol=_found(_PROTOCOLS, bare),
        dtype=kind[0] if kind else None,
    )


def _found(choices: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for name, words in choices if re.search(words, text)), None)
