from __future__ import annotations

import pytest

from calibrate.batches import World
from calibrate.group_ranks import Groups, ranks_of
from calibrate.points import CollectivePoint, GroupKind
from simulator.errors import InputError
from simulator.parallel.groups import Collective

TWO_NODES = World(size=8, local_size=4)
FOUR_HOSTS = World(size=4, local_size=1)


def _point(kind: GroupKind, ranks: int, nodes: int, **more: int) -> CollectivePoint:
    return CollectivePoint(
        collective=Collective.ALL_REDUCE, ranks=ranks, nodes=nodes, bytes=64, group=kind, **more
    )


@pytest.mark.parametrize(
    ("kind", "ranks", "nodes", "world", "groups"),
    [
        (GroupKind.FIRST, 2, 1, TWO_NODES, ((0, 1),)),
        (GroupKind.FIRST, 8, 2, TWO_NODES, (tuple(range(8)),)),
        (GroupKind.FIRST, 3, 3, FOUR_HOSTS, ((0, 1, 2),)),
        (GroupKind.ONE_A_NODE, 2, 2, TWO_NODES, ((0, 4),)),
        (GroupKind.HALVES, 4, 2, TWO_NODES, ((0, 1, 4, 5), (2, 3, 6, 7))),
        (GroupKind.HALVES, 4, 1, TWO_NODES, ((0, 1, 2, 3), (4, 5, 6, 7))),
        (GroupKind.HALVES, 2, 2, FOUR_HOSTS, ((0, 1), (2, 3))),
        (GroupKind.RAILS, 2, 2, TWO_NODES, ((0, 4), (1, 5), (2, 6), (3, 7))),
    ],
)
def test_a_group_has_these_ranks(
    kind: GroupKind, ranks: int, nodes: int, world: World, groups: Groups
) -> None:
    assert ranks_of(_point(kind, ranks, nodes), world) == groups


def test_a_pair_names_its_sender_first() -> None:
    assert ranks_of(_point(GroupKind.PAIR, 2, 2, first=5, second=1), TWO_NODES) == ((5, 1),)


@pytest.mark.parametrize(
    ("point", "words"),
    [
        (_point(GroupKind.FIRST, 6, 2), "whole nodes of 4 ranks (found 6)"),
        (_point(GroupKind.FIRST, 16, 2), "has 8 ranks"),
        (_point(GroupKind.FIRST, 4, 2), "on 1 node(s)"),
        (_point(GroupKind.RAILS, 4, 2), "has 2 ranks"),
        (_point(GroupKind.ONE_A_NODE, 3, 3), "has 2 ranks"),
        (_point(GroupKind.PAIR, 2, 1), "two different ranks from 0 to 7"),
        (_point(GroupKind.PAIR, 2, 1, first=0, second=8), "two different ranks from 0 to 7"),
        (_point(GroupKind.PAIR, 2, 1, first=3, second=3), "two different ranks from 0 to 7"),
        (_point(GroupKind.PAIR, 2, 1, first=3, second=4), "on 2 node(s)"),
    ],
)
def test_a_group_that_the_world_lacks_is_refused(point: CollectivePoint, words: str) -> None:
    with pytest.raises(InputError) as caught:
        ranks_of(point, TWO_NODES)
    assert words in str(caught.value)


def test_an_odd_world_has_no_halves() -> None:
    with pytest.raises(InputError, match="no halves of this kind"):
        ranks_of(_point(GroupKind.HALVES, 2, 3), World(size=3, local_size=1))
