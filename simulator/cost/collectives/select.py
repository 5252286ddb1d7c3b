"""The choice of the algorithm: the fastest that serves the request, as the library's tuner does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from simulator.cost.collectives.registry import ALGORITHMS
from simulator.cost.collectives.request import Links, Request, links_of
from simulator.cost.collectives.residual import corrected, log_residual, taking_turns
from simulator.cost.plan import CommPlan
from simulator.errors import InputError, Problem
from simulator.files import nearest
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, GroupShape

_Key = tuple[Collective, float, GroupShape, int, str | None, float]


def plan_collective(
    collective: Collective,
    payload: float,
    group: GroupShape,
    profile: Profile,
    *,
    algorithm: str | None = None,
) -> CommPlan:
    """Return how `group` does a collective of `payload` bytes: the fastest way, or `algorithm`.

    Sizes as `CommPlan` says. A group of one rank gets an empty plan of 0 seconds. In one domain
    the time is corrected by the profile's measured points, whichever algorithm is taken.

    Raises:
        InputError: no such algorithm, it does not serve this group, or the group spans domains
            and the profile has no NIC.
    """
    costs = _costs_of(_SameObject(profile))
    return costs.plan(collective, payload, group, algorithm=algorithm)


class CollectiveCosts:
    """The plans of one machine, each computed once; owned by whoever asks for many."""

    __slots__ = ("_apart", "_links", "_names", "_plans", "_preferred", "_profile")

    def __init__(
        self,
        profile: Profile,
        *,
        apart: bool = False,
        algorithms: Mapping[str, str] | None = None,
        fabric_reduces: bool = False,
    ) -> None:
        """`apart`: ranks do not start together, as in a training step.

        `algorithms`: collective -> the algorithm that its groups take where it serves them, before
        what the profile names; the others choose as if it was not named. `fabric_reduces`: switches
        between nodes reduce, whatever the profile says.
        """
        self._profile, self._apart = profile, apart
        self._preferred = algorithms or {}
        self._links = links_of(profile, fabric_reduces=fabric_reduces)
        self._names: dict[tuple[Collective, GroupShape], list[str]] = {}
        self._plans: dict[_Key, CommPlan] = {}

    def plan(
        self,
        collective: Collective,
        payload: float,
        group: GroupShape,
        *,
        algorithm: str | None = None,
        network_share: float = 1.0,
    ) -> CommPlan:
        """Return what `plan_collective` returns; `network_share` as in `CommWork`."""
        key = (collective, payload, group, group.stride, algorithm, network_share)
        plan = self._plans.get(key)
        if plan is None:
            assert payload >= 0, payload
            request = Request(
                collective=collective, payload=payload, group=group, network_share=network_share
            )
            plan = self._plans[key] = self._compute(request, algorithm)
        return plan

    def _compute(self, request: Request, algorithm: str | None) -> CommPlan:
        kind = request.collective.value
        named = algorithm or self._preferred.get(kind) or self._links.constants.algorithms.get(kind)
        if named is not None and named not in ALGORITHMS:
            rule, fix = "is not a collective algorithm", nearest(named, list(ALGORITHMS))
            raise InputError(Problem(where=named, rule=rule, fix=fix))
        alone = request.group.size == 1 and request.collective is not Collective.HOST_COPY
        if alone:
            return request.plan(algorithm or "none")
        if request.group.domains > 1:
            # Raises the error that says what is missing where there is no NIC.
            assert self._profile.nic_bandwidth > 0
        plan = _fastest(request, self._links, self._candidates(request, algorithm))
        plan = corrected(plan, log_residual(request, self._links))
        alone = request.collective is Collective.SEND_RECV
        return self.exchanged(plan) if self._apart and not alone else plan

    def exchanged(self, plan: CommPlan) -> CommPlan:
        """Return the plan of ranks that send both ways and did not start together."""
        return taking_turns(plan, self._links.constants)

    def _candidates(self, request: Request, algorithm: str | None) -> list[str]:
        if algorithm is not None:
            return _candidates(request, self._links, algorithm)
        key = (request.collective, request.group)
        names = self._names.get(key)
        if names is None:
            preferred = self._preferred.get(request.collective.value)
            serving = _serving(request.collective, request.group, self._links)
            wanted = preferred if preferred in serving else None
            names = self._names[key] = _candidates(request, self._links, wanted)
        return names


def fastest_plan(request: Request, links: Links, algorithm: str | None = None) -> CommPlan:
    """Return the plan of the fastest algorithm (or the named one) by the formulas alone.

    It is not corrected by measured points; the group has at least two ranks.
    """
    return _fastest(request, links, _candidates(request, links, algorithm))


def _fastest(request: Request, links: Links, names: list[str]) -> CommPlan:
    plans = [ALGORITHMS[name].build(request, links) for name in names]
    return plans[0] if len(plans) == 1 else min(plans, key=_seconds)


def algorithms_for(collective: Collective, group: GroupShape, profile: Profile) -> list[str]:
    """Return the names of all algorithms that serve a collective on a group of this shape."""
    return _serving(collective, group, links_of(profile))


def _candidates(request: Request, links: Links, algorithm: str | None) -> list[str]:
    serving = _serving(request.collective, request.group, links)
    algorithm = algorithm or links.constants.algorithms.get(request.collective.value)
    if algorithm is None:
        return [name for name in serving if ALGORITHMS[name].automatic]
    if algorithm in serving:
        return [algorithm]
    rule = f"does not serve {request.collective} over {_shape(request.group)}"
    raise InputError(Problem(where=algorithm, rule=rule, fix="one of: " + ", ".join(serving)))


def _serving(collective: Collective, group: GroupShape, links: Links) -> list[str]:
    return [
        name
        for name, algorithm in ALGORITHMS.items()
        if collective in algorithm.collectives and algorithm.serves(group, links)
    ]


def _shape(group: GroupShape) -> str:
    return f"{group.size} ranks, {group.per_domain} in each of {group.domains} scale-up domains"


def _seconds(plan: CommPlan) -> float:
    return plan.seconds


class _SameObject:
    """A profile as a cache key: equal only to itself, since its tables cannot be hashed."""

    __slots__ = ("profile",)

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def __hash__(self) -> int:
        return id(self.profile)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameObject) and other.profile is self.profile


@lru_cache(maxsize=16)
def _costs_of(key: _SameObject) -> CollectiveCosts:
    return CollectiveCosts(key.profile)
