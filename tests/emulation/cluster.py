"""An emulated cluster: hosts are network namespaces, joined by bridges and rate-limited links.

Links are token buckets in both directions. A burst of two segments lets the bucket pass whole
segmentation-offload packets; more would be bytes for nothing whenever a link has been idle. The
uplinks between racks give each source host a class of its own, so that flows share them max-min
fairly as switches with fair queues do; a plain queue is up to 18 % off between groups of different
size.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.emulation.namespaces import Namespace, NamespaceError, new_namespace

SEGMENT = 16384
"""Bytes of the largest packet that a host hands to its link."""
BURST = 2 * SEGMENT
_QUEUE = "4mb"
_BITS = 8
_TCP = {
    "tcp_congestion_control": "reno",
    "tcp_no_metrics_save": "1",
    "tcp_slow_start_after_idle": "0",
    "tcp_limit_output_bytes": "32768",
}
"""No memory of earlier connections and no slow start after a pause: each transfer is alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Hosts with one address each; `hosts[i]` is where rank i runs."""

    hosts: tuple[Namespace, ...]
    switches: Namespace
    racks: int
    rate: float
    """Of a host's link, bits/s each way."""
    uplink: float | None
    """Of a rack's link to the core, bits/s each way; None with one rack."""
    made: list[Namespace] = field(default_factory=list)

    def address(self, host: int) -> str:
        """Return the address of a host."""
        return f"10.77.0.{host + 1}"

    def set_rate(self, rate: float) -> None:
        """Give every host's link another rate, bits/s."""
        for number, host in enumerate(self.hosts):
            host.batch("tc", [_bucket("eth0", rate)])
            self.switches.batch("tc", [_bucket(f"p{number}", rate)])


@contextmanager
def cluster(
    hosts: int, rate: float, *, racks: int = 1, uplink: float | None = None
) -> Iterator[Cluster]:
    """Make a cluster of `hosts` hosts, spread evenly over `racks`; it is gone afterwards.

    Raises:
        NamespaceError: the kernel, the rights or the programs here do not allow it.
    """
    missing = [program for program in ("ip", "tc") if shutil.which(program) is None]
    if missing:
        raise NamespaceError(f"no program {' and '.join(missing)} (package iproute2)")
    made: list[Namespace] = []
    try:
        made.extend(new_namespace() for _ in range(hosts + 1))
        switches, *rest = made
        built = Cluster(
            hosts=tuple(rest), switches=switches, racks=racks, rate=rate, uplink=uplink, made=made
        )
        _wire(built)
        yield built
    finally:
        for namespace in made:
            namespace.close()


def _wire(made: Cluster) -> None:
    lines = [line for rack in range(made.racks) for line in _bridge(f"br{rack}")]
    if made.racks > 1:
        lines += _bridge("core")
        lines += [line for rack in range(made.racks) for line in _uplink(rack)]
    for number, host in enumerate(made.hosts):
        rack = number * made.racks // len(made.hosts)
        lines += [
            f"link add p{number} type veth peer name eth0 netns {host.path}",
            f"link set p{number} master br{rack} gso_max_size {SEGMENT} up",
        ]
    made.switches.batch("ip", lines)
    for number, host in enumerate(made.hosts):
        host.batch(
            "ip",
            [
                "link set lo up",
                f"addr add {made.address(number)}/16 dev eth0",
                f"link set eth0 gso_max_size {SEGMENT} up",
            ],
        )
        host.settings(_TCP)
    made.set_rate(made.rate)
    if made.uplink is not None:
        for rack in range(made.racks):
            for device in (f"up{rack}", f"cr{rack}"):
                made.switches.batch("tc", _fair_bucket(made, device, made.uplink))


def _bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge mcast_snooping 0", f"link set {name} up"]


def _uplink(rack: int) -> list[str]:
    return [
        f"link add up{rack} type veth peer name cr{rack}",
        f"link set up{rack} master br{rack} gso_max_size {SEGMENT} up",
        f"link set cr{rack} master core gso_max_size {SEGMENT} up",
    ]


def _bucket(device: str, rate: float) -> str:
    return f"qdisc replace dev {device} root tbf rate {rate:.0f}bit burst {BURST} limit {_QUEUE}"


def _fair_bucket(made: Cluster, device: str, rate: float) -> list[str]:
    """Return a bucket with a class for each source host, which may borrow up to the whole rate."""
    share, burst = rate / len(made.hosts), f"burst {BURST} cburst {BURST} quantum {SEGMENT}"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 99 r2q 1000",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate:.0f}bit {burst}",
        f"class add dev {device} parent 1:1 classid 1:99 htb rate {share:.0f}bit"
        f" ceil {rate:.0f}bit {burst}",
    ]
    for number in range(len(made.hosts)):
        lines += [
            f"class add dev {device} parent 1:1 classid 1:{number + 16:x} htb"
            f" rate {share:.0f}bit ceil {rate:.0f}bit {burst}",
            f"filter add dev {device} parent 1: protocol ip u32"
            f" match ip src {made.address(number)}/32 flowid 1:{number + 16:x}",
        ]
    return lines
