"""The NICs of a node whose description has none."""

from __future__ import annotations

from dataclasses import replace

from simulator.topology.graph import Cable, DeviceKind
from simulator.topology.imports.link_rates import SWITCH
from simulator.topology.imports.records import ImportedNic, ImportedUnit, ImportOptions, Note


def with_nics(unit: ImportedUnit, options: ImportOptions) -> tuple[ImportedUnit, list[Note]]:
    """Return a node with the NICs of the profile where its description has none.

    They are dealt over the sockets in order: card k of n beside accelerator k x accelerators / n.
    A node without a socket stays as it is.
    """
    nic = options.profile.node.nic if options.profile else None
    hosts = [name for name, kind in unit.devices if kind is DeviceKind.HOST]
    if unit.nics or nic is None or options.profile is None or not hosts:
        return unit, []
    rate = options.profile.node.host.pcie_bandwidth
    names = [f"nic{number}" for number in range(nic.per_node)]
    owners = [len(unit.accelerators) * number // nic.per_node for number in range(nic.per_node)]
    own = _socket_of(unit)
    cables = [
        Cable(one=name, other=own.get(unit.accelerators[owner], hosts[0]), bandwidth=rate)
        for name, owner in zip(names, owners, strict=True)
    ]
    text = f"no NIC in the file; the {nic.per_node} of {options.profile.name} hang on the sockets"
    return (
        replace(
            unit,
            devices=(*unit.devices, *((name, DeviceKind.NIC) for name in names)),
            cables=(*unit.cables, *cables),
            nics=tuple(ImportedNic(name=name) for name in names),
        ),
        [Note(text=text)],
    )


def _socket_of(unit: ImportedUnit) -> dict[str, str]:
    """Return the socket above each device that hangs below one."""
    kinds = dict(unit.devices)
    above = {
        cable.one: cable.other
        for cable in unit.cables
        if kinds[cable.other] in (DeviceKind.SWITCH, DeviceKind.HOST)
        and kinds[cable.one] is not DeviceKind.HOST
        and cable.other != SWITCH
    }
    found = {}
    for name in kinds:
        here, steps = name, 0
        while here in above and steps < len(kinds):
            here, steps = above[here], steps + 1
        if kinds[here] is DeviceKind.HOST:
            found[name] = here
    return found
