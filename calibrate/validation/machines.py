"""From the hardware columns of a row to a profile."""

from __future__ import annotations

import re
from collections.abc import Mapping

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.links import NodeLink, parse_link
from simulator.files import parse_record, read_toml
from simulator.hardware.cluster import Node
from simulator.hardware.profile import (
    PROFILE_FOLDER,
    Profile,
    ProfileFile,
    load_profile,
    profile_names,
)
from simulator.units import BITS_PER_BYTE, GB, GIB, MIB

_MEMORY_TOLERANCE = 0.15
"""Between the round gigabytes of a table and what the driver reports."""
_RATE_TOLERANCE = 0.01
_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([GM]i?B|G)?\s*", re.I)
_MEMORY_UNIT = {"g": GIB, "gb": GB, "gib": GIB, "mib": MIB, "mb": MIB}


class Machines:
    """Finds the profile of a row; keeps the profiles it has read or changed."""

    def __init__(self, override: str | None = None) -> None:
        self._override = load_profile(override) if override else None
        self._shipped = {name: _machine(name) for name in profile_names()}
        self._by_alias = {
            alias.lower(): name
            for name, machine in self._shipped.items()
            for alias in (name, *machine.aliases)
        }
        self._loaded: dict[str, Profile] = {}
        self._changed: dict[tuple[object, ...], Profile] = {}

    @property
    def used(self) -> list[Profile]:
        """The shipped or given profiles that rows were read with, unchanged ones."""
        return [self._override] if self._override else list(self._loaded.values())

    def named(self, row: Row, column: str) -> Profile:
        """Return the profile that a cell names (or the one given for all rows)."""
        if self._override is not None:
            return self._override
        if not row.known(column):
            raise SkippedRowError(f"{column}: not given, and no profile was named")
        name = self._by_alias.get(row.text(column).lower())
        if name is None:
            raise row.bad(column, "a name or alias of a shipped profile")
        return self._load(name)

    def of_file(self, stem: str) -> Profile:
        """Return the profile whose longest alias a file's name begins with."""
        if self._override is not None:
            return self._override
        names = [alias for alias in self._by_alias if stem.lower().startswith(alias)]
        if not names:
            raise SkippedRowError("no gpu column, and the file's name begins with no alias")
        return self._load(self._by_alias[max(names, key=len)])

    def of_kernel(self, row: Row, stem: str) -> Profile:
        """Return the machine of a kernel row: in the row, else in the file's name."""
        return self.named(row, "gpu") if row.known("gpu") else self.of_file(stem)

    def of_step(self, row: Row, gpus: int) -> Profile:
        """Return the machine of a step row on `gpus` accelerators."""
        if self._override is not None:
            return self._override
        profile = self._with_memory(row, self.named(row, "hardware"))
        per_node = row.integer("gpus_per_node", profile.node.accelerators)
        if gpus > per_node:
            return self.joined(row, profile, "inter_node_link", per_node)
        return self._with_node_size(row, profile, per_node)

    def joined(self, row: Row, profile: Profile, column: str, per_node: int) -> Profile:
        """Return `profile` with so many accelerators a node and the network of a cell."""
        if self._override is not None:
            return self._override
        profile = self._with_node_size(row, profile, per_node)
        link = parse_link(row.text(column), per_node)
        peers = [peer for peer in self._shipped.values() if _same_node(peer, profile)]
        if link.node_bandwidth is None:
            familiar = [peer for peer in peers if _is_family(peer, link)]
            likely = _preferred(profile, familiar) or profile.name
            row.assume(f"network of {likely}")
            return profile if likely == profile.name else self._load(likely)
        alike = [peer for peer in peers if _same_rate(peer, link.node_bandwidth)]
        familiar = [peer for peer in alike if _is_family(peer, link)]
        chosen = _preferred(profile, familiar) or _preferred(profile, alike)
        if chosen is not None:
            row.assume(f"network efficiency and latency of {chosen}")
            return profile if chosen == profile.name else self._load(chosen)
        return self._with_nic(row, profile, link, link.node_bandwidth)

    def _with_memory(self, row: Row, profile: Profile) -> Profile:
        memory = _memory(row)
        if memory is None or _close(profile.accelerator.memory, memory):
            return profile
        same = [
            peer
            for peer in self._shipped.values()
            if peer.constants == profile.machine.constants
            and _close(peer.accelerator.memory, memory)
        ]
        if same:
            chosen = min(same, key=lambda peer: abs(peer.accelerator.memory - memory))
            row.assume(f"machine {chosen.name}, for its memory")
            return self._load(chosen.name)
        row.assume(f"{profile.name} with {memory / GIB:.0f} GiB of memory")
        accelerator = profile.accelerator.model_copy(update={"memory": memory})
        return self._changed_machine(profile, ("memory", memory), {"accelerator": accelerator})

    def _with_nic(self, row: Row, profile: Profile, link: NodeLink, rate: float) -> Profile:
        own = profile.node.nic
        if own is None:
            raise SkippedRowError(f"inter_node_link: {profile.name} has no network card")
        familiar = [peer for peer in self._shipped.values() if _is_family(peer, link)]
        like = self._shipped.get(_preferred(profile, familiar) or "", profile.machine)
        nic = like.node.nic or own
        cards = link.cards or own.per_node
        row.assume(
            f"{profile.name} with {cards} x {rate / cards * BITS_PER_BYTE / GB:.0f} Gb/s a node, "
            f"network efficiency and latency of {like.name}"
        )
        changed = nic.model_copy(update={"per_node": cards, "bandwidth": rate / cards})
        node = profile.node.model_copy(update={"nic": changed})
        return self._changed_machine(profile, ("nic", cards, rate), {"node": node})

    def _with_node_size(self, row: Row, profile: Profile, per_node: int) -> Profile:
        node = profile.node
        if per_node == node.accelerators:
            return profile
        row.assume(f"{profile.name} with {per_node} accelerators a node")
        changed = {"node": resized(node, per_node)}
        return self._changed_machine(profile, ("size", per_node), changed)

    def _load(self, name: str) -> Profile:
        if name not in self._loaded:
            self._loaded[name] = load_profile(name)
        return self._loaded[name]

    def _changed_machine(
        self, profile: Profile, key: tuple[object, ...], update: Mapping[str, object]
    ) -> Profile:
        """Return one and the same object for the same change, so that it can key caches."""
        found = self._changed.get((id(profile), *key))
        if found is None:
            machine = profile.machine.model_copy(update=dict(update))
            found = profile.model_copy(update={"machine": machine})
            self._changed[(id(profile), *key)] = found
        return found


