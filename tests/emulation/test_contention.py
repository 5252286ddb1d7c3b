"""Two groups at once on an oversubscribed uplink, placed well and badly: forecast and measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from calibrate.points import CollectivePoint
from simulator.cost.collectives.select import plan_collective
from simulator.engine.contention import Placed, Route, simulate_together
from simulator.hardware.profile import Profile
from simulator.parallel.groups import GroupShape
from tests.emulation.cluster import cluster
from tests.emulation.machines import HERE, MEGABIT, Machine, records_of
from tests.emulation.ranks import calibrate_run
from tests.emulation.test_forecasts import show

RATE, UPLINK = 200 * MEGABIT, 150 * MEGABIT
HOSTS, RACKS = 4, 2
PLACEMENTS = {"well": (0, 1, 2, 3), "badly": (0, 2, 1, 3)}
"""Host of each rank; ranks 0 and 1 are one group, 2 and 3 the other."""
MEDIAN = 0.05
_BITS = 8

pytestmark = pytest.mark.alone


def test_groups_that_share_an_uplink_take_as_long_as_forecast(
    two_hosts: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = two_hosts.at(RATE)
    lines, errors = [], []
    for name, hosts in PLACEMENTS.items():
        for point, seconds in measured(tmp_path / name, hosts):
            predicted = forecast(point, hosts, profile)
            errors.append(abs(predicted / seconds - 1))
            size = f"{point.collective} of {point.bytes / 2**20:g} MiB, placed {name}"
            lines.append(f"{predicted / seconds - 1:+7.1%}  {seconds * 1e3:8.1f} ms  {size}")
    summary = f"median {median(errors):.1%}, worst {max(errors):.1%} of {len(errors)}"
    show(capsys, "Two groups at once, forecast over measured", "\n".join(lines), summary)
    assert len(errors) == 2 * 4
    assert median(errors) <= MEDIAN, summary


def test_bad_placement_is_forecast_to_cost_what_the_uplink_is_short_of() -> None:
    """By hand: two flows each way share 150 Mb/s, so that each has 75 instead of 200."""
    routes = [routes_of(group, PLACEMENTS["badly"]) for group in ((0, 1), (2, 3))]
    crossing = [route for group in routes for route in group if "up0" in route]
    assert (len(crossing), capacity()["up0"] / len(crossing)) == (2, UPLINK / 2 / _BITS)


def measured(out: Path, hosts: Sequence[int]) -> list[tuple[CollectivePoint, float]]:
    """Return both halves of the world at once: the point of one of them, and its seconds."""
    with cluster(HOSTS, RATE, racks=RACKS, uplink=UPLINK) as made:
        calibrate_run(made, HERE / "halves.toml", out, ranks=HOSTS, limit=120.0, hosts=hosts)
    found = []
    for record in records_of(out):
        assert isinstance(record.point, CollectivePoint)
        assert record.seconds is not None
        found.append((record.point, record.seconds))
    return found


def forecast(point: CollectivePoint, hosts: Sequence[int], profile: Profile) -> float:
    """Return the seconds until the slower of the two groups is done."""
    plan = plan_collective(point.collective, point.bytes, GroupShape(size=2, per_domain=1), profile)
    placed = [Placed(plan=plan, routes=routes_of(pair, hosts)) for pair in ((0, 1), (2, 3))]
    share = profile.nic_bandwidth / (RATE / _BITS)
    return max(simulate_together(placed, {k: v * share for k, v in capacity().items()}))


def capacity() -> dict[str, float]:
    """Return the bytes/s of every link, each way its own."""
    ports = [f"{way}{host}" for host in range(HOSTS) for way in ("out", "in")]
    trunks = [f"{way}{rack}" for rack in range(RACKS) for way in ("up", "down")]
    return dict.fromkeys(ports, RATE / _BITS) | dict.fromkeys(trunks, UPLINK / _BITS)


def routes_of(pair: tuple[int, int], hosts: Sequence[int]) -> tuple[Route, ...]:
    """Return the links from each rank of a pair to the other."""
    one, other = (hosts[rank] for rank in pair)
    return (_route(one, other), _route(other, one))


def _route(source: int, target: int) -> Route:
    racks = [host * RACKS // HOSTS for host in (source, target)]
    trunk = () if racks[0] == racks[1] else (f"up{racks[0]}", f"down{racks[1]}")
    return (f"out{source}", *trunk, f"in{target}")
