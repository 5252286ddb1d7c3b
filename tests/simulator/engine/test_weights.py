"""Flows with weights: rates by hand, and what any sharing of links must fulfil."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.plan import Load
from simulator.cost.sharing import max_min_rates
from simulator.engine.fabric import Background, play_background
from simulator.engine.network import Network
from simulator.engine.record import Recorder, Utilisation

FAR = 1e9
ROUNDING = 1e-9


@pytest.mark.parametrize(
    ("weights", "caps", "rates"),
    [
        # 3 r + 1 r = 8.
        ([[3.0], [1.0]], [FAR, FAR], [2.0, 2.0]),
        # The second stops at 1 and leaves 7 to the three of the first.
        ([[3.0], [1.0]], [FAR, 1.0], [7 / 3, 1.0]),
        # A flow that puts a tenth of its bytes on the link gets as much as one that puts all.
        ([[0.1], [1.0]], [FAR, FAR], [8 / 1.1, 8 / 1.1]),
    ],
)
def test_weighted_rates_by_hand(
    weights: list[list[float]], caps: list[float], rates: list[float]
) -> None:
    assert max_min_rates([["a"], ["a"]], caps, {"a": 8.0}, weights) == pytest.approx(rates)


def test_a_bundle_gets_what_its_members_would_get() -> None:
    bundle = max_min_rates([["a"], ["a"]], [FAR] * 2, {"a": 12.0}, [[5.0], [1.0]])
    members = max_min_rates([["a"]] * 6, [FAR] * 6, {"a": 12.0})
    assert bundle == pytest.approx([members[0], members[5]])


LINKS = (0, 1, 2, 3)
ROUTES = st.dictionaries(st.sampled_from(LINKS), st.floats(0.01, 100.0), min_size=1, max_size=4)
FLOWS = st.lists(st.tuples(ROUTES, st.floats(0.01, 100.0)), min_size=1, max_size=8)
CAPACITY = st.fixed_dictionaries({link: st.floats(0.1, 100.0) for link in LINKS})
Flows = list[tuple[dict[int, float], float]]


def rates_of(flows: Flows, capacity: dict[int, float]) -> list[float]:
    links: dict[Hashable, float] = dict(capacity.items())
    return max_min_rates(
        [list(route) for route, _ in flows],
        [cap for _, cap in flows],
        links,
        [list(route.values()) for route, _ in flows],
    )


def loads_of(flows: Flows, rates: list[float]) -> dict[int, float]:
    rows = list(zip(flows, rates, strict=True))
    return {
        link: sum(route[link] * rate for (route, _), rate in rows if link in route)
        for link in LINKS
    }


@given(FLOWS, CAPACITY)
def test_no_link_is_over_capacity(flows: Flows, capacity: dict[int, float]) -> None:
    loads = loads_of(flows, rates_of(flows, capacity))
    over = [link for link in LINKS if loads[link] > capacity[link] * (1 + ROUNDING)]
    assert over == []


@given(FLOWS, CAPACITY)
def test_a_flow_below_its_cap_is_among_the_fastest_on_a_full_link(
    flows: Flows, capacity: dict[int, float]
) -> None:
    rates = rates_of(flows, capacity)
    loads = loads_of(flows, rates)
    rows = list(zip(flows, rates, strict=True))
    fastest = {link: max((r for (f, _), r in rows if link in f), default=0.0) for link in LINKS}

    def is_held(route: dict[int, float], rate: float) -> bool:
        full = [link for link in route if loads[link] >= capacity[link] * (1 - ROUNDING)]
        return any(rate >= fastest[link] * (1 - ROUNDING) for link in full)

    free = [flow for (flow, cap), rate in rows if rate < cap and not is_held(flow, rate)]
    assert free == []


@given(FLOWS, CAPACITY, st.floats(1.0, 10.0))
def test_more_capacity_everywhere_makes_no_flow_slower(
    flows: Flows, capacity: dict[int, float], factor: float
) -> None:
    before = rates_of(flows, capacity)
    after = rates_of(flows, {link: rate * factor for link, rate in capacity.items()})
    assert min(b / a for a, b in zip(before, after, strict=True)) >= 1 - ROUNDING


@given(FLOWS, CAPACITY, st.data())
def test_weights_and_capacity_of_a_link_have_one_unit(
    flows: Flows, capacity: dict[int, float], data: st.DataObject
) -> None:
    units = {link: data.draw(st.floats(0.01, 100.0)) for link in LINKS}
    scaled: Flows = [({k: w * units[k] for k, w in route.items()}, cap) for route, cap in flows]
    larger = {link: rate * units[link] for link, rate in capacity.items()}
    assert rates_of(scaled, larger) == pytest.approx(rates_of(flows, capacity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that start at a time, with what each puts on the links."""

    at: float
    size: float
    load: Load
    cap: float = FAR


