import pytest

from calibrate.validation.links import NodeLink, parse_link
from simulator.units import GB


@pytest.mark.parametrize(
    ("text", "family", "cards", "gigabits"),
    [
        ("8x 400 Gb/s InfiniBand per node", "InfiniBand", 8, 3200),
        ("4x InfiniBand HDR-class per node, 800 Gb/s", "InfiniBand", 4, 800),
        ("4x Omni-Path per node (OPA 100 Gb/s)", "Omni-Path", 4, 400),
        ("4x Omni-Path per node", "Omni-Path", 4, None),
        ("1600 Gbps per node RoCE (200 Gb/s per GPU)", "RoCE", None, 1600),
        ("InfiniBand 8x50 GB/s per node", "InfiniBand", 8, 3200),
        ("400 Gb/s RDMA per GPU", "", 8, 3200),
        ("8x HDR200 IB per node", "InfiniBand", 8, 1600),
        ("8x NDR IB", "InfiniBand", 8, 3200),
        ("2x ConnectX-7 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", "InfiniBand", 8, 3200),
        ("1x Ethernet 100Gb/s, 8x CX7 InfiniBand (400Gb/s)", "InfiniBand", 8, 3200),
        ("EFAv1-4x100G", "EFA", 4, 400),
        ("RoCE-cross-domain(2x400G/GPU)", "RoCE", 16, 6400),
        ("800 Gb/s (as printed)", "", None, 800),
        ("RoCE RDMA (rate not stated)", "RoCE", None, None),
        ("", "", None, None),
        ("0x 0 Gb/s", "", None, None),
    ],
)
def test_words_give_family_cards_and_rate_of_a_node(
    text: str, family: str, cards: int | None, gigabits: float | None
) -> None:
    bandwidth = None if gigabits is None else gigabits * GB / 8
    expected = NodeLink(family=family, cards=cards, node_bandwidth=bandwidth)
    assert parse_link(text, 8) == expected
