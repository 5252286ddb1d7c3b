"""What to say of accelerators that nothing connects."""

from __future__ import annotations

import numpy as np

from simulator.errors import InputError, Problem
from simulator.topology.graph import IntArray
from simulator.topology.topology import Topology

_SHOWN = 4
"""Failed links that a message shows."""


def unreachable(
    topology: Topology, source: IntArray, target: IntArray, asked: tuple[str, str] = ("", "")
) -> InputError:
    """Return the error for pairs of accelerators, none of which is connected.

    `asked` is the file, and the key in it, whose step sends between them.
    """
    pairs = np.unique(np.stack([source, target], axis=1), axis=0)
    failed = [topology.link_name(link) for link, bandwidth in topology.changed if bandwidth == 0]
    where, key = asked
    one, other = (_name(topology, int(accelerator)) for accelerator in pairs[0])
    return InputError(
        Problem(
            where=where or topology.title,
            key=key,
            found=_listed("failed", failed) if failed else "no link has failed",
            rule=f"{one} cannot reach {other}"
            + (f" on the topology {topology.title!r}" if where else "")
            + _more(len(pairs) - 1),
            fix=_fix(topology, failed),
        )
    )


def _name(topology: Topology, accelerator: int) -> str:
    unit, place = divmod(accelerator, topology.width)
    return f"node{unit}/{topology.unit.graph.devices[topology.unit.accelerators[place]]}"


def _more(count: int) -> str:
    return f"; so it is with {count} more pair{'s' if count > 1 else ''}" if count else ""


def _listed(what: str, names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}: {', '.join(names[:_SHOWN])}{more}"


def _fix(topology: Topology, failed: list[str]) -> str:
    if failed:
        return "leave one of these links whole, or place no rank on what is cut off"
    if topology.fabric is None and topology.units > 1:
        return "add a fabric that joins the units"
    return "add links that join them"
