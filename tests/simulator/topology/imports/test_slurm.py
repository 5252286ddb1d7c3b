"""Slurm's topology.conf: trees, rails, blocks, and files that are no network."""

from __future__ import annotations

from collections import Counter

import pytest

from simulator.errors import InputError
from simulator.topology.imports.records import ImportedFabric, ImportOptions
from tests.simulator.topology.imports.samples import GB, options, profile, read

TREE = """
# two tiers
SwitchName=leaf0 Nodes=node[00-03]  LinkSpeed=900
switchname=leaf1 nodes=node[04-06],extra
SwitchName=spine \\
    Switches=leaf[0-1]   # joins all
"""
EDR = 50 * GB
"""Of one NIC of a DGX H100."""


def fabric_of(text: str, given: ImportOptions | None = None) -> ImportedFabric:
    """Return the network that a file describes."""
    fabric = read(text, given).fabric
    assert fabric is not None
    return fabric


def uplinks(fabric: ImportedFabric) -> dict[tuple[str, str], float]:
    """Return bytes/s of each cable between switches, over that of a NIC."""
    return {(cable.one, cable.other): cable.bandwidth / EDR for cable in fabric.cables}


def test_nodes_are_in_the_order_of_the_file() -> None:
    assert fabric_of(TREE).nodes == (*(f"node{n:02d}" for n in range(7)), "extra")


def test_a_switch_has_upwards_what_its_nodes_have() -> None:
    # Four nodes of eight NICs below each leaf.
    assert uplinks(fabric_of(TREE)) == {("leaf0", "spine"): 32, ("leaf1", "spine"): 32}


def test_oversubscription_is_that_of_the_leaves() -> None:
    three = TREE + "SwitchName=other Nodes=node[10-11]\nSwitchName=top Switches=spine,other\n"
    assert uplinks(fabric_of(three, options(oversubscription=2.0))) == {
        ("leaf0", "spine"): 16,
        ("leaf1", "spine"): 16,
        ("spine", "top"): 32,
        ("other", "top"): 8,
    }


def test_two_switches_above_share_what_comes_up() -> None:
    text = "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\n" + "".join(
        f"SwitchName=s{n} Switches=a,b\n" for n in range(2)
    )
    assert set(uplinks(fabric_of(text)).values()) == {8}


def test_a_node_below_several_leaves_has_a_rail_at_each() -> None:
    rails = "".join(f"SwitchName=rail{n} Nodes=n[0-3]\n" for n in range(4))
    fabric = fabric_of(rails + "SwitchName=top Switches=rail[0-3]\n")
    plugged = Counter((plug.switch, plug.port) for plug in fabric.plugs)
    assert plugged == {(f"rail{port // 2}", port): 4 for port in range(8)}


def test_a_node_below_more_leaves_than_it_has_nics_is_noted() -> None:
    rails = "".join(f"SwitchName=rail{n} Nodes=n[0-3]\n" for n in range(9))
    notes = read(rails + "SwitchName=top Switches=rail[0-8]\n").notes
    assert "n0 is below 9 switches, with 8 NICs a node" in str(notes[0])


def test_speeds_in_units_of_the_writers_are_not_used_and_noted() -> None:
    notes = [str(note) for note in read(TREE).notes]
    assert "LinkSpeed of 1 switches is in units of the writer's; not used" in notes


def test_blocks_are_joined_by_one_more_switch() -> None:
    text = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n"
    assert uplinks(fabric_of(text)) == {("b1", "blocks"): 16, ("b2", "blocks"): 16}


def test_all_of_a_wrong_file_is_shown_at_once() -> None:
    text = "SwitchName=a Nodes=n[1-\nSwitchName=b Nodes=n[x]\nSwitchName=c Nodes=n1\n"
    with pytest.raises(InputError) as caught:
        read(text)
    assert [problem.key for problem in caught.value.problems] == ["line 1", "line 2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "line 2: a is described at line 1"),
        ("SwitchName=a Nodes=n1\nSwitchName=t Switches=a,lef\n", "line 2: there is no switch lef"),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Switches=c\nSwitchName=c Switches=b\n",
            "below itself: b -> c -> b",
        ),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n",
            "2 networks that nothing joins, one each below a, b",
        ),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "no switch has a node"),
        ("SwitchName=a\n", "a has neither Nodes nor Switches"),
        ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", "switches or blocks, not both"),
    ],
)
def test_a_file_that_is_no_network_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(text)


def test_a_profile_must_say_what_nics_have() -> None:
    with pytest.raises(
        InputError, match=r"nothing says what the NICs of a node have(.|\n)*--profile"
    ):
        read(TREE, options(None))


def test_the_profiles_oversubscription_is_the_default() -> None:
    machine = profile("dgx-h100")
    fabric = machine.machine.fabric.model_copy(update={"oversubscription": 4.0})
    other = machine.model_copy(
        update={"machine": machine.machine.model_copy(update={"fabric": fabric})}
    )
    assert set(uplinks(fabric_of(TREE, ImportOptions(profile=other))).values()) == {8}


def test_a_long_chain_of_switches_is_no_problem() -> None:
    chain = "".join(f"SwitchName=s{n} Switches=s{n + 1}\n" for n in range(3000))
    assert len(fabric_of(f"{chain}SwitchName=s3000 Nodes=n1\n").cables) == 3000


def test_lines_that_are_not_understood_are_noted() -> None:
    notes = [str(note) for note in read(f"{TREE}\nRingName=r Nodes=n9\nnonsense here\n").notes]
    assert [note for note in notes if note.startswith("line ")] == [
        "line 8: not used: ringname",
        "line 9: not understood: nonsense here",
    ]
