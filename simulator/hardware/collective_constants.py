"""Constants of the collective-communication model: ring, NVLS, all-to-all, send/recv, network.

Bandwidths are efficiencies, to be multiplied by the nominal bandwidth of the profile's links, so
that one record serves a machine with another link; latencies are absolute.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from simulator.files import FileRecord, nearest
from simulator.units import Bytes, Seconds

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "broadcast",
    "reduce",
    "sendrecv",
    "hostcopy",
)
"""As `simulator.parallel.groups.Collective` names them."""


def _known(name: str) -> str:
    if name not in COLLECTIVES:
        raise ValueError(f"is no collective; {nearest(name, list(COLLECTIVES))}")
    return name


_CollectiveName = Annotated[str, AfterValidator(_known)]


class RingConstants(FileRecord):
    """One collective done as a ring in one scale-up domain.

    With `s` bytes over `n` ranks, `L` steps and `W` wire bytes a rank::

        T = start + L step_latency + (W / efficiency + (s/n) chunk_cost) / bandwidth
            + (bulk_start + L bulk_step) W / (W + bulk_bytes)

    The last term is the change from the latency-bound protocols (LL, LL128) to the bulk one.
    """

    start: Seconds
    """Launch of the kernel and first hand-shake, seconds."""
    step_latency: Seconds
    """Each of the `L` steps with a small message, seconds."""
    efficiency: float = Field(gt=0)
    """Wire rate of large messages over the nominal scale-up bandwidth."""
    chunk_cost: float = Field(default=0.0, ge=0)
    """Bytes of extra traffic for each byte of a rank's own chunk (copy in and out)."""
    bulk_start: Seconds = 0.0
    """Added once by the bulk protocol, seconds."""
    bulk_step: Seconds = 0.0
    """Added at each step by the bulk protocol, seconds."""
    bulk_bytes: Bytes = 1.0
    """Wire bytes at which half of the bulk protocol's cost has set in."""


class NvlsConstants(FileRecord):
    """All-reduce inside the switch (NVLink SHARP): `T = start + s (1 + 1/n) / (eff bandwidth)`."""

    start: Seconds
    """Launch and multicast hand-shake, seconds."""
    efficiency: float = Field(gt=0)
    """Rate over the nominal scale-up bandwidth."""
    min_ranks: int = Field(default=4, ge=2)
    """Smallest group for which the library takes it."""


class PairwiseConstants(FileRecord):
    """All-to-all as point-to-point messages between all pairs of a scale-up domain.

    `T = start + (n-1) peer_latency + (W / efficiency + (s/n) chunk_cost) / bandwidth
    + bulk_start x / (1 + x)` with `x = (s/n / bulk_bytes)^2`.
    """

    start: Seconds
    """Launch, seconds."""
    peer_latency: Seconds
    """Added by each peer, seconds."""
    efficiency: float = Field(gt=0)
    """Wire rate of large messages over the nominal scale-up bandwidth."""
    chunk_cost: float = Field(default=0.0, ge=0)
    """Bytes of extra traffic for each byte of the chunk that stays on the rank."""
    bulk_start: Seconds = 0.0
    """Added once messages are larger than `bulk_bytes`, seconds."""
    bulk_bytes: Bytes = 1.0
    """Message to one peer at which half of `bulk_start` has set in, bytes."""


class SendRecvConstants(FileRecord):
    """One message to a peer in the domain: `T = start + s / (efficiency bandwidth)`."""

    start: Seconds
    """Launch and hand-shake, seconds."""
    efficiency: float = Field(gt=0)
    """Rate of large messages over the nominal scale-up bandwidth."""


class HostCopyConstants(FileRecord):
    """A copy between an accelerator and pinned host memory: `T = start + s / (eff bandwidth)`."""

    start: Seconds
    """Launch of the copy engine, seconds."""
    efficiency: float = Field(gt=0)
    """Rate of large copies over the profile's `node.host.pcie_bandwidth`, either direction."""


