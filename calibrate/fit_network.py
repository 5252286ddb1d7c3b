"""What a collective adds when it leaves the domain: the constants of the network and the NICs.

Which constants are free is a table: the efficiency of the NICs, the latency of a hop, whatever the
base says of protocols, and the start of each collective where its own domain was not measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibrate.collective_points import Point
from calibrate.fit_block import Fitting
from calibrate.fit_kernels import four_digits, with_values
from calibrate.fit_latency import predict_alone
from calibrate.fit_priors import ASSUMED, free_constants, prior_spread
from calibrate.log_fit import Array, FreeConstant, find
from simulator.cost.collectives.request import Links, links_of
from simulator.hardware.cluster import Nic
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective

FREE = (
    "hop_factor",
    "start",
    "packet_factor",
    "packet_bytes",
    "bulk_start",
    "bulk_step",
    "bulk_bytes",
    "burst",
    "fill",
    "fill_bytes",
)
"""Of `NetworkConstants`; one that the base has as 0 stays 0."""
_WITH = {
    "packet_bytes": "packet_factor",
    "bulk_bytes": "bulk_step",
    "fill_bytes": "fill",
}
"""Where an effect sets in: free only where the base has the effect."""
_EFFICIENCY = "nic.efficiency"
_NIC_LIMITS = (1e-3, 1.0)
_NIC_SPREAD = 0.1
"""Of log(efficiency): fabrics reach 0.8 to 0.98 of their line rate."""
_TABLES = {
    Collective.ALL_REDUCE: "all_reduce",
    Collective.ALL_GATHER: "all_gather",
    Collective.REDUCE_SCATTER: "reduce_scatter",
    Collective.ALL_TO_ALL: "all_to_all",
    Collective.SEND_RECV: "send_recv",
}


def fit_network(
    points: Sequence[Point], profile: Profile, told: Collection[Collective] = ()
) -> Fitting:
    """Return the profile with its network fitted to points over several domains.

    `told` are the collectives that were measured in one domain too, which tells their start.
    """
    nic = profile.node.nic
    assert nic is not None, "points over nodes need a NIC"
    links, measured = links_of(profile), np.array([point.seconds for point in points])
    free = _free_network(profile) | _free_starts(points, profile, told) | _free_nic(nic, profile)

    def log_errors(values: dict[str, float]) -> Array:
        trial = _links_with(links, nic, values)
        return np.asarray(np.log(predict_alone(points, trial) / measured))

    found = find(free, log_errors)
    values = four_digits(found.values)
    constants = _links_with(links, nic, values).constants
    return Fitting(
        profile=_with(profile, nic, values).model_copy(
            update={"constants": profile.constants.model_copy(update={"collectives": constants})}
        ),
        uncertainty=found.uncertainty,
    )


def _free_network(profile: Profile) -> dict[str, FreeConstant]:
    network = profile.constants.collectives.network
    names = [name for name in FREE if getattr(network, _WITH.get(name, name)) > 0]
    found = free_constants(network, names, prior_spread(profile.constants, "network"), {})
    return {f"network.{name}": constant for name, constant in found.items()}


def _free_nic(nic: Nic, profile: Profile) -> dict[str, FreeConstant]:
    low, high = _NIC_LIMITS
    known = prior_spread(profile.constants, "network", "collectives") < ASSUMED
    spread = _NIC_SPREAD if known else ASSUMED
    return {_EFFICIENCY: FreeConstant(prior=nic.efficiency, low=low, high=high, spread=spread)}


def _free_starts(
    points: Sequence[Point], profile: Profile, told: Collection[Collective]
) -> dict[str, FreeConstant]:
    """Return the starts of the collectives that the base assumes and no single domain tells."""
    if prior_spread(profile.constants, "collectives") < ASSUMED:
        return {}
    free: dict[str, FreeConstant] = {}
    for collective in dict.fromkeys(point.collective for point in points):
        if collective in told:
            continue
        name = _TABLES[collective]
        table = getattr(profile.constants.collectives, name)
        for key, constant in free_constants(table, ("start",), ASSUMED, {}).items():
            free[f"{name}.{key}"] = constant
    return free


def _links_with(links: Links, nic: Nic, values: Mapping[str, float]) -> Links:
    inner = {name: value for name, value in values.items() if name != _EFFICIENCY}
    share = links.nic_share * values[_EFFICIENCY] / nic.efficiency
    return replace(links, nic_share=share, constants=with_values(links.constants, inner))


def _with(profile: Profile, nic: Nic, values: Mapping[str, float]) -> Profile:
    changed = nic.model_copy(update={"efficiency": values[_EFFICIENCY]})
    node = profile.node.model_copy(update={"nic": changed})
    machine = profile.machine.model_copy(update={"node": node})
    return profile.model_copy(update={"machine": machine})
