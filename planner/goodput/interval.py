"""How long to train between checkpoints in closed form: Young's and Daly's intervals.

Symbols as in Daly 2006: M mean time between failures, delta what a checkpoint holds up, R from a
failure back to training, tau training between checkpoints, T_s training in all, seconds.
"""

from __future__ import annotations

from math import exp, expm1, inf, sqrt


def young_interval(delta: float, mtbf: float) -> float:
    """Return tau = sqrt(2 delta M).

    >>> young_interval(18.0, 3600.0)
    360.0

    Source: Young 1974, "A first order approximation to the optimum checkpoint interval", CACM
    17(9).
    """
    return sqrt(2.0 * delta * mtbf)


def daly_interval(delta: float, mtbf: float, restart: float) -> float:
    """Return tau = sqrt(2 delta (M + R)) - delta, of the first-order model; at least 0.

    >>> daly_interval(8.0, 3000.0, 1000.0)
    244.98...

    Source: Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart
    dumps", FGCS 22, section 2.
    """
    return max(0.0, sqrt(2.0 * delta * (mtbf + restart)) - delta)


def daly_higher_order(delta: float, mtbf: float) -> float:
    """Return tau = sqrt(2 delta M) (1 + x/3 + x^2/9) - delta with x = sqrt(delta / 2M).

    Where delta >= 2 M it is M. Daly's example, M = 24 h and delta = 5 min:

    >>> round(daly_higher_order(300.0, 86400.0) / 60)
    117

    Source: Daly 2006, equation 37.
    """
    if mtbf == inf:
        return inf
    if delta >= 2.0 * mtbf:
        return mtbf
    x = sqrt(delta / (2.0 * mtbf))
    return young_interval(delta, mtbf) * (1.0 + x / 3.0 + x * x / 9.0) - delta


def expected_stretch(interval: float, delta: float, mtbf: float, restart: float) -> float:
    """Return E = M e^(R/M) (e^((tau + delta)/M) - 1): wall seconds of one interval.

    Failures are exponential, of restarts too; nodes are there at once. Without failures it is
    tau + delta, and inf where it overflows.

    Source: Daly 2006, section 3, the complete cost function for one segment.
    """
    if mtbf == inf:
        return interval + delta
    if mtbf == 0.0:
        return inf
    try:
        return mtbf * exp(restart / mtbf) * expm1((interval + delta) / mtbf)
    except OverflowError:
        return inf


def first_order_goodput(interval: float, delta: float, mtbf: float, restart: float) -> float:
    """Return 1 - delta/tau - ((tau + delta)/2 + R)/M, the goodput where all of it is small."""
    return 1.0 - delta / interval - ((interval + delta) / 2.0 + restart) / mtbf
