"""The topology that NCCL or RCCL writes (NCCL_TOPO_DUMP_FILE) and reads (NCCL_TOPO_FILE)."""

from __future__ import annotations

from simulator.errors import InputError, Problem
from simulator.topology.graph import DeviceKind
from simulator.topology.imports.nccl_links import add_links
from simulator.topology.imports.nccl_node import Node, affinity
from simulator.topology.imports.nccl_pci import add_cpu
from simulator.topology.imports.nccl_switches import flatten_switches
from simulator.topology.imports.records import Imported, ImportedUnit, ImportOptions
from simulator.topology.imports.sockets import join_sockets
from simulator.topology.imports.xml_tree import Element, parse_xml

FORMAT = "NCCL topology XML"
_ROOT, _GRAPHS, _CPU = "system", "graphs", "cpu"
_KNOWN = frozenset(
    ("system", "cpu", "pci", "gpu", "nvlink", "xgmi", "c2c", "nic", "net", "gin", "rma")
)
"""Elements with a meaning here; `gin` and `rma` are ports once more, as other plugins see them."""
_BEGINS, _ENDS = "<system", "</system>"


def is_nccl_xml(text: str) -> bool:
    """Return whether a text holds such a document."""
    return _BEGINS in text or text.lstrip().startswith("<")


def read_nccl_xml(text: str, where: str, options: ImportOptions) -> Imported:
    """Return the node (or the nodes of one NVLink domain) that a document describes.

    PCIe links have what NCCL takes them to have, which is what they give and not their nominal
    rate: 12 Gb/s a lane for 16 GT/s. NVLinks have their nominal rate, as in profiles.

    Raises:
        InputError: not such a document, no accelerator in it, or with all that cannot be read.
    """
    root = parse_xml(_document(text), where)
    if root.name != _ROOT:
        raise InputError(_other_root(root, where))
    node = Node(where=where, options=options)
    cpus = [element for element in root.children if element.name == _CPU]
    hosts = list(dict.fromkeys(cpu.get("host_hash") for cpu in cpus))
    for cpu in cpus:
        prefix = f"host{hosts.index(cpu.get('host_hash'))}/" if len(hosts) > 1 else ""
        add_cpu(node, cpu, prefix)
    if not node.problems and not node.accelerators:
        rule, fix = "has no accelerator", "a dump of a job that used the accelerators"
        node.problems.append(Problem(where=where, rule=rule, fix=fix))
    _check_nics(node)
    _note_strange(node, root)
    flatten_switches(node)
    add_links(node)
    _between_sockets(node)
    if node.problems:
        raise InputError(*node.problems)
    return Imported(where=where, format=FORMAT, unit=_unit(node), notes=tuple(node.notes))


def _document(text: str) -> str:
    """Return the document in a text that may begin and end with something else, such as a log."""
    if text.lstrip().startswith("<") or _BEGINS not in text:
        return text.strip()
    begin, end = text.index(_BEGINS), text.rfind(_ENDS)
    # Lines that went before count in messages.
    return (
        "\n" * text.count("\n", 0, begin) + text[begin : end + len(_ENDS) if end > begin else None]
    )


def _other_root(root: Element, where: str) -> Problem:
    if root.name == _GRAPHS:
        rule = "is a dump of NCCL's search results (NCCL_GRAPH_DUMP_FILE), not of the machine"
        return Problem(where=where, rule=rule, fix="NCCL_TOPO_DUMP_FILE=topology.xml")
    rule = f"the root element must be <{_ROOT}>"
    return Problem(where=where, key=f"line {root.line}", found=f"<{root.name[:40]}>", rule=rule)


def _check_nics(node: Node) -> None:
    """Add a problem for each card that the user names and the file does not."""
    found = [nic.name.rpartition("/")[2] for nic in node.nics]
    cards = [name for name, kind in node.devices.items() if kind is DeviceKind.NIC]
    for name in node.options.nics:
        if name not in found:
            rule, fix = "the file has no such NIC", ", ".join(cards) or "leave --nics out"
            problem = Problem(where=node.where, key="--nics", found=name, rule=rule, fix=fix)
            node.problems.append(problem)


def _note_strange(node: Node, root: Element) -> None:
    """Add a note for each kind of element that this reader has no meaning for."""
    first: dict[str, Element] = {}
    for element in root.all():
        if element.name not in _KNOWN:
            first.setdefault(element.name, element)
    for element in first.values():
        node.note(element, f"<{element.name[:40]}> is not understood and left out")


def _between_sockets(node: Node) -> None:
    """Join the NUMA nodes of each host, as wide as an option or NCCL says."""
    for sockets in node.sockets.values():
        names = [name for name, _ in sockets]
        for cable in join_sockets(names, min((rate for _, rate in sockets), default=0.0)):
            node.cables.append(cable)


def _unit(node: Node) -> ImportedUnit:
    order = sorted(node.accelerators, key=lambda found: found.order)
    nics = sorted(node.nics, key=lambda found: found.order)
    names = tuple(found.name for found in order)
    return ImportedUnit(
        devices=tuple(node.devices.items()),
        cables=tuple(node.cables),
        accelerators=names,
        nics=tuple(found.nic for found in nics),
        affinity=affinity(node, names, [found.name for found in nics]),
    )
