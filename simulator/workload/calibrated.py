"""A stack on a machine where its own costs were measured: these take the place of the assumed."""

from __future__ import annotations

from typing import Any

from simulator.hardware.software_constants import SoftwareConstants
from simulator.workload.stack import Stack


def with_software(stack: Stack, software: SoftwareConstants | None) -> Stack:
    """Return the stack with what was measured on this machine.

    How much communication and compute slow each other belongs to the machine and holds for every
    stack; what launches and collectives cost the CPU belongs to the stack that was measured, and
    so do passes over parts of a model and the step scale (see `own_software`).
    """
    if software is None:
        return stack
    overlap: dict[str, Any] = {}
    if software.compute_slowdown:
        overlap["compute_slowdown"] = software.compute_slowdown
    if software.comm_slowdown is not None:
        overlap["comm_slowdown"] = software.comm_slowdown
    changed: dict[str, Any] = {}
    if overlap:
        changed["overlap"] = stack.overlap.model_copy(update=overlap)
    if own_software(stack, software) is not None:
        costs = {name: getattr(software, name) for name in ("cpu_launch", "cpu_collective")}
        known = {name: seconds for name, seconds in costs.items() if seconds is not None}
        if known:
            changed["kernels"] = stack.kernels.model_copy(update=known)
    return stack.model_copy(update=changed) if changed else stack


def own_software(stack: Stack, software: SoftwareConstants | None) -> SoftwareConstants | None:
    """Return the measurements that are of this very stack: other kernels take another time."""
    return software if software is not None and software.stack == stack.name else None


def software_notes(stack: Stack, software: SoftwareConstants | None) -> tuple[str, ...]:
    """Return a warning where software was measured and this stack is another."""
    if software is None or software.stack == stack.name:
        return ()
    return (
        f"the machine was calibrated with the stack {software.stack}: its launches, passes over "
        f"layers and step scale are not taken for {stack.name}",
    )


def relative_spread(stack: Stack, software: SoftwareConstants | None, constants: float) -> float:
    """Return the relative half-width of a step's 80 % interval.

    Where steps of this stack were measured on this machine theirs counts; else the stack's own and
    what the `constants` add are independent.
    """
    own = own_software(stack, software)
    if own is not None and own.step_spread is not None:
        return float(own.step_spread)
    return float((stack.fit.spread**2 + constants**2) ** 0.5)


def interval_source(stack: Stack, software: SoftwareConstants | None) -> str:
    """Return what `relative_spread` was taken from."""
    own = own_software(stack, software)
    if own is not None and own.step_spread is not None:
        return "steps that were measured on this machine with this stack"
    return f"{stack.name}: {stack.fit.spread_source}"
