"""From 2 to 4 nodes to 256 accelerators, for `docs/accuracy.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from calibrate.validation.collective_series import FIGURE, LOGS
from calibrate.validation.extrapolation import (
    LATENCY_BOUND,
    LIMIT,
    Extrapolation,
    extrapolations,
)
from calibrate.validation.records import Statistics
from simulator.units import MIB
from traincast.docs.files import share
from traincast.docs.markdown import table

_HEADER = (
    "series",
    "told",
    "fitted",
    "judged",
    "n",
    "median",
    "p90",
    "worst",
    "bias",
    f"median to {LATENCY_BOUND / MIB:.0f} MiB",
    "median by nodes",
)
_NOTE = f"""\
All-reduces of few nodes fitted as `traincast calibrate fit` fits a network, those of more nodes of
the same fabric forecast; no judged point was fitted. The target is a median of {share(LIMIT)} from
2 to 4 nodes to 256 accelerators (32 nodes); nothing larger was published. *told* is what the fit
starts from: the shipped constants of packets and filling, which saw all of these points and so
could help; a third of them; three times them; or *nothing*, a model without these terms, which
shows what they are for. That the model has these terms at all was decided with the points in view.
The figure is read to +-2 GB/s of bus bandwidth, a tenth to a fifth of its smallest messages, and
has none below 1 MiB; the worst point is 2 MiB on 16 nodes, which took longer there than 4 MiB.

Two nodes alone do not tell how four do. By the constants of more nodes, forecasts of the log's two
are 9-44 % too fast at 0.25 to 1 MiB and at 64 to 256 MiB; a fit to these takes that for filling,
which grows with the hops, and makes four nodes 10-35 % too slow at middle sizes. With both numbers
of nodes the forecasts of 256 accelerators hold: measure at least two. The other logs are of
one number of nodes each."""


def extrapolation_section(folder: Path) -> Iterator[str]:
    """Yield the section; nothing where the folder lacks the measurements."""
    if not all((folder / name).is_file() for name in (LOGS, FIGURE)):
        return
    yield "### From 2 to 4 nodes to 256 accelerators"
    yield _NOTE
    yield table(_HEADER, map(_line, extrapolations(folder)))


def _line(found: Extrapolation) -> list[str]:
    nodes = ", ".join(map(str, found.fitted_nodes))
    by_nodes = (f"{n}: {_median(found.statistics(nodes=n))}" for n in found.nodes)
    errors = found.statistics()
    assert errors is not None, "a series has points to judge"
    return [
        found.series,
        found.start.value,
        f"{found.fitted_points} of {nodes} nodes",
        f"{', '.join(map(str, found.nodes))} nodes",
        str(errors.count),
        share(errors.median),
        share(errors.p90),
        *(f"{100 * value:+.1f} %" for value in (errors.worst, errors.bias)),
        _median(found.statistics(up_to=LATENCY_BOUND)),
        ", ".join(by_nodes),
    ]


def _median(errors: Statistics | None) -> str:
    return share(errors.median) if errors else ""
