"""The parts of a cluster: nodes of several kinds of machines, one part after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Price, Profile
from simulator.units import TERA

KindArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Nodes of one kind."""

    profile: Profile
    nodes: int

    @property
    def accelerators(self) -> int:
        """Accelerators of all its nodes."""
        return self.nodes * self.profile.node.accelerators


def kinds(parts: Sequence[Part]) -> tuple[Profile, ...]:
    """Return the profiles of the parts, each once, in the order of the parts."""
    found = {part.profile.sha256: part.profile for part in reversed(parts)}
    return tuple(found[sha] for sha in dict.fromkeys(part.profile.sha256 for part in parts))


def kind_of_accelerators(parts: Sequence[Part]) -> KindArray:
    """Return (accelerators,) the number in `kinds` of the machine that each belongs to."""
    number = {profile.sha256: kind for kind, profile in enumerate(kinds(parts))}
    each = [number[part.profile.sha256] for part in parts]
    return np.repeat(np.array(each, dtype=np.intp), [part.accelerators for part in parts])


def mean_peak(parts: Sequence[Part], precision: Dtype) -> float:
    """Return the dense peak of an accelerator in FLOP/s, the mean over all of the cluster.

    So many times it is the sum of all peaks, of which MFU is a share.
    """
    peaks = [float(part.profile.accelerator.peak[precision]) for part in parts]
    counts = [part.accelerators for part in parts]
    total = sum(peak * count for peak, count in zip(peaks, counts, strict=True))
    return total / sum(counts)


def peak_words(parts: Sequence[Part], precision: Dtype) -> str:
    """Return of which peaks `mean_peak` is the mean: "mean of 64 x 989.5 and 64 x 312 TFLOP/s"."""
    each = " and ".join(
        f"{part.accelerators:,} x {part.profile.accelerator.peak[precision] / TERA:g}"
        for part in parts
    )
    return f"mean of {each} TFLOP/s"


def mean_price(parts: Sequence[Part]) -> Price:
    """Return what an accelerator costs, the mean over all of the cluster.

    Nothing is known of the whole where a part has no price, or two have different currencies.
    """
    prices = [part.profile.machine.price for part in parts]
    rates = [price.per_accelerator_hour for price in prices]
    currency = prices[0].currency
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates) or any(price.currency != currency for price in prices):
        return Price(per_accelerator_hour=None, currency=currency)
    counts = [part.accelerators for part in parts]
    total = sum(rate * count for rate, count in zip(known, counts, strict=True))
    return Price(per_accelerator_hour=total / sum(counts), currency=currency)


def parts_words(parts: Sequence[Part]) -> str:
    """Return the parts in words: "8 nodes of dgx-h100 and 8 of dgx-a100-80gb"."""
    first, *others = parts
    words = [f"{first.nodes:,} node{'' if first.nodes == 1 else 's'} of {first.profile.name}"]
    return " and ".join([*words, *(f"{part.nodes:,} of {part.profile.name}" for part in others)])
