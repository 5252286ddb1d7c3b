"""The wire format against the public schema: bytes written by hand from its field numbers."""

from __future__ import annotations

from simulator.interchange.chakra_schema import (
    AttributeProto,
    CommType,
    GlobalMetadata,
    Node,
    NodeType,
)


def test_a_node_has_the_bytes_that_the_field_numbers_of_the_schema_give() -> None:
    node = Node(id=300, name="ab", type=NodeType.COMM_COLL_NODE.value, duration_micros=5)
    node.data_deps.extend([1, 2])
    node.ctrl_deps.append(3)
    expected = [
        *(b"\x08\xac\x02"),  # field 1, varint 300
        *(b"\x12\x02ab"),  # field 2, 2 bytes
        *(b"\x18\x07"),  # field 3, varint 7
        *(b"\x22\x01\x03"),  # field 4, packed [3]
        *(b"\x2a\x02\x01\x02"),  # field 5, packed [1, 2]
        *(b"\x38\x05"),  # field 7, varint 5
    ]
    assert list(node.SerializeToString(deterministic=True)) == expected


def test_attributes_have_the_fields_of_the_schema() -> None:
    found = {
        name: attribute.SerializeToString()[-2:].hex()
        for name, attribute in {
            "int32": AttributeProto(int32_val=1),
            "int64": AttributeProto(int64_val=1),
            "uint32": AttributeProto(uint32_val=1),
            "uint64": AttributeProto(uint64_val=1),
            "sint64": AttributeProto(sint64_val=1),
        }.items()
    }
    # Field 7, 9, 11 and 13 as varints; zigzag makes 1 a 2. Field 17 needs two bytes of tag.
    assert found == {
        "int32": "3801",
        "int64": "4801",
        "uint32": "5801",
        "uint64": "6801",
        "sint64": "0102",
    }
    assert AttributeProto(double_val=0.5).SerializeToString()[:1].hex() == "19"
    assert AttributeProto(bool_val=True).SerializeToString().hex() == "d80101"
    assert AttributeProto(string_val="x").SerializeToString().hex() == "ea010178"


def test_the_head_of_a_file_has_its_version_first() -> None:
    assert GlobalMetadata(version="0.0.4").SerializeToString() == b"\x0a\x050.0.4"


def test_enumerations_have_the_numbers_of_the_schema() -> None:
    assert [kind.name for kind in NodeType][4:8] == [
        "COMP_NODE",
        "COMM_SEND_NODE",
        "COMM_RECV_NODE",
        "COMM_COLL_NODE",
    ]
    assert (CommType.ALL_REDUCE, CommType.ALL_GATHER, CommType.ALL_TO_ALL) == (0, 2, 6)
    assert CommType.REDUCE_SCATTER == 7


def test_fields_that_are_not_known_here_are_passed_over() -> None:
    storage = b"\x5a\x02\x08\x01"  # field 11, StorageInfo
    assert Node.FromString(b"\x08\x05" + storage).id == 5
