"""The arithmetic of bus bandwidth: what a benchmark's own columns say of ranks and sizes.

busbw = factor x bytes / time; the factor counts what a link of a rank carries (nccl-tests,
doc/PERFORMANCE.md). It follows that a log's columns contradict each other where its sizes or its
ranks are not what they are taken for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrate.collective_points import REDUCTIONS
from calibrate.import_samples import Printed, Sample
from calibrate.import_words import wire_dtype
from calibrate.limits import MOST_RANKS
from simulator.parallel.groups import Collective, bus_factor
from simulator.units import GB, US

_ROOTED = (Collective.BROADCAST, Collective.REDUCE)
_NO_REDUCTION = ("", "none")
_SAME = 0.02
"""Relative difference up to which a wrong bandwidth is explained by another reading."""


def ranks_by_factor(collective: Collective, samples: Sequence[Sample]) -> int | None:
    """Return the one number of ranks that all bandwidths allow; None for none or several."""
    if bus_factor(collective, 2) == bus_factor(collective, 4):
        return None
    low, high = _factor(samples)
    whole = 2.0 if collective is Collective.ALL_REDUCE else 1.0
    if not 0 < low <= high < whole:
        return None
    least, most = whole / (whole - low), whole / (whole - high)
    if most > MOST_RANKS or math.floor(most) != math.ceil(least):
        return None
    ranks = math.floor(most)
    return ranks if ranks > 1 else None


def collectives_by_factor(samples: Sequence[Sample], ranks: int | None) -> list[Collective]:
    """Return the collectives that a run's columns allow, from most to least exact."""
    first = samples[0]
    reduces = first.redop not in _NO_REDUCTION
    found: list[Collective] = []
    for collective in Collective:
        if collective is Collective.HOST_COPY:
            continue
        if first.redop and reduces != (collective in REDUCTIONS):
            continue
        if first.root is not None and (first.root >= 0) != (collective in _ROOTED):
            continue
        if _allows(collective, samples, ranks):
            found.append(collective)
    return found


def contradiction(sample: Sample, collective: Collective, ranks: int) -> str:
    """Return why a sample's columns contradict each other; empty where they do not.

    Until 2020 the algorithm bandwidth of gathers and scatters was the bus bandwidth (nccl-tests,
    issue 45).
    """
    if sample.time.value <= 0:
        return f"a time of {sample.time.value / US:g} us is impossible"
    if sample.wrong:
        return f"the benchmark found {sample.wrong:g} wrong elements"
    if miscounted := _miscount(sample, ranks):
        return miscounted
    factor = bus_factor(collective, ranks)
    plain = _mismatch(sample, sample.algbw, 1.0)
    if plain and (factor >= 1 or _mismatch(sample, sample.algbw, factor)):
        return f"algbw: {_product(sample, 1.0)}, {plain}{_part(sample, ranks)}"
    wrong = _mismatch(sample, sample.busbw, factor)
    if wrong:
        return f"busbw: {_product(sample, factor)}, {wrong}{_guess(sample, collective, ranks)}"
    return ""


def _miscount(sample: Sample, ranks: int) -> str:
    """Return how a size differs from its elements; some versions count those of one rank."""
    wire = wire_dtype(sample.dtype)
    if not sample.count or wire is None:
        return ""
    counted = sample.count * wire[1]
    if sample.bytes in (counted, counted * ranks):
        return ""
    return f"{sample.count:.0f} elements of {wire[0]} are {counted:.0f} B, not {sample.bytes:.0f}"


def _factor(samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the range of factors that all rows share."""
    low, high = 0.0, math.inf
    for sample in samples:
        base, bus = _rate(sample), sample.busbw
        if bus is None or bus.low <= 0 or base is None or base.low <= 0:
            continue
        low, high = max(low, bus.low / base.high), min(high, bus.high / base.low)
    return low, high


def _rate(sample: Sample) -> Printed | None:
    """Return bytes over time, bytes/s."""
    if sample.time.low <= 0:
        return None
    value = sample.bytes / sample.time.value
    return Printed(value=value, slack=value * sample.time.slack / sample.time.low)


def _allows(collective: Collective, samples: Sequence[Sample], ranks: int | None) -> bool:
    low, high = _factor(samples)
    if low <= 0:
        return False
    if ranks is not None:
        return low <= bus_factor(collective, ranks) <= high
    if bus_factor(collective, 2) == bus_factor(collective, 4):
        return low <= 1 <= high
    return ranks_by_factor(collective, samples) is not None


def _mismatch(sample: Sample, said: Printed | None, factor: float) -> str:
    """Return how a printed bandwidth differs from bytes x factor / time, beyond rounding."""
    if said is None:
        return ""
    high = sample.bytes * factor / sample.time.low if sample.time.low > 0 else math.inf
    low = sample.bytes * factor / sample.time.high
    if said.low <= high and low <= said.high:
        return ""
    return f"the log says {said.value / GB:.4g} GB/s"


def _product(sample: Sample, factor: float) -> str:
    value = sample.bytes * factor / sample.time.value
    times = "" if factor == 1 else f" x {factor:.4g}"
    return f"{sample.bytes:.0f} B{times} / {sample.time.value / US:.6g} us is {value / GB:.4g} GB/s"


def _part(sample: Sample, ranks: int) -> str:
    """Return that a size is the part of one rank, where that explains the bandwidth."""
    if sample.algbw is None:
        return ""
    whole = sample.bytes * ranks / sample.time.value
    fits = abs(sample.algbw.value / whole - 1) < _SAME
    return f"; it fits {ranks} x the size: the column counts the part of one rank" if fits else ""


def _guess(sample: Sample, collective: Collective, ranks: int) -> str:
    """Return which other reading of the log would fit."""
    if sample.busbw is None or not sample.busbw.value:
        return ""
    plain = sample.bytes / sample.time.value
    ratio = sample.busbw.value / plain
    if abs(ratio / (bus_factor(collective, ranks) * ranks) - 1) < _SAME:
        return f"; it fits {ranks} x the size: the column counts the part of one rank"
    fitting = ranks_by_factor(collective, [sample])
    if fitting is not None:
        return f"; it fits {fitting} ranks, not {ranks}"
    others = [str(c) for c in Collective if abs(ratio / bus_factor(c, ranks) - 1) < _SAME]
    return f"; it fits {' or '.join(others)}" if others else ""
