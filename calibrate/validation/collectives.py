"""Collective rows: one operation of one size over some ranks, timed alone."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.collective_points import adds_integers
from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.links import parse_link
from calibrate.validation.machines import Machines
from calibrate.validation.records import Quantity, RowResult, Status
from simulator.cost.collectives.select import plan_collective
from simulator.errors import InputError
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import US

_SPELLINGS = {
    "all_to_all": Collective.ALL_TO_ALL,
    "send_recv": Collective.SEND_RECV,
    "allreduce": Collective.ALL_REDUCE,
    "allgather": Collective.ALL_GATHER,
    "reducescatter": Collective.REDUCE_SCATTER,
}


class CollectiveForecasts:
    """Forecasts collective rows."""

    def __init__(self, profile: str | None) -> None:
        self._machines = Machines(profile)
        self.stacks: set[str] = set()

    @property
    def profiles(self) -> Sequence[Profile]:
        """The machines that were used."""
        return self._machines.used

    def predict(self, rows: Sequence[tuple[str, Row]]) -> list[RowResult]:
        """Return the forecast of each row, or why there is none, in order."""
        return [self._predict(name, row) for name, row in rows]

    def _predict(self, name: str, row: Row) -> RowResult:
        measured = None
        try:
            measured = row.number("time_us") * US
            collective = _collective(row)
            gpus, nodes = row.integer("gpus"), _nodes(row)
            profile, group = self._placed(row, gpus, nodes)
            payload = row.number("bytes")
            predicted = plan_collective(collective, payload, group, profile).seconds
        except (SkippedRowError, InputError) as error:
            return RowResult(
                id=name,
                status=Status.SKIPPED,
                quantity=Quantity.COLLECTIVE_TIME,
                reason=str(error).partition("\n")[0],
                measured=measured,
                assumed=tuple(row.assumed),
            )
        labels = {"gpu": row.text("gpu") or profile.name, "op": collective.value}
        labels |= {"gpus": str(gpus), "nodes": str(nodes)}
        labels |= {"fabric": row.text("fabric")} if row.known("fabric") else {}
        return RowResult(
            id=name,
            status=Status.PREDICTED,
            quantity=Quantity.COLLECTIVE_TIME,
            measured=measured,
            predicted=predicted,
            assumed=tuple(row.assumed),
            labels=labels,
        )

    def _placed(self, row: Row, gpus: int, nodes: int) -> tuple[Profile, GroupShape]:
        """Return the machine as the row's fabric says, and the group that spans it.

        Nodes share a scale-up domain where the machine's is that large and no network is named.
        """
        if gpus == 1:
            raise SkippedRowError("gpus: 1 has nobody to talk to")
        if gpus % nodes:
            raise SkippedRowError(f"gpus: {gpus} do not divide over {nodes} nodes")
        profile = self._machines.named(row, "gpu")
        domain, each = profile.node.scale_up.domain_size, gpus // nodes
        larger = domain > profile.node.accelerators and gpus <= domain
        if nodes == 1 or (larger and not parse_link(row.text("fabric"), each).family):
            return profile, GroupShape(size=gpus, per_domain=gpus)
        profile = self._machines.joined(row, profile, "fabric", each)
        return profile, GroupShape(size=gpus, per_domain=each)


def _collective(row: Row) -> Collective:
    word = row.text("op").lower()
    if not word:
        raise SkippedRowError("op: not given")
    if word not in [*Collective, *_SPELLINGS]:
        raise row.bad("op", "one of " + ", ".join(Collective))
    collective = _SPELLINGS.get(word) or Collective(word)
    if adds_integers(collective, row.text("dtype")):
        raise SkippedRowError(
            f"dtype: {row.text('dtype')[:60]!r}: reductions of integers are not part of training"
        )
    return collective


def _nodes(row: Row) -> int:
    return row.integer("nodes") if row.known("nodes") else 1
