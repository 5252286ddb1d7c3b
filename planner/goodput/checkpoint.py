"""A checkpoint: its bytes, how long training waits for it, how long it is under way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite

from simulator.api import Forecaster
from simulator.cost.host_notes import HOST_COPY
from simulator.errors import InputError, Problem
from simulator.hardware.profile import Profile
from simulator.parallel.checkpoint import saved_bytes
from simulator.parallel.layout import ZERO_PARAMETERS, ParallelLayout
from simulator.parallel.states import groups
from simulator.run_file import CheckpointFile, CheckpointMode
from simulator.units import GB, TERA

USUALLY_KEPT = 10
"""Checkpoints that a framework with a limit keeps: torchtitan 0.2 and 0.3, `keep_latest_k`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSize:
    """Bytes of one checkpoint."""

    weights: float
    """Of the parameters in the format in which they compute; 0 where only masters are saved."""
    states: float
    """Master copies and the optimizer's states."""
    expert_weights: float = 0.0
    """Part of `weights`: routed experts."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.states


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTimes:
    """Seconds."""

    stall: float
    """Training waits: for the whole write, or for the copy to host memory."""
    write: float
    """From the end of that until the checkpoint is in storage."""
    read: float
    """Of weights by every replica and of states by every rank that holds them."""

    @property
    def whole(self) -> float:
        """From the step that is saved until its checkpoint is in storage."""
        return self.stall + self.write


def checkpoint_size(forecaster: Forecaster, layout: ParallelLayout) -> CheckpointSize:
    """Return the bytes of a checkpoint of the model with its optimizer, each part saved once.

    See `saved_bytes`. The vocabulary is padded for tp of 1.
    """
    program = forecaster.program(ParallelLayout())
    rest, experts = (saved_bytes(program, group, layout.zero_stage) for group in groups(program, 0))
    return CheckpointSize(
        weights=rest.weights + experts.weights,
        states=rest.states + experts.states,
        expert_weights=experts.weights,
    )


def checkpoint_times(
    size: CheckpointSize,
    file: CheckpointFile,
    profile: Profile,
    layout: ParallelLayout,
    where: str = "",
) -> CheckpointTimes:
    """Return the seconds of writing and reading a checkpoint.

    The write takes size / min(storage, nodes that write x a node's storage bandwidth). An
    asynchronous one holds training up for size / (ranks that write x PCIe x copy efficiency).

    Raises:
        InputError: neither the scenario nor the profile says how fast storage is, or it is so
            slow that no checkpoint ends.
    """
    per_node = profile.node.accelerators
    ranks = layout.world_size if file.sharded else layout.world_size // layout.dp
    writers, nodes = max(1, ranks // per_node), max(1, layout.world_size // per_node)
    if problems := list(_unknown_bandwidth(file, profile, where)):
        raise InputError(*problems)
    one = profile.node.host.storage_bandwidth or inf
    written = min(file.write_bandwidth or inf, writers * one)
    read = min(file.read_bandwidth or file.write_bandwidth or inf, nodes * one)
    write, reading = size.total / written, _read_bytes(size, layout) / read
    if not isfinite(write + reading):
        key, rule = "run.checkpoint", "its bandwidths are so low that no checkpoint ever ends"
        raise InputError(Problem(where=where, key=key, rule=rule))
    copied = ranks * profile.node.host.pcie_bandwidth * _copy_efficiency(profile)
    asynchronous = file.mode is CheckpointMode.ASYNC
    return CheckpointTimes(
        stall=size.total / copied if asynchronous else write,
        write=write if asynchronous else 0.0,
        read=reading,
    )


def checkpoint_notes(
    size: CheckpointSize, file: CheckpointFile, profile: Profile, layout: ParallelLayout
) -> Iterator[str]:
    """Yield what is assumed of checkpoints, and what will not do."""
    if file.mode is not CheckpointMode.ASYNC:
        return
    if HOST_COPY in profile.constants.nominal_blocks():
        yield (
            f"{profile.name}: copies of checkpoints to host memory are assumed to reach "
            f"{_copy_efficiency(profile):.0%} of {profile.node.host.pcie_bandwidth / GB:g} GB/s"
        )
    ranks = layout.world_size if file.sharded else layout.world_size // layout.dp
    staged = size.total / max(1, ranks // profile.node.accelerators)
    if staged > profile.node.host.memory:
        yield (
            f"a checkpoint waits in host memory with {staged / GB:.0f} GB a node, and a node has "
            f"{profile.node.host.memory / GB:.0f} GB"
        )


def keep_notes(count: int, size: float) -> Iterator[str]:
    """Yield that a run keeps all of its `count` checkpoints of `size` bytes, where they are many.

    >>> list(keep_notes(200, 1e12))
    ['all 200 checkpoints are kept, 200 TB in storage by the end; run.checkpoint.keep = 10: 10 TB']
    """
    if count > USUALLY_KEPT:
        yield (
            f"all {count:,} checkpoints are kept, {count * size / TERA:,.3g} TB in storage by the "
            f"end; run.checkpoint.keep = {USUALLY_KEPT}: {USUALLY_KEPT * size / TERA:,.3g} TB"
        )


def _read_bytes(size: CheckpointSize, layout: ParallelLayout) -> float:
    """Return what all ranks read: weights once a replica, of experts once a replica of theirs."""
    if layout.zero_stage >= ZERO_PARAMETERS:
        return size.total
    replicas = layout.dp * layout.cp
    expert_replicas = layout.world_size / (layout.pp * layout.ep * layout.expert_tp)
    rest = size.weights - size.expert_weights
    return rest * replicas + size.expert_weights * expert_replicas + size.states


def _copy_efficiency(profile: Profile) -> float:
    return float(profile.constants.collectives.host_copy.efficiency)


def _unknown_bandwidth(file: CheckpointFile, profile: Profile, where: str) -> Iterator[Problem]:
    if file.write_bandwidth is None and profile.node.host.storage_bandwidth is None:
        yield Problem(
            where=where,
            key="run.checkpoint.write_bandwidth",
            rule="must say how fast checkpoints are written, as the profile has no "
            "node.host.storage_bandwidth",
            fix='write_bandwidth = "100 GB/s", of all nodes together',
        )