def resized(node: Node, accelerators: int) -> Node:
    """Return `node` with other accelerators, and the network cards that go with them.

    A scale-up domain of several nodes stays what it is where whole nodes still fill it.
    """
    domain = node.scale_up.domain_size
    if domain == node.accelerators or domain % accelerators:
        domain = accelerators
    scale_up = node.scale_up.model_copy(update={"domain_size": domain})
    nic = node.nic
    if nic is not None:
        cards = max(1, round(nic.per_node * accelerators / node.accelerators))
        nic = nic.model_copy(update={"per_node": cards})
    return node.model_copy(update={"accelerators": accelerators, "scale_up": scale_up, "nic": nic})


def _memory(row: Row) -> float | None:
    """Return `gpu_mem_gb` in bytes: a bare number, or one with its unit."""
    text = row.text("gpu_mem_gb")
    if not text:
        return None
    match = _MEMORY.fullmatch(text)
    if match is None or not float(match[1]):
        raise row.bad("gpu_mem_gb", "a number of gigabytes")
    return float(match[1]) * _MEMORY_UNIT[(match[2] or "GiB").lower()]


def _close(memory: float, other: float) -> bool:
    return abs(memory / other - 1) < _MEMORY_TOLERANCE


def _machine(name: str) -> ProfileFile:
    path = PROFILE_FOLDER / f"{name}.toml"
    return parse_record(ProfileFile, read_toml(path), str(path))


def _same_node(peer: ProfileFile, profile: Profile) -> bool:
    same = peer.accelerator.name == profile.accelerator.name
    return same and peer.node.accelerators == profile.node.accelerators


def _same_rate(peer: ProfileFile, rate: float) -> bool:
    nic = peer.node.nic
    return nic is not None and abs(nic.per_node * nic.bandwidth / rate - 1) < _RATE_TOLERANCE


def _is_family(peer: ProfileFile, link: NodeLink) -> bool:
    return bool(link.family) and link.family.lower() in peer.title.lower()


def _preferred(profile: Profile, choices: list[ProfileFile]) -> str | None:
    """Return the name of `profile` where it is among the choices, else of the first of them."""
    names = [choice.name for choice in choices]
    return profile.name if profile.name in names else next(iter(names), None)
