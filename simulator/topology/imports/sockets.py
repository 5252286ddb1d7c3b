"""The ways between sockets (or NUMA nodes), and what NCCL takes them to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from simulator.topology.graph import Cable
from simulator.units import GB

NCCL_SOCKETS = {
    "Intel before Skylake": 6 * GB,
    "Intel Skylake to Ice Lake": 10 * GB,
    "Intel Sapphire Rapids": 22 * GB,
    "Intel Emerald Rapids and later": 40 * GB,
    "AMD EPYC Zen 1 and 2": 16 * GB,
    "AMD EPYC Zen 3 and 4": 24 * GB,
    "AMD EPYC Zen 5": 32 * GB,
    "IBM POWER9": 32 * GB,
    "Arm": 6 * GB,
    "Zhaoxin": 6 * GB,
    "Zhaoxin Yongfeng": 9 * GB,
}
"""Bytes/s between two NUMA nodes, one direction.

Source: NCCL, src/graph/topo.h, BDW_QPI_BW, SKL_QPI_BW, SRP_QPI_BW, ERP_QPI_BW, AMD_ZEN12_BW,
AMD_ZEN34_BW, AMD_ZEN5_BW, P9_BW, ARM_BW, ZPI_BW, YONGFENG_ZPI_BW."""
_FAMILIES = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "AMD": "AMD"}
_ZHAOXIN = ("CentaurHauls", "Shanghai")
_ARCHITECTURES = {
    "arm64": "Arm",
    "aarch64": "Arm",
    "ppc64": "IBM POWER9",
    "ppc64le": "IBM POWER9",
}
_INTEL = 6
"""The family of all Intel servers of this century."""
_SKYLAKE, _SAPPHIRE_RAPIDS, _EMERALD_RAPIDS = 0x55, 0x8F, 0xCF
_GRANITE_RAPIDS_AND_SIERRA_FOREST = (0xAD, 0xAE, 0xAF)
_ZEN34, _ZEN5 = (25, 0xAF), (26, 0xBF)
"""CPUID families, and what older versions of NCCL write for them."""
_YONGFENG = (7, 0x5B)


def join_sockets(hosts: Sequence[str], bandwidth: float) -> list[Cable]:
    """Return a cable of `bandwidth` bytes/s between each pair of sockets, as NCCL joins them."""
    pairs = combinations(hosts, 2)
    return [Cable(one=one, other=other, bandwidth=bandwidth) for one, other in pairs]


def cpu_name(attributes: Mapping[str, str]) -> str:
    """Return the processor that a `cpu` element describes, by the names of `NCCL_SOCKETS`.

    Empty where it is not among them. Source: NCCL, src/graph/topo.cc, ncclTopoAddCpu.

    >>> cpu_name({"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "143"})
    'Intel Sapphire Rapids'
    """
    architecture = attributes.get("arch", "").strip()
    if architecture in _ARCHITECTURES:
        return _ARCHITECTURES[architecture]
    vendor = attributes.get("vendor", "").strip()
    family, model = (_number(attributes.get(key, "")) for key in ("familyid", "modelid"))
    if vendor in _ZHAOXIN:
        return "Zhaoxin Yongfeng" if (family, model) == _YONGFENG else "Zhaoxin"
    if _FAMILIES.get(vendor) == "AMD":
        return "AMD EPYC " + ("Zen 5" if family in _ZEN5 else _older_zen(family))
    return _intel(family, model) if _FAMILIES.get(vendor) == "Intel" else ""


def _older_zen(family: int) -> str:
    return "Zen 3 and 4" if family in _ZEN34 else "Zen 1 and 2"


def _intel(family: int, model: int) -> str:
    if family != _INTEL or model < _SKYLAKE:
        return "Intel before Skylake"
    if model >= _EMERALD_RAPIDS or model in _GRANITE_RAPIDS_AND_SIERRA_FOREST:
        return "Intel Emerald Rapids and later"
    return "Intel Sapphire Rapids" if model >= _SAPPHIRE_RAPIDS else "Intel Skylake to Ice Lake"


def nccl_assumes() -> str:
    """Return what NCCL takes the way between NUMA nodes to be, in one line for a message."""
    rates = ", ".join(f"{rate / GB:g} GB/s ({name})" for name, rate in NCCL_SOCKETS.items())
    return f"NCCL takes {rates}"


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return -1
