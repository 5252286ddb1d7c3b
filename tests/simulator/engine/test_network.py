"""The fluid network: flows by hand, arriving and leaving at different times."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

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
