"""The messages of a Chakra execution trace, made at run time, so that no compiler is needed.

Numbers and names are those of the public schema, package `ChakraProtoMsg`. What a reader here does
not know (storage operations, say) protobuf keeps aside.
Source: MLCommons Chakra, schema/protobuf/et_def.proto.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "ChakraProtoMsg"
_FILE = "traincast/chakra_et_def.proto"
_Field = descriptor_pb2.FieldDescriptorProto


class NodeType(IntEnum):
    """Enumeration `NodeType` of the schema."""

    INVALID_NODE = 0
    METADATA_NODE = 1
    MEM_LOAD_NODE = 2
    MEM_STORE_NODE = 3
    COMP_NODE = 4
    COMM_SEND_NODE = 5
    COMM_RECV_NODE = 6
    COMM_COLL_NODE = 7
    STORAGE_NODE = 8
    BATCH_NODE = 9
    CHECKPOINT_NODE = 10


class CommType(IntEnum):
    """Enumeration `CollectiveCommType` of the schema."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


_FIRST_VALUE = 3
_VALUES = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)
"""Types of an attribute's value, in the order of their fields: the value, then a list of them."""
_FIELDS = {
    "GlobalMetadata": (("version", 1, "string"), ("attr", 2, "repeated AttributeProto")),
    "IOInfo": (("values", 1, "string"), ("shapes", 2, "string"), ("types", 3, "string")),
    "Node": (
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "NodeType"),
        ("ctrl_deps", 4, "repeated uint64"),
        ("data_deps", 5, "repeated uint64"),
        ("start_time_micros", 6, "uint64"),
        ("duration_micros", 7, "uint64"),
        ("inputs", 8, "IOInfo"),
        ("outputs", 9, "IOInfo"),
        ("attr", 10, "repeated AttributeProto"),
    ),
}


def _schema() -> descriptor_pb2.FileDescriptorProto:
    """Return the schema as a description of its messages."""
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=PACKAGE, syntax="proto3")
    for kind, name in ((NodeType, "NodeType"), (CommType, "CollectiveCommType")):
        values = file.enum_type.add(name=name).value
        for member in kind:
            values.add(name=member.name, number=member.value)
    attribute = file.message_type.add(name="AttributeProto")
    _add_field(attribute, "name", 1, "string")
    _add_field(attribute, "doc_string", 2, "string")
    attribute.oneof_decl.add(name="value")
    for place, value in enumerate(_VALUES):
        number, many = _FIRST_VALUE + 2 * place, f"{value.capitalize()}List"
        _add_field(attribute, f"{value}_val", number, value, one_of=True)
        _add_field(attribute, f"{value}_list", number + 1, many, one_of=True)
        _add_field(file.message_type.add(name=many), "values", 1, f"repeated {value}")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
    return file


def _add_field(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: str,
    *,
    one_of: bool = False,
) -> None:
    field = message.field.add(name=name, number=number)
    repeated = kind.startswith("repeated ")
    kind = kind.removeprefix("repeated ")
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if kind in _VALUES:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")
    else:
        field.type = _Field.TYPE_ENUM if kind == "NodeType" else _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"
    if one_of:
        field.oneof_index = 0


def _classes() -> dict[str, Any]:
    """Return the message classes by name, in a pool of their own."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_schema())
    names = ("Node", "GlobalMetadata", "AttributeProto")
    found = (pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in names)
    return {each.name: message_factory.GetMessageClass(each) for each in found}


_CLASSES = _classes()
Node: Any = _CLASSES["Node"]
GlobalMetadata: Any = _CLASSES["GlobalMetadata"]
AttributeProto: Any = _CLASSES["AttributeProto"]
