"""Storage as a step meets it: what every node reads all the time and writes of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator.cost.network.column import Column
from simulator.cost.network.network import Network
from simulator.errors import Problem
from simulator.files import nearest
from simulator.parallel.checkpoint import stage_checkpoint
from simulator.parallel.program import StepProgram
from simulator.topology.network_file import NetworkFile, StorageNics, StorageTraffic
from simulator.topology.routes.storage import storage_loads, storage_switches
from simulator.topology.topology import Topology
from simulator.units import GB

_KEY = "cluster.network.storage"


@dataclass(frozen=True, kw_only=True, eq=False)
class Storage:
    """What a scenario says of storage, and the links on the way; by turns of traffic."""

    file: StorageTraffic
    node_size: int
    """Accelerators of a node."""
    reads: Column | None = None
    """Bytes on each link for each byte that every node reads; None where none is loaded."""
    writes: Column | None = None

    def traffic(self) -> Iterator[tuple[Column, float]]:
        """Yield what is loaded, and the bytes/s of each node."""
        for column, rate in ((self.reads, self.file.read), (self.writes, self.file.write)):
            if column is not None and rate:
                yield column, float(rate)

    @property
    def idle(self) -> Storage:
        """The same between two checkpoints."""
        return replace(self, writes=None)

    def written(self, program: StepProgram) -> float:
        """Return the bytes of a checkpoint that the node with most of it writes."""
        stages = range(program.layout.pp)
        return self.node_size * max([stage_checkpoint(program, stage) for stage in stages])

    def mean_step(self, program: StepProgram, writing: float, idle: float) -> float:
        """Return the mean of steps while a checkpoint is written and of those between two, seconds.

        A checkpoint is under way for `written` / `write` seconds: for so many of the steps until
        the next one, or for all where it takes longer.
        """
        assert self.file.write is not None
        assert self.file.checkpoint_every is not None
        every = self.file.checkpoint_every
        steps = min(every, self.written(program) / float(self.file.write) / writing)
        return idle + (writing - idle) * steps / every


def storage_of(
    file: NetworkFile, network: Network, node_size: int, where: str
) -> tuple[Storage | None, list[Problem]]:
    """Return the storage of a network file and what is wrong with it."""
    said, topology = file.storage, network.topology
    if said is None:
        return None, []
    storage = Storage(file=said, node_size=node_size)
    if said.nics is StorageNics.OWN:
        return storage, []
    problems = [*_place_problems(said, topology, where), *_rate_problems(said, topology, storage)]
    if problems:
        return None, [replace(problem, where=where) for problem in problems]
    columns = [_column(file, said, network, node_size, writes=way) for way in (False, True)]
    return replace(storage, reads=columns[0], writes=columns[1]), []


def storage_notes(storage: Storage | None, program: StepProgram, step: float) -> Iterator[str]:
    """Yield how long a checkpoint is under way in steps of `step` seconds, where one is written."""
    if storage is None or storage.file.write is None:
        return
    size, every = storage.written(program), storage.file.checkpoint_every
    assert every is not None
    steps = size / storage.file.write / step
    told = (
        f"a checkpoint of {size / GB:.3g} GB a node at most is written for "
        f"{size / storage.file.write:.3g} s at {storage.file.write / GB:g} GB/s"
    )
    if steps > every:
        yield f"{told}: longer than the {every} steps until the next, so that it never ends"
    else:
        yield f"{told}: {steps:.3g} of every {every} steps"


def _column(
    file: NetworkFile, said: StorageTraffic, network: Network, node_size: int, *, writes: bool
) -> Column:
    """Return what all nodes load with one byte each, to storage or from it."""
    topology = network.topology
    nodes = topology.width / node_size
    if not said.units:
        assert topology.fabric is not None, "refused before"
        switches = storage_switches(topology.fabric, said.switches)
        loads = storage_loads(
            topology, switches, writes=writes, spreading=file.spreading, seed=file.seed
        )
        return Column.of(loads * nodes)
    here = np.repeat(np.arange(topology.size), len(said.units))
    there = np.tile(said.units, topology.size) * topology.width + here % topology.width
    weight = np.full(len(here), 1.0 / (node_size * len(said.units)))
    ends = (here, there) if writes else (there, here)
    return Column.of(network.routes.loads(ends[0], ends[1], weight))


def _place_problems(said: StorageTraffic, topology: Topology, where: str) -> Iterator[Problem]:
    if topology.fabric is None:
        yield Problem(
            where=where,
            key=_KEY,
            found="one unit, which no fabric joins to anything",
            rule="storage over the compute NICs is reached over a fabric",
            fix=f'nics = "{StorageNics.OWN}", or more nodes',
        )
    elif said.switches is not None and not len(storage_switches(topology.fabric, said.switches)):
        yield Problem(
            where=where,
            key=f"{_KEY}.switches",
            found=repr(said.switches),
            rule="is no switch; `traincast topology show` names them",
            fix=nearest(said.switches, list(topology.fabric.graph.devices)),
        )
    wrong = [unit for unit in said.units if unit >= topology.units]
    if wrong:
        yield Problem(
            where=where,
            key=f"{_KEY}.units",
            found=f"unit {wrong[0]}",
            rule=f"units are 0 to {topology.units - 1}",
            fix=f"at most {topology.units - 1}",
        )
    if len(set(said.units)) < len(said.units):
        yield Problem(
            where=where,
            key=f"{_KEY}.units",
            found="a unit twice",
            rule="each unit holds the same part of the storage",
            fix="name each once",
        )


def _rate_problems(said: StorageTraffic, topology: Topology, storage: Storage) -> Iterator[Problem]:
    """Yield rates that are more than the NICs of a node carry."""
    if topology.fabric is None:
        return
    nodes = topology.width / storage.node_size
    most = float(topology.fabric.port_bandwidth.sum(axis=1).max()) / nodes
    for key, rate in (("read", said.read), ("write", said.write)):
        if rate is not None and rate > most:
            yield Problem(
                key=f"{_KEY}.{key}",
                found=f"{rate / GB:g} GB/s",
                rule=f"the NICs of a node carry {most / GB:g} GB/s",
                fix=f'at most {most / GB:g} GB/s, or nics = "{StorageNics.OWN}"',
            )
