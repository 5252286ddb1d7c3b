"""The profile that a fit starts from: named, or found by what the driver calls the accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from calibrate.fit_kernels import as_written
from calibrate.points import CollectivePoint
from calibrate.records import Fingerprint, Record
from calibrate.validation.machines import resized
from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.hardware.cluster import Nic
from simulator.hardware.profile import Profile, load_profile, profile_names
from simulator.units import GIB

CPU_PROFILE = "local-cpu"
SUFFIX = "-calibrated"
_MEMORY_TOLERANCE = 0.02
"""By which a framework's memory of a device differs from the data sheet's."""
_WORDS = re.compile(r"[a-z]+\d*[a-z]*\d*|\d+[a-z]*")
_MEMORY_WORD = re.compile(r"\d+gb?")
_NOISE = frozenset({"nvidia", "amd", "instinct", "gpu", "the", "accelerator"})
"""Words of a name that tell no two accelerators apart."""
_SHOWN = 3


def base_profile(
    base: str | None, fingerprint: Fingerprint, records: Sequence[Record]
) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile to start from, of the machine that was measured, and notes on it.

    Raises:
        InputError: no shipped profile has an accelerator of this name, or `base` is not one.
    """
    notes: tuple[str, ...] = ()
    if base is None:
        base, notes = _named_like(fingerprint)
    profile, changes = _as_measured(load_profile(base), fingerprint)
    if profile.node.nic is None and any(_nodes(record) > 1 for record in records):
        profile, change = _with_nic(profile, records)
        changes = (*changes, change)
    return profile, (*notes, *changes)


def _named_like(fingerprint: Fingerprint) -> tuple[str, tuple[str, ...]]:
    """Return the shipped profile of an accelerator, and what else it could have been."""
    name = fingerprint.accelerator
    if name is None or name == fingerprint.cpu or "cpu" in name.lower().split():
        return CPU_PROFILE, ()
    profiles = [load_profile(each) for each in profile_names()]
    wanted = _words(name)
    same = [p for p in profiles if any(_words(each) == wanted for each in p.machine.aliases)]
    same = same or [p for p in profiles if _words(p.accelerator.name) == wanted]
    alike = same or [p for p in profiles if any(_alike(wanted, each) for each in _names(p))]
    alike = _closest_memory(alike, fingerprint.accelerator_memory)
    if not alike:
        raise InputError(_unknown(name, profiles))
    chosen, *others = (profile.name for profile in alike)
    if same and not others:
        return chosen, ()
    listed = f"; {', '.join(others)} would do as well" if others else ""
    return chosen, (f"the base for {name!r} is {chosen}{listed}: --base names another",)


def _names(profile: Profile) -> Iterator[str]:
    yield from profile.machine.aliases
    yield profile.accelerator.name


def _words(name: str) -> frozenset[str]:
    """Return what tells a name from others: "NVIDIA H100-SXM5-80GB" is {h100, sxm5, 80gb}."""
    return frozenset(_WORDS.findall(name.lower())) - _NOISE


def _alike(wanted: frozenset[str], name: str) -> bool:
    """Return whether all words of one name stand in the other, and they share its model."""
    words, wanted = (_without_memory(each) for each in (_words(name), wanted))
    shared = words & wanted
    has_model = any(re.search(r"[a-z]", word) and re.search(r"\d", word) for word in shared)
    return has_model and (words <= wanted or wanted <= words)


def _without_memory(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if not _MEMORY_WORD.fullmatch(word))


def _closest_memory(profiles: list[Profile], memory: float | None) -> list[Profile]:
    if memory is None or not profiles:
        return profiles
    off = [abs(profile.accelerator.memory / memory - 1) for profile in profiles]
    least = min(off)
    return [p for p, each in zip(profiles, off, strict=True) if each <= least + _MEMORY_TOLERANCE]


def _unknown(name: str, profiles: list[Profile]) -> Problem:
    names = {each: profile.name for profile in profiles for each in _names(profile)}
    wanted = _words(name)
    ranked = sorted(names, key=lambda each: -len(_words(each) & wanted))
    close = [each for each in ranked if _words(each) & wanted][:_SHOWN]
    listed = ", ".join(f"{names[each]} ({each})" for each in close)
    hint = f"the nearest are {listed}" if close else nearest(name, profile_names())
    return Problem(
        where="fingerprint",
        key="accelerator",
        found=repr(name),
        rule="no shipped profile has an accelerator of this name",
        fix=f"--base NAME or FILE.toml names the profile to start from; {hint}",
    )


def _as_measured(profile: Profile, fingerprint: Fingerprint) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile with the accelerators a node, memory and name that were found."""
    notes, machine = [], profile.machine
    node, accelerator = machine.node, machine.accelerator
    count, memory = fingerprint.accelerators_per_node, fingerprint.accelerator_memory
    if count is not None and count != node.accelerators:
        notes.append(f"a node has {count} accelerators; {profile.name} has {node.accelerators}")
        node = resized(node, count)
    if memory is not None and abs(memory / accelerator.memory - 1) > _MEMORY_TOLERANCE:
        known = accelerator.memory
        notes.append(f"memory is {memory / GIB:.1f} GiB; {profile.name} has {known / GIB:.1f} GiB")
        accelerator = accelerator.model_copy(update={"memory": memory})
    name = fingerprint.accelerator or fingerprint.cpu
    if name is not None and name != accelerator.name:
        accelerator = accelerator.model_copy(update={"name": name})
    changed = machine.model_copy(update={"node": node, "accelerator": accelerator})
    return profile.model_copy(update={"machine": changed}), tuple(notes)


def _with_nic(profile: Profile, records: Sequence[Record]) -> tuple[Profile, str]:
    """Return the profile with a card as fast as the fastest measured message between nodes."""
    points = [
        (record.point, record.seconds)
        for record in records
        if isinstance(record.point, CollectivePoint)
        and record.point.nodes > 1
        and record.seconds is not None
    ]
    rate = max(point.bytes / seconds for point, seconds in points)
    latency = min(seconds for _, seconds in points)
    nic = Nic(per_node=1, bandwidth=as_written(rate), efficiency=1.0, latency=as_written(latency))
    node = profile.node.model_copy(update={"nic": nic})
    machine = profile.machine.model_copy(update={"node": node})
    note = (
        f"{profile.name} has no network card: one of {nic.bandwidth:.4g} bytes/s and "
        f"{nic.latency:.4g} s is assumed, the best that was measured; give a --base that names it"
    )
    return profile.model_copy(update={"machine": machine}), note


def _nodes(record: Record) -> int:
    return record.point.nodes if isinstance(record.point, CollectivePoint) else 1