def played(
    transfers: list[Transfer], capacity: dict[Hashable, float], *background: Background
) -> tuple[list[float], dict[Hashable, Utilisation]]:
    """Return when each transfer is over, and what the links carried."""
    env = simpy.Environment()
    recorder = Recorder()
    network = Network(env, capacity, recorder)
    done: list[float] = [0.0] * len(transfers)

    def send(index: int, transfer: Transfer) -> Generator[simpy.Event, None, None]:
        yield env.timeout(transfer.at)
        load = transfer.load
        yield from network.transfer(load.links, transfer.size, transfer.cap, weights=load.weights)
        done[index] = env.now

    for traffic in background:
        env.process(play_background(env, network, traffic, lambda: all(done)))
    for index, transfer in enumerate(transfers):
        env.process(send(index, transfer))
    env.run()
    network.settle()
    return done, recorder.utilisation()


def over(**weights: float) -> Load:
    """Return the load `over(a=2.0)` on link 0, b on link 1."""
    return Load(links=tuple("ab".index(link) for link in weights), weights=tuple(weights.values()))


def test_a_weight_takes_that_part_of_a_link() -> None:
    assert played([Transfer(at=0, size=100, load=over(a=4.0))], {0: 20.0})[0] == [20.0]


def test_a_heavy_flow_slows_a_light_one_to_its_own_rate() -> None:
    # 3 r + r = 20: both at 5 until the first is done at 10; the other 50 bytes then run at 20.
    flows = [Transfer(at=0, size=50, load=over(a=3.0)), Transfer(at=0, size=100, load=over(a=1.0))]
    assert played(flows, {0: 20.0})[0] == [10.0, 12.5]


def test_the_record_is_what_the_flows_carried_when() -> None:
    flows = [Transfer(at=0, size=50, load=over(a=3.0)), Transfer(at=20, size=10, load=over(b=1.0))]
    _, use = played(flows, {0: 15.0, 1: 10.0})
    assert use == {
        0: Utilisation(times=(0.0, 10.0), rates=(15.0,)),
        1: Utilisation(times=(20.0, 21.0), rates=(10.0,)),
    }


def test_a_link_that_is_idle_between_two_flows_carries_nothing_then() -> None:
    flows = [Transfer(at=at, size=10, load=over(a=1.0)) for at in (0, 5)]
    _, use = played(flows, {0: 10.0})
    assert use[0] == Utilisation(times=(0.0, 1.0, 5.0, 6.0), rates=(10.0, 0.0, 10.0))


LOADS = ROUTES.map(lambda route: Load(links=tuple(route), weights=tuple(route.values())))
TRANSFERS = st.lists(
    st.builds(
        Transfer,
        at=st.integers(0, 20),
        size=st.integers(1, 100),
        cap=st.floats(0.1, 20.0),
        load=LOADS,
    ),
    min_size=1,
    max_size=6,
)


@given(TRANSFERS, CAPACITY)
def test_every_link_carries_all_bytes_and_never_more_than_it_can(
    transfers: list[Transfer], capacity: dict[Hashable, float]
) -> None:
    _, use = played(transfers, capacity)
    sent: dict[int, float] = {}
    for transfer in transfers:
        for link, weight in zip(transfer.load.links, transfer.load.weights, strict=True):
            sent[link] = sent.get(link, 0.0) + weight * transfer.size
    assert {link: each.bytes for link, each in use.items()} == pytest.approx(sent)
    full = [link for link in use if max(use[link].rates) > capacity[link] * (1 + 1e-6)]
    assert full == []


ALWAYS = Background(load=over(a=1.0), demand=FAR)


def test_background_takes_half_of_what_one_flow_would_have() -> None:
    assert played([Transfer(at=0, size=100, load=over(a=1.0))], {0: 20.0}, ALWAYS)[0] == [10.0]


def test_background_takes_no_more_than_it_demands() -> None:
    modest = Background(load=over(a=1.0), demand=5.0)
    assert played([Transfer(at=0, size=60, load=over(a=1.0))], {0: 20.0}, modest)[0] == [4.0]


def test_background_comes_and_goes_with_its_period() -> None:
    # On from 0 to 1, 4 to 5, ...: 10 bytes in a second beside it, 20 in one alone.
    pulses = Background(load=over(a=1.0), demand=FAR, period=4.0, duty=0.25)
    assert played([Transfer(at=0, size=80, load=over(a=1.0))], {0: 20.0}, pulses)[0] == [5.0]


def test_background_is_recorded_with_the_rest() -> None:
    _, use = played([Transfer(at=0, size=100, load=over(a=1.0))], {0: 20.0}, ALWAYS)
    assert use[0].bytes == pytest.approx(200.0)


@given(TRANSFERS, CAPACITY, st.floats(0.1, 100.0))
def test_more_of_one_background_makes_no_lone_flow_faster(
    transfers: list[Transfer], capacity: dict[Hashable, float], demand: float
) -> None:
    alone = transfers[:1]
    traffic = [Background(load=over(a=1.0), demand=d) for d in (demand, 2 * demand)]
    ends = [played(alone, capacity, each)[0][0] for each in traffic]
    assert played(alone, capacity)[0][0] <= ends[0] * (1 + ROUNDING)
    assert ends[0] <= ends[1] * (1 + ROUNDING)
