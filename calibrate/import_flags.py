"""Measured sweeps that no healthy machine yields: cliffs, spikes, more than the line rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from calibrate.import_samples import Sample
from simulator.parallel.groups import Collective, bus_factor
from simulator.units import GB, US

SEVERAL = 3.0
"""Of the published logs, healthy sweeps have sizes that take up to 1.94 x as long as a larger one
and lose at most 1.8 x of a smaller size's bandwidth; single cold starts and congested sizes are
3.3 to 7 x off, a broken all-to-all 50 x (`collectives/nccl_logs` of the published data)."""
ABOVE_LINE = 2.0
"""Bus bandwidth over a link's rate that in-network reduction can reach: it halves what a rank
sends, and bus bandwidth counts 2 (n - 1) / n of the size (nccl-tests, doc/PERFORMANCE.md)."""


def flagged(
    samples: Sequence[Sample], collective: Collective, ranks: int, line_rate: float | None
) -> dict[Sample, str]:
    """Return the samples that are not believed, with the reason; all are of one sweep."""
    found: dict[Sample, str] = {}
    for place in dict.fromkeys(sample.in_place for sample in samples):
        sweep = [s for s in samples if s.in_place is place and s.time.value > 0 and s.bytes > 0]
        sweep.sort(key=lambda sample: sample.bytes)
        found |= _spikes(sweep) | _cliffs(sweep)
        if line_rate is not None:
            found |= _too_fast(sweep, bus_factor(collective, ranks), line_rate)
    return found


def _spikes(sweep: Sequence[Sample]) -> dict[Sample, str]:
    """Return the sizes that took several times as long as a larger one."""
    found: dict[Sample, str] = {}
    fastest: Sample | None = None
    for _, repeats in groupby(reversed(sweep), key=lambda sample: sample.bytes):
        same = list(repeats)
        for sample in same:
            if fastest is not None and sample.time.value > SEVERAL * fastest.time.value:
                found[sample] = (
                    f"time falls as the size grows: {_words(sample)}, but {_words(fastest)}"
                    f" ({sample.time.value / fastest.time.value:.1f} x as long)"
                )
        fastest = min([*same, *([fastest] if fastest else [])], key=lambda each: each.time.value)
    return found


def _cliffs(sweep: Sequence[Sample]) -> dict[Sample, str]:
    """Return the sizes at several times less bandwidth than a smaller one."""
    found: dict[Sample, str] = {}
    best: Sample | None = None
    for sample in sweep:
        if best is not None and _rate(sample) * SEVERAL < _rate(best):
            found[sample] = (
                f"a cliff: {_words(sample)} at {_rate(sample) / GB:.3g} GB/s, but {_words(best)}"
                f" at {_rate(best) / GB:.3g} GB/s"
            )
        if best is None or _rate(sample) > _rate(best):
            best = sample
    return found


def _too_fast(sweep: Sequence[Sample], factor: float, line_rate: float) -> dict[Sample, str]:
    limit = ABOVE_LINE * line_rate
    return {
        sample: (
            f"bus bandwidth {_rate(sample) * factor / GB:.4g} GB/s is more than {ABOVE_LINE:g} x"
            f" the line rate of {line_rate / GB:.4g} GB/s"
        )
        for sample in sweep
        if _rate(sample) * factor > limit
    }


def _rate(sample: Sample) -> float:
    return sample.bytes / sample.time.value


def _words(sample: Sample) -> str:
    return f"{sample.bytes:.0f} B took {sample.time.value / US:.5g} us"