class NetworkConstants(FileRecord):
    """What a collective adds when it leaves the domain; NIC rates stand in the profile.

    With `d` hops in sequence (ring: nodes; tree: 2 log2 nodes), `w` bytes over one NIC share and
    `m` bytes a hop (ring: a rank's chunk; tree: `w`)::

        T = start + d hop (1 + packet_factor m / (m + packet_bytes)) + w / share
            + (bulk_start + d bulk_step) m / (m + bulk_bytes)
            + d fill / share m / (m + fill_bytes),    hop = hop_factor nic.latency

    The last term is the filling of the pipeline: a hop passes nothing on before it has a buffer.
    """

    start: Seconds = 0.0
    """First hand-shake, once, seconds."""
    hop_factor: float = Field(default=1.0, gt=0)
    """Latency of one hop over the profile's `node.nic.latency`."""
    packet_factor: float = Field(default=0.0, ge=0)
    """Latencies of a hop that are added once messages exceed the packets of the low-latency
    protocols (LL, LL128)."""
    packet_bytes: Bytes = 1.0
    """Bytes of a message at which half of `packet_factor` has set in."""
    bulk_start: Seconds = 0.0
    """Added once by the bulk protocol (proxy thread, registration), seconds."""
    bulk_step: Seconds = 0.0
    """Added at each hop by the bulk protocol, seconds."""
    bulk_bytes: Bytes = 1.0
    """Bytes of a message at which half of the bulk protocol's cost has set in."""
    burst: Bytes = 0.0
    """Bytes that pass faster than a NIC share's rate when the link has been idle (the bucket of a
    link whose rate is limited by tokens); `w` above counts those behind them."""
    fill: Bytes = 0.0
    """Bytes that each hop takes in, at the rate of a NIC share, before it passes them on."""
    fill_bytes: Bytes = 1.0
    """Bytes of a message at which half of `fill` is in flight; smaller ones are cut into smaller
    pieces."""


class ResidualCurve(FileRecord):
    """Measured over modelled time of one collective at one group size, at rising payloads."""

    op: Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall"]
    """The collective, as nccl-tests names it."""
    ranks: int = Field(ge=2)
    """Ranks of the group, all in one scale-up domain."""
    payload: tuple[Bytes, ...] = Field(min_length=1)
    """Payloads of the points, rising, bytes."""
    log_ratio: tuple[float, ...] = Field(min_length=1)
    """log(measured / modelled) at these payloads."""

    @model_validator(mode="after")
    def _points_are_ordered(self) -> Self:
        if len(self.payload) != len(self.log_ratio):
            raise ValueError(
                f"payload has {len(self.payload)} points and log_ratio {len(self.log_ratio)}; "
                "they must have the same number"
            )
        if any(low >= high for low, high in pairwise(self.payload)):
            raise ValueError("payload must rise from point to point")
        return self


class CollectiveConstants(FileRecord):
    """How the communication library does on one machine.

    Broadcast takes the constants of all-gather and reduce those of reduce-scatter: they run the
    same rings, and no one publishes them apart.
    """

    all_reduce: RingConstants
    all_gather: RingConstants
    reduce_scatter: RingConstants
    nvls: NvlsConstants | None = None
    """None where the library never reduces in the switch."""
    all_to_all: PairwiseConstants
    send_recv: SendRecvConstants
    host_copy: HostCopyConstants
    network: NetworkConstants
    algorithms: dict[_CollectiveName, str] = Field(default_factory=dict)
    """Collective -> the algorithm that the library always takes, by their names; the fastest one
    where it is not named."""
    apart: dict[_CollectiveName, Annotated[float, Field(ge=1)]] = Field(default_factory=dict)
    """Collective -> time on the wire of two ranks that do not start together over that of two that
    do; 1 where it is not named. In a step ranks never start quite together. gloo sends a rank's
    readiness to receive behind what it is sending already, so that two that exchange take turns."""
    residual: tuple[ResidualCurve, ...] = ()
    """Correction of the formulas where points were measured, in one scale-up domain."""
