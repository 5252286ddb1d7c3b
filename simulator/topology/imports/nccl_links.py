"""NVLinks, xGMI and C2C links of NCCL's XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulator.errors import Problem
from simulator.hardware.cluster import ScaleUpKind
from simulator.topology.graph import Cable, DeviceKind
from simulator.topology.imports.link_rates import NVLINK, NVLINK_OF_SM, SAME, SWITCH
from simulator.topology.imports.nccl_node import FoundAccelerator, Node
from simulator.topology.imports.records import Note
from simulator.topology.imports.xml_tree import Element
from simulator.units import GB

_DISPLAY, _BRIDGE_TO_CPU = "0x03", "0x068001"
_MEGABYTE = 1e6
_LINKS = ("nvlink", "xgmi")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Links of accelerators: to a switch, and between two of them as either one counts."""

    to_switch: Counter[str] = field(default_factory=Counter)
    between: Counter[tuple[str, str]] = field(default_factory=Counter)
    rates: dict[str, float] = field(default_factory=dict)
    """Accelerator -> bytes/s of one of its links, one direction."""


def add_links(node: Node) -> None:
    """Add the links between accelerators, to NVSwitches and to processors.

    All NVSwitches are one device, as in NCCL. Where the file has no link at all, as those that are
    written by hand for virtual machines, a profile whose accelerators share a switch says it.
    """
    counted = _Counted()
    for found in node.accelerators:
        for link in _links(found):
            counted.rates.setdefault(found.name, _rate(node, found, link))
            _count(node, found, link, counted)
        for c2c in (child for child in found.element.children if child.name == "c2c"):
            _add_c2c(node, found, c2c)
    _add_mesh(node, counted)
    _compare(node, counted)
    if counted.to_switch:
        rates = {name: count * counted.rates[name] for name, count in counted.to_switch.items()}
        _add_switch(node, rates)
    elif not counted.between:
        _from_profile(node)


def _links(found: FoundAccelerator) -> Iterator[Element]:
    for child in found.element.children:
        if child.name in _LINKS:
            yield child


def _count(node: Node, found: FoundAccelerator, link: Element, counted: _Counted) -> None:
    """Count the links of an element where they lead."""
    kind, target = link.get("tclass"), link.get("target").lower()
    prefix, count = _prefix(found), node.number(link, "count", 1) or 0
    if kind.startswith(_DISPLAY) or link.name == "xgmi" or (prefix, target) in node.by_bus:
        peer = node.by_bus.get((prefix, target))
        if peer is None:
            node.wrong(link, "there is no accelerator with this bus id", found=repr(target))
        elif peer != found.name:
            counted.between[found.name, peer] += count
    elif kind == _BRIDGE_TO_CPU:
        node.note(link, f"NVLinks of {found.name} to its processor are left out")
    else:
        counted.to_switch[found.name] += count


def _prefix(found: FoundAccelerator) -> str:
    return found.name[: found.name.rfind("gpu")]


def _add_mesh(node: Node, counted: _Counted) -> None:
    """Add a cable for each pair of accelerators with links; both of them have counted it."""
    between, latency = counted.between, _latency(node)
    for one, other in sorted({(min(pair), max(pair)) for pair in between}):
        there, back = between[one, other], between[other, one]
        if there != back:
            text = f"{one} counts {there} links to {other}, which counts {back} back"
            node.notes.append(Note(text=f"{text}; the larger number is taken"))
        rate = counted.rates.get(one) or counted.rates[other]
        bandwidth = max(there, back) * rate
        node.cables.append(Cable(one=one, other=other, bandwidth=bandwidth, latency=latency))


def _compare(node: Node, counted: _Counted) -> None:
    """Add a note where the links of an accelerator are not what the profile says it has."""
    profile = node.options.profile
    totals = {
        name: rate * (counted.to_switch[name] + _peers(counted, name))
        for name, rate in counted.rates.items()
    }
    for name, total in totals.items():
        if profile and abs(total / profile.node.scale_up.bandwidth - 1) > SAME:
            said = f"{profile.name} says {profile.node.scale_up.bandwidth / GB:g}"
            text = f"{name} has links of {total / GB:g} GB/s together, and {said}"
            node.notes.append(Note(text=text))
            return


def _peers(counted: _Counted, name: str) -> int:
    return sum(count for (one, _), count in counted.between.items() if one == name)


def _latency(node: Node) -> float:
    profile = node.options.profile
    return float(profile.node.scale_up.latency) if profile else 0.0


def _rate(node: Node, found: FoundAccelerator, link: Element) -> float:
    """Return bytes/s of one link of an accelerator, one direction."""
    profile, sm = node.options.profile, node.number(found.element, "sm")
    if node.options.link is not None:
        return node.options.link
    if profile and profile.node.scale_up.kind is ScaleUpKind.XGMI_MESH:
        counts = [node.number(each, "count", 1) or 0 for each in _links(found)]
        return float(profile.node.scale_up.bandwidth) / max(1, sum(counts))
    if link.name == "nvlink" and sm in NVLINK_OF_SM:
        return NVLINK[NVLINK_OF_SM[sm]]
    rule = "nothing says how fast a link of this accelerator is"
    fix = "--profile with the name of the machine, or --link-bandwidth"
    node.wrong(link, rule, found=f"sm {found.element.get('sm') or 'not given'}", fix=fix)
    return GB


def _add_switch(node: Node, rates: dict[str, float]) -> None:
    node.devices[SWITCH] = DeviceKind.SWITCH
    for name, bandwidth in rates.items():
        cable = Cable(one=name, other=SWITCH, bandwidth=bandwidth, latency=_latency(node) / 2)
        node.cables.append(cable)
    alone = [found.name for found in node.accelerators if found.name not in rates]
    if alone:
        text = f"no NVLink leads to {', '.join(alone)}, but to the others: links may be down"
        node.notes.append(Note(text=text))


def _add_c2c(node: Node, found: FoundAccelerator, c2c: Element) -> None:
    """Add the link to the accelerator's processor: `count` links of `bw` MB/s."""
    count, megabytes = node.number(c2c, "count", 1), node.number(c2c, "bw")
    host = found.pci
    while host.parent is not None and host.name != "cpu":
        host = host.parent
    cpu = f"{_prefix(found)}numa{host.get('numaid')}"
    if not count or not megabytes or megabytes < 0 or cpu not in node.devices:
        node.wrong(c2c, "needs bw in MB/s, and a processor with a numaid above it")
        return
    rate = count * megabytes * _MEGABYTE
    node.cables.append(Cable(one=found.name, other=cpu, bandwidth=rate))


def _from_profile(node: Node) -> None:
    """Join accelerators by the switch of the profile where the file has no link between them."""
    profile = node.options.profile
    if profile is None:
        if len(node.accelerators) > 1:
            text = "no NVLink in this file; --profile adds the switch that the machine has"
            node.notes.append(Note(text=text))
        return
    scale_up = profile.node.scale_up
    if scale_up.kind is not ScaleUpKind.NVSWITCH:
        return
    if len(node.accelerators) > scale_up.domain_size:
        rule = f"a domain of {profile.name} has {scale_up.domain_size} accelerators"
        found = f"{len(node.accelerators)} in the file"
        node.problems.append(Problem(where=node.where, found=found, rule=rule))
    node.notes.append(
        Note(
            text=f"no NVLink in this file; as {profile.name} says, each accelerator has "
            f"{scale_up.bandwidth / GB:g} GB/s to an NVSwitch"
        )
    )
    rates = {found.name: scale_up.bandwidth for found in node.accelerators}
    _add_switch(node, rates)
