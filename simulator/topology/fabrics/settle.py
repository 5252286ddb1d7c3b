"""The tiers of a tree, with all that their file leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from simulator.errors import InputError
from simulator.topology.context import Context, known
from simulator.topology.fabrics.refusal import refusal
from simulator.topology.fabrics.tier_file import TierFile
from simulator.topology.fabrics.tiers import Tier
from simulator.topology.fabrics.wish import Below, Wish, tries


def settle(
    files: Sequence[TierFile], units: Below, meet: int | None, context: Context, efficiency: float
) -> tuple[Tier, ...]:
    """Return the tiers of a tree over `units` whose rails meet at tier `meet` (None: never).

    Raises:
        InputError: a tier cannot be as the file asks; the nearest that can is named.
    """
    tiers: list[Tier] = []
    below = units
    for number, file in enumerate(files):
        top = number == len(files) - 1
        mixes = below.apart if number == meet else 1
        key = f"fabric.tiers.{number}.bandwidth"
        nominal = 0.0 if top else known(file.bandwidth, context.nic_bandwidth, key)
        wish = Wish(
            file=file,
            below=below,
            leaf=number == 0,
            top=top,
            keep=below.apart // mixes,
            mixes=mixes,
            bandwidth=nominal,
            key=f"fabric.tiers.{number}",
        )
        tiers.append(_tier(wish, efficiency))
        below = Below(
            groups=tiers[-1].groups,
            switches=tiers[-1].switches,
            uplinks=tiers[-1].uplinks,
            bandwidth=nominal,
            apart=wish.keep,
        )
    return tuple(tiers)


def _tier(wish: Wish, efficiency: float) -> Tier:
    """Return the first tier that was tried and can be."""
    for switches, joins in tries(wish):
        planes = wish.planes(switches)
        if planes is not None and wish.fits(joins, switches):
            return Tier(
                groups=ceil(wish.below.groups / joins),
                joins=joins,
                switches=switches,
                planes=planes,
                mixes=wish.mixes,
                uplinks=int(wish.uplinks(joins, switches)),
                bandwidth=wish.bandwidth * efficiency,
                latency=wish.file.latency,
            )
    raise InputError(refusal(wish))
