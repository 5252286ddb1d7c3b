"""Switches and cables as a graph, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import DeviceKind, FloatArray, Graph, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Cables:
    """Full-duplex cables of one kind, by the numbers of the switches at their ends."""

    one: IntArray
    other: IntArray
    bandwidth: float
    """Bytes/s of each, one direction."""
    latency: float = 0.0
    """Seconds of one message on each."""


def wire(switches: Sequence[str], bundles: Sequence[Cables]) -> Graph:
    """Return switches joined by cables; each cable is two links, one each way, one after the other.

    >>> pair = Cables(one=np.array([0]), other=np.array([1]), bandwidth=50e9)
    >>> graph = wire(["leaf0", "spine0"], [pair])
    >>> [graph.link_name(link) for link in range(len(graph))]
    ['leaf0 -> spine0', 'spine0 -> leaf0']
    """
    return Graph(
        devices=tuple(switches),
        kinds=(DeviceKind.SWITCH,) * len(switches),
        source=_joined([_alternately(bundle.one, bundle.other) for bundle in bundles]),
        target=_joined([_alternately(bundle.other, bundle.one) for bundle in bundles]),
        bandwidth=_repeated([bundle.bandwidth for bundle in bundles], bundles),
        latency=_repeated([bundle.latency for bundle in bundles], bundles),
    )


def _alternately(one: IntArray, other: IntArray) -> IntArray:
    return np.stack([one.ravel(), other.ravel()], axis=1).ravel()


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.empty(0, dtype=np.intp), *parts]).astype(np.intp)


def _repeated(values: list[float], bundles: Sequence[Cables]) -> FloatArray:
    return np.repeat(np.array(values, dtype=np.float64), [2 * b.one.size for b in bundles])
