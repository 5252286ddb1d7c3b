"""What a scenario says of its network and of how sound its machines are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from simulator.files import FileRecord
from simulator.topology.routes.spreading import Spreading
from simulator.units import GB, US, Bandwidth, Seconds

_Rank = Annotated[int, Field(ge=0)]
_WAYS = 1
_LEAST_FACTOR = 1e-6
"""Of bandwidth: a slower link is as good as failed."""
_SHORTEST_PERIOD = 100 * US
"""Of bursts. Passes and collectives of a step last longer: to them shorter bursts are a steady
stream, and a step has too many to play."""
_LEAST_DEVIATION = 1e-6
"""Of jitter. Less is lost among the roundings of the distributions' quantiles."""
_MOST_NORMAL_DEVIATION = 0.999
"""Of positive normal times, which have less than 1; next to it their quantiles have no digits."""


class ChangedLink(FileRecord):
    """Links that are not what the topology says: slower, faster or failed, one direction each."""

    link: str
    """Name as reports give it ("node3/nic2 -> leaf0"); * stands for any characters."""
    bandwidth: Bandwidth | None = None
    factor: float | None = Field(default=None, ge=_LEAST_FACTOR, le=1000)
    """Bandwidth over what the topology says."""
    failed: bool = False
    """No route takes it."""

    @model_validator(mode="after")
    def _one_change(self) -> Self:
        given = (self.bandwidth is not None) + (self.factor is not None) + self.failed
        if given != _WAYS:
            raise ValueError("give exactly one of bandwidth, factor and failed")
        return self


class BackgroundTraffic(FileRecord):
    """What others send over the fabric while the step runs."""

    source: tuple[_Rank, ...] = Field(min_length=1)
    """Accelerators that send, by their place in the cluster, each to the one of `target`."""
    target: tuple[_Rank, ...] = Field(min_length=1)
    bandwidth: Bandwidth
    """That each asks for; it gets its fair share of what is there."""
    period: Seconds | None = None
    """Between one burst and the next; None: it never pauses."""
    duty: float = Field(default=1.0, gt=0, le=1)
    """Share of a period in which it sends."""

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"source has {len(self.source)} accelerators and target {len(self.target)}; "
                "each sends to the one at the same place"
            )
        same = [a for a, b in zip(self.source, self.target, strict=True) if a == b]
        if same:
            raise ValueError(
                f"accelerator {same[0]} is at the same place in source and target, and what it "
                "sends to itself loads no link; name another target"
            )
        if (self.period is None) != (self.duty == 1.0):
            raise ValueError("period and a duty below 1 belong together")
        if self.period is not None and self.period < _SHORTEST_PERIOD:
            raise ValueError(
                f"a period is at least {_SHORTEST_PERIOD / US:g} us; of shorter bursts give the "
                f'mean, bandwidth = "{self.bandwidth * self.duty / GB:g} GB/s", and no period'
            )
        return self


class StorageNics(StrEnum):
    """Over which NICs nodes reach storage."""

    COMPUTE = "compute"
    """Those of the training traffic."""
    OWN = "own"
    """Others, on a network of their own: it then holds up nothing."""


class StorageTraffic(FileRecord):
    """What nodes read from storage and write to it while they train."""

    switches: str | None = Field(default=None, min_length=1)
    """Switches that storage is plugged into, by name as `traincast topology show` prints them; *
    stands for any characters. Left out, those farthest from the nodes: the top of a tree."""
    units: tuple[_Rank, ...] = ()
    """Instead, units of the topology whose nodes hold the storage, evenly."""
    nics: StorageNics = StorageNics.COMPUTE
    read: Bandwidth | None = None
    """What every node reads of the dataset all the time."""
    write: Bandwidth | None = None
    """What every node writes at most while a checkpoint is written, beside the steps that go on."""
    checkpoint_every: int | None = Field(default=None, ge=1, le=10**9)
    """Steps from one checkpoint to the next; its bytes follow from the layout."""

    @model_validator(mode="after")
    def _says_what_and_where(self) -> Self:
        if (self.write is None) != (self.checkpoint_every is None):
            raise ValueError("write and checkpoint_every belong together")
        if self.read is None and self.write is None:
            raise ValueError(
                'give read = "500 MB/s" of a node, or write = "2 GB/s" and checkpoint_every = 100'
            )
        if self.switches is not None and self.units:
            raise ValueError("storage is plugged into switches or held by units; give one of them")
        return self


class NetworkFile(FileRecord):
    """The network behind the NICs, and where ranks stand on it."""

    topology: str | None = None
    """A topology's TOML file; None is what the profile's [node] and [fabric] say."""
    rank_order: str = "block"
    """"block", "cyclic", "plane=N", or a file that places each rank."""
    spreading: Spreading = Spreading.IDEAL
    relay: bool = True
    """Whether a message to another rail first goes to the accelerator at that rail's NIC (PXN)."""
    seed: int = Field(default=0, ge=0)
    """Of the hash."""
    algorithms: dict[str, str] = Field(default_factory=dict)
    """Collective -> the algorithm to take, whatever the profile says."""
    changed: tuple[ChangedLink, ...] = ()
    background: tuple[BackgroundTraffic, ...] = ()
    storage: StorageTraffic | None = None
    """Left out, nothing is read or written."""


class SlowRanks(FileRecord):
    """Ranks whose accelerators are slower than the others."""

    ranks: tuple[_Rank, ...] = Field(min_length=1)
    factor: float = Field(gt=1, le=100)
    """Time of their compute over that of the others."""


class JitterKind(StrEnum):
    """How compute times of the same work scatter from rank to rank and from run to run."""

    NORMAL = "normal"
    """Normal, of positive times only."""
    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    """With a deviation of 1 it is the exponential distribution."""
    SLOW_ONE = "slow-one"
    """One pass in `one_in` is slow, and all others take the same time."""


class JitterFile(FileRecord):
    """Random differences between ranks in the time of each pass."""

    distribution: JitterKind = JitterKind.LOGNORMAL
    deviation: float = Field(ge=_LEAST_DEVIATION, lt=1)
    """Standard deviation of one rank's time of one pass over its mean."""
    one_in: float = Field(default=1000.0, ge=2)
    """Of "slow-one"."""
    steps: int = Field(default=5, ge=1, le=1000)
    """Steps that are drawn; the forecast is their mean."""
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _has_quantiles(self) -> Self:
        if self.distribution is JitterKind.NORMAL and self.deviation > _MOST_NORMAL_DEVIATION:
            raise ValueError(
                f"positive normal times have a deviation of at most {_MOST_NORMAL_DEVIATION} "
                f'(found {self.deviation}); take that, or distribution = "gamma"'
            )
        return self
