"""Reading how nodes are joined from the words of a table ("8x 400 Gb/s InfiniBand per node")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_GBPS = 1e9 / 8
_GBYTES = 1e9
_NUMBER = r"(\d+(?:\.\d+)?)"
_RATE = _NUMBER + r"[ -]*(GB/s|G(?:b(?:it)?(?:/s(?:ec)?|ps|e)?)?(?![A-Za-z]))"
_CARDS = r"(\d+) ?x"
_CARDS_OF_RATE = re.compile(rf"{_CARDS}(?:|[^,;:]*?(?<![\w-])){_RATE}(/GPU| per GPU)?", re.I)
_PER_NODE = re.compile(rf"{_RATE}[^,;(]*? per node", re.I)
_PER_GPU = re.compile(rf"{_RATE}[^,;(]*? per GPU", re.I)
_PLAIN_RATE = re.compile(_RATE, re.I)
_CARDS_ONLY = re.compile(rf"\b{_CARDS}", re.I)
_CLASS = re.compile(r"\b(EDR|HDR|NDR|XDR)(\d{3})?", re.I)
_CLASS_GBPS = {"EDR": 100.0, "HDR": 200.0, "NDR": 400.0, "XDR": 800.0}
"""InfiniBand generations, four lanes."""
_FAMILIES = {
    "InfiniBand": r"infiniband|\bib\b|\b[hnex]dr",
    "RoCE": r"\broce",
    "EFA": r"\befa",
    "Omni-Path": r"omni-?path|\bopa\b",
    "Slingshot": r"slingshot",
    "Ethernet": r"ethernet|\btcp",
}
_USED_FOR_COMPUTE = re.compile(r"compute:(.*?)(?:, *(?:management|storage)|$)", re.I | re.S)
_LONGEST = 400
"""Characters of a cell that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLink:
    """What a text says of a node's network cards."""

    family: str
    """A word of `profile.title`; empty where none is named."""
    cards: int | None
    """Network cards a node."""
    node_bandwidth: float | None
    """Bytes/s a node and direction, nominal."""


def parse_link(text: str, gpus_per_node: int) -> NodeLink:
    """Return what `text` says of the cards of a node with so many accelerators.

    >>> parse_link("8x 400 Gb/s InfiniBand per node", 8)
    NodeLink(family='InfiniBand', cards=8, node_bandwidth=400000000000.0)
    >>> parse_link("4x InfiniBand HDR-class per node, 800 Gb/s", 8)
    NodeLink(family='InfiniBand', cards=4, node_bandwidth=100000000000.0)
    """
    used = _USED_FOR_COMPUTE.search(text[:_LONGEST])
    text = used[1] if used else text[:_LONGEST]
    named = (name for name, words in _FAMILIES.items() if re.search(words, text, re.I))
    cards, bandwidth = _rate(text, gpus_per_node)
    if bandwidth is not None and bandwidth <= 0:
        cards, bandwidth = None, None
    return NodeLink(family=next(named, ""), cards=cards or None, node_bandwidth=bandwidth)


def _rate(text: str, gpus_per_node: int) -> tuple[int | None, float | None]:
    """Return cards and bytes/s of a node; the most explicit wording first."""
    explicit = [
        (int(match[1]) * (gpus_per_node if match[4] else 1), _bytes_per_second(match[2], match[3]))
        for match in _CARDS_OF_RATE.finditer(text)
    ]
    if explicit:
        cards, each = max(explicit, key=lambda found: found[0] * found[1])
        return cards, cards * each
    if match := _PER_NODE.search(text):
        return None, _bytes_per_second(match[1], match[2])
    if match := _PER_GPU.search(text):
        return gpus_per_node, gpus_per_node * _bytes_per_second(match[1], match[2])
    found = _CARDS_ONLY.search(text)
    cards_only = int(found[1]) if found else None
    if match := _PLAIN_RATE.search(text):
        return cards_only, _bytes_per_second(match[1], match[2])
    if (match := _CLASS.search(text)) and cards_only:
        gbps = float(match[2] or _CLASS_GBPS[match[1].upper()])
        return cards_only, cards_only * gbps * _GBPS
    return cards_only, None


def _bytes_per_second(number: str, unit: str) -> float:
    return float(number) * (_GBYTES if unit == "GB/s" else _GBPS)
