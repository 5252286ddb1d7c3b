"""The fluid network: flows by hand, arriving and leaving at different times."""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable
from dataclasses import dataclass

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.sharing import max_min_rates
from simulator.engine.network import Network

LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that start over some links at a time, with a cap on their rate."""

    at: float
    size: float
    cap: float = 1e9
    links: tuple[Hashable, ...] = (LINK,)


def ends(transfers: list[Transfer], capacity: dict[Hashable, float]) -> list[float]:
    """Return when each transfer is over."""
    env = simpy.Environment()
    network = Network(env, dict(capacity))
    done = [0.0] * len(transfers)

    def send(index: int, transfer: Transfer) -> Generator[simpy.Event, None, None]:
        yield env.timeout(transfer.at)
        yield from network.transfer(transfer.links, transfer.size, transfer.cap)
        done[index] = env.now

    for index, transfer in enumerate(transfers):
        env.process(send(index, transfer))
    env.run()
    return done


def test_a_flow_alone_takes_its_bytes_over_the_link() -> None:
    assert ends([Transfer(at=1, size=100)], {LINK: 10}) == [11.0]


def test_a_flow_alone_is_held_to_its_cap() -> None:
    assert ends([Transfer(at=0, size=100, cap=4)], {LINK: 10}) == [25.0]


def test_two_flows_share_a_link_equally() -> None:
    assert ends([Transfer(at=0, size=100)] * 2, {LINK: 10}) == [20.0, 20.0]


def test_a_late_flow_slows_the_first_and_speeds_up_when_it_is_gone() -> None:
    # 50 bytes alone until 5, 50 at half the rate until 15; the second then has 50 left.
    late = [Transfer(at=0, size=100), Transfer(at=5, size=100)]
    assert ends(late, {LINK: 10}) == [15.0, 20.0]


def test_what_a_capped_flow_leaves_goes_to_the_other() -> None:
    slow_and_fast = [Transfer(at=0, size=20, cap=2), Transfer(at=0, size=80)]
    assert ends(slow_and_fast, {LINK: 10}) == [10.0, 10.0]


def test_flows_on_different_links_do_not_meet() -> None:
    apart = [Transfer(at=0, size=100, links=("a",)), Transfer(at=0, size=50, links=("b",))]
    assert ends(apart, {"a": 10, "b": 10}) == [10.0, 5.0]


def test_a_flow_over_two_links_is_held_by_the_busier_one() -> None:
    # a: x; a and b: y; b: z. On b, of 4, y and z take 2 each; x gets 8 of a's 10.
    crossing = [
        Transfer(at=0, size=80, links=("a",)),
        Transfer(at=0, size=20, links=("a", "b")),
        Transfer(at=0, size=20, links=("b",)),
    ]
    assert ends(crossing, {"a": 10, "b": 4}) == [10.0, 10.0, 10.0]


TRANSFERS = st.lists(
    st.builds(
        Transfer,
        at=st.integers(0, 20),
        size=st.integers(1, 100),
        cap=st.integers(1, 20),
        links=st.sampled_from(("a", "b", "c")).map(lambda link: (link,))
        | st.just(("a", "b"))
        | st.just(("b", "c")),
    ),
    min_size=1,
    max_size=6,
)
LINKS: dict[Hashable, float] = {"a": 10.0, "b": 7.0, "c": 3.0}


@given(TRANSFERS)
def test_no_flow_is_faster_than_alone(transfers: list[Transfer]) -> None:
    together = ends(transfers, LINKS)
    alone = [ends([transfer], LINKS)[0] for transfer in transfers]
    early = [t for t, (e, a) in enumerate(zip(together, alone, strict=True)) if e < a * (1 - 1e-9)]
    assert early == []


@given(TRANSFERS)
def test_no_link_carries_more_than_its_capacity(transfers: list[Transfer]) -> None:
    done = max(ends(transfers, LINKS))
    first = min(transfer.at for transfer in transfers)
    loads = {link: sum(t.size for t in transfers if link in t.links) for link in LINKS}
    over = [link for link, load in loads.items() if load > LINKS[link] * (done - first) + 1e-6]
    assert over == []


@given(TRANSFERS, st.integers(2, 1000))
def test_time_rescales_with_the_second(transfers: list[Transfer], factor: int) -> None:
    slower = [
        Transfer(at=t.at * factor, size=t.size, cap=t.cap / factor, links=t.links)
        for t in transfers
    ]
    slow_links = {link: rate / factor for link, rate in LINKS.items()}
    expected = [end * factor for end in ends(transfers, LINKS)]
    assert ends(slower, slow_links) == pytest.approx(expected)


def ends_step_by_step(transfers: list[Transfer], capacity: dict[Hashable, float]) -> list[float]:
    """Return the same from max-min rates alone, found anew at every start and every end."""
    left = [float(transfer.size) for transfer in transfers]
    done, now = [math.inf] * len(transfers), 0.0
    while math.inf in done:
        on = [i for i, t in enumerate(transfers) if t.at <= now and math.isinf(done[i])]
        routes, caps = [transfers[i].links for i in on], [transfers[i].cap for i in on]
        rates = dict(zip(on, max_min_rates(routes, caps, capacity), strict=True))
        ends_at = {i: now + left[i] / rates[i] for i in on}
        later = [float(t.at) for t in transfers if t.at > now]
        after = min([*ends_at.values(), *later])
        for i in on:
            left[i] -= rates[i] * (after - now)
            if ends_at[i] <= after * (1 + 1e-12):
                done[i] = after
        now = after
    return done


@given(TRANSFERS)
def test_flows_end_when_rates_found_anew_at_every_change_say_so(transfers: list[Transfer]) -> None:
    assert ends(transfers, LINKS) == pytest.approx(ends_step_by_step(transfers, LINKS), rel=1e-9)


def test_a_link_that_many_flows_share_costs_a_few_events_a_flow() -> None:
    """Each that starts or ends changes the rate of all others: one timer for them, not one each."""
    counts = []
    for number in (50, 100):
        env = simpy.Environment()
        network = Network(env, {LINK: 10.0})
        for size in range(number):
            env.process(network.transfer((LINK,), 100.0 + size, 10.0))
        counts.append(_events(env))
    assert counts[1] <= 2 * counts[0] <= 6 * 100


def _events(env: simpy.Environment) -> int:
    count = 0
    while env.peek() < math.inf:
        env.step()
        count += 1
    return count


def test_a_flow_that_is_throttled_leaves_its_fellows_as_they_are() -> None:
    # 5 each until 4, then 2 and 8: the second has its other 80 bytes after 10 more seconds.
    env = simpy.Environment()
    network = Network(env, {LINK: 10.0})
    first, second = (network.start((LINK,), 100.0, 10.0) for _ in range(2))
    env.run(until=4)
    network.throttle(first, 2.0)
    env.run(until=second.done)
    assert env.now == pytest.approx(14.0)
    # It has carried 20 and 20, and goes on with 2 a second.
    env.run(until=first.done)
    assert env.now == pytest.approx(44.0)
