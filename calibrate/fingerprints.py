"""Whether two fingerprints are of one machine, so that their measurements may be mixed."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.records import Fingerprint

_EXACT = ("accelerator", "accelerators_per_node", "backend", "driver", "torch", "library", "cpu")
"""Number of ranks and nodes, the kernel and the drawn topology differ from job to job."""
_MEMORY_SHARE = 0.02
"""By which the memory of one kind of device differs: what firmware and kernel keep of it."""
_PER_JOB = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GLOO_SOCKET_IFNAME")
"""Variables that a job scheduler sets, or that only name what differs from node to node."""


def differences(first: Fingerprint, second: Fingerprint) -> tuple[str, ...]:
    """Return what tells two machines apart, in words; empty where nothing does.

    What either does not know is no difference.

    >>> differences(Fingerprint(torch="2.4.0"), Fingerprint(torch="2.5.1", cpu="a CPU"))
    ('torch 2.4.0 and 2.5.1',)
    """
    return tuple(_differences(first, second))


def _differences(first: Fingerprint, second: Fingerprint) -> Iterator[str]:
    for name in _EXACT:
        one, other = getattr(first, name), getattr(second, name)
        if None not in (one, other) and one != other:
            yield f"{name} {one} and {other}"
    memory, other_memory = first.accelerator_memory, second.accelerator_memory
    if memory and other_memory and abs(memory / other_memory - 1) > _MEMORY_SHARE:
        yield f"accelerator_memory {memory:.4g} and {other_memory:.4g} bytes"
    if first.environment or second.environment:
        yield from _variables(first.environment, second.environment)


def _variables(first: dict[str, str], second: dict[str, str]) -> Iterator[str]:
    for name in sorted((first.keys() | second.keys()) - set(_PER_JOB)):
        one, other = first.get(name, "not set"), second.get(name, "not set")
        if one != other:
            yield f"{name} {one} and {other}"
