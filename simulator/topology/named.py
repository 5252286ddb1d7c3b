"""A topology by the name of a profile, or from a file of either kind."""

from __future__ import annotations

from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import nearest, read_toml
from simulator.hardware.profile import Profile, load_profile, profile_names
from simulator.topology.build import build_topology, topology_of_nodes, topology_of_profile
from simulator.topology.context import Context, context_of
from simulator.topology.topology import Topology
from simulator.topology.topology_file import TopologyFile, parse_topology

_SUFFIX = ".toml"
_UNIT, _NODE = "unit", "node"


def named_topology(name: str, *, profile: str | None = None, nodes: int | None = None) -> Topology:
    """Return the topology in a file, or the one that a profile (a name or a file) describes.

    `profile` stands in place of the one that a topology file names; `nodes` in place of the units
    that it has. Without `nodes`, a profile is one scale-up domain.

    Raises:
        InputError: neither such a file nor such a profile, or anything wrong in it.
    """
    if not name.endswith(_SUFFIX):
        return _of_profile(_profile(name), nodes)
    table = read_toml(name)
    if _UNIT not in table and _NODE in table:
        return _of_profile(load_profile(name), nodes)
    file = parse_topology(table, name)
    context = _context(file, profile)
    if nodes is None:
        return build_topology(file, context)
    return topology_of_nodes(file, context, nodes)


def _profile(name: str) -> Profile:
    if name not in profile_names():
        raise InputError(
            Problem(
                where=name[:200],
                rule="is neither a .toml file nor a shipped profile",
                fix=nearest(name[:200], profile_names()),
            )
        )
    return load_profile(name)


def _of_profile(profile: Profile, nodes: int | None) -> Topology:
    domain = profile.node.scale_up.domain_size // profile.node.accelerators
    return topology_of_profile(profile, nodes or max(1, domain))


def _context(file: TopologyFile, profile: str | None) -> Context:
    """Return what the profile says: the one given, or the one that the file names, if any."""
    if profile is not None:
        return context_of(load_profile(profile))
    if file.profile is None:
        return Context()
    return context_of(load_profile(file.profile, relative_to=Path(file.where).parent))
