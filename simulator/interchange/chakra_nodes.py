"""Nodes of a trace as Chakra nodes, and back.

Standard attributes are those that ASTRA-sim's feeder reads; those whose names begin with
"traincast." say what the schema has no field for, and others pass them over.
Source: ASTRA-sim 2.x, astra-sim/workload/Workload.cc and feeder_v3 (names, and that sizes are what
a rank puts in: system/astraccl/native_collectives/collective_algorithm/Ring.cc).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simulator.interchange.chakra_schema import AttributeProto, CommType, Node, NodeType
from simulator.interchange.records import EVERY_RANK, NodeKind, TraceNode
from simulator.parallel.groups import Collective
from simulator.units import US

TYPES = {
    NodeKind.COMPUTE: NodeType.COMP_NODE,
    NodeKind.SEND: NodeType.COMM_SEND_NODE,
    NodeKind.RECEIVE: NodeType.COMM_RECV_NODE,
    NodeKind.COLLECTIVE: NodeType.COMM_COLL_NODE,
    NodeKind.LOAD: NodeType.MEM_LOAD_NODE,
    NodeKind.STORE: NodeType.MEM_STORE_NODE,
    NodeKind.NOTHING: NodeType.METADATA_NODE,
}
KINDS = {kind: node for node, kind in TYPES.items()} | {NodeType.INVALID_NODE: NodeKind.NOTHING}
"""Node types that can be replayed, and as what."""
COLLECTIVES = {
    CommType.ALL_REDUCE: Collective.ALL_REDUCE,
    CommType.ALL_GATHER: Collective.ALL_GATHER,
    CommType.REDUCE_SCATTER: Collective.REDUCE_SCATTER,
    CommType.REDUCE_SCATTER_BLOCK: Collective.REDUCE_SCATTER,
    CommType.ALL_TO_ALL: Collective.ALL_TO_ALL,
    CommType.BROADCAST: Collective.BROADCAST,
    CommType.REDUCE: Collective.REDUCE,
    CommType.BARRIER: Collective.ALL_REDUCE,
}
"""What each type is priced as; a barrier is an all-reduce of nothing."""
_COMM_TYPES = {
    Collective.ALL_REDUCE: CommType.ALL_REDUCE,
    Collective.ALL_GATHER: CommType.ALL_GATHER,
    Collective.REDUCE_SCATTER: CommType.REDUCE_SCATTER,
    Collective.ALL_TO_ALL: CommType.ALL_TO_ALL,
    Collective.BROADCAST: CommType.BROADCAST,
    Collective.REDUCE: CommType.REDUCE,
}
SECONDS, STEP_SECONDS = "traincast.seconds", "traincast.step_seconds"
ALGORITHM, NETWORK_SHARE = "traincast.algorithm", "traincast.network_share"
_REQUEST = "traincast.on_request"


def to_chakra(node: TraceNode, micros: int) -> Any:
    """Return a node as a Chakra node of `micros` microseconds, without group and peer.

    Chakra's durations are whole microseconds; the exact one is an attribute.
    """
    made = Node(id=node.number, name=node.name, type=TYPES[node.kind].value, duration_micros=micros)
    # The older feeder reads data dependencies only; ASTRA-sim 2.x waits for both kinds.
    made.data_deps.extend(node.after)
    made.attr.extend(_attributes(node))
    return made


def whom(node: TraceNode, rank: int, group: int, peer: int) -> Any:
    """Return what differs between the ranks of a stage, as a Chakra node with nothing else.

    Behind a serialised node it is the same node with these attributes added.
    """
    made = Node()
    if node.kind is NodeKind.COLLECTIVE:
        made.attr.add(name="pg_name", string_val=str(group))
    elif node.kind in (NodeKind.SEND, NodeKind.RECEIVE):
        source, target = (rank, peer) if node.kind is NodeKind.SEND else (peer, rank)
        made.attr.add(name="comm_src", int32_val=source)
        made.attr.add(name="comm_dst", int32_val=target)
    return made


def _attributes(node: TraceNode) -> Iterator[Any]:
    """Yield attributes in the types that both of Chakra's feeders read."""
    yield AttributeProto(name="is_cpu_op", bool_val=node.on_cpu)
    if node.seconds:
        yield AttributeProto(name=SECONDS, double_val=node.seconds)
    match node.kind:
        case NodeKind.COMPUTE:
            yield AttributeProto(name="num_ops", int64_val=round(node.flops))
        case NodeKind.LOAD | NodeKind.STORE:
            yield AttributeProto(name="tensor_size", uint64_val=round(node.size))
        case NodeKind.SEND | NodeKind.RECEIVE | NodeKind.COLLECTIVE:
            # A message of no bytes is none.
            yield AttributeProto(name="comm_size", int64_val=max(1, round(node.size)))
        case NodeKind.NOTHING:
            pass
    if node.kind in (NodeKind.SEND, NodeKind.RECEIVE):
        yield AttributeProto(name="comm_tag", int32_val=node.tag)
    if node.collective is not None:
        yield AttributeProto(name="comm_type", int64_val=_COMM_TYPES[node.collective].value)
    if node.algorithm is not None:
        yield AttributeProto(name=ALGORITHM, string_val=node.algorithm)
    if node.network_share != 1.0:
        yield AttributeProto(name=NETWORK_SHARE, double_val=node.network_share)
    if node.on_request:
        yield AttributeProto(name=_REQUEST, bool_val=True)


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of a Chakra node that are no lists, by name."""
    found: dict[str, Any] = {}
    for attribute in node.attr:
        kind = attribute.WhichOneof("value")
        if kind is not None and kind.endswith("_val"):
            found[attribute.name] = getattr(attribute, kind)
    return found


def from_chakra(node: Any, known: Mapping[str, Any], kind: NodeKind) -> TraceNode:
    """Return a Chakra node, with its attributes, as one of a trace.

    The caller has checked that it can be: its type, and that what it needs is there.
    """
    collective, size = None, known.get("comm_size", known.get("tensor_size", 0.0))
    if kind is NodeKind.COLLECTIVE:
        collective = COLLECTIVES[known["comm_type"]]
        size = 0.0 if known["comm_type"] == CommType.BARRIER else size
    ends = "comm_dst" if kind is NodeKind.SEND else "comm_src"
    return TraceNode(
        number=node.id,
        name=node.name,
        kind=kind,
        after=tuple(sorted({*node.data_deps, *node.ctrl_deps})),
        seconds=float(known.get(SECONDS, node.duration_micros * US)),
        flops=float(known.get("num_ops", 0.0)),
        size=float(size),
        collective=collective,
        group=int(known.get("pg_name") or EVERY_RANK),
        peer=int(known.get(ends, -1)),
        tag=int(known.get("comm_tag", 0)),
        algorithm=known.get(ALGORITHM),
        network_share=float(known.get(NETWORK_SHARE, 1.0)),
        on_cpu=bool(known.get("is_cpu_op", False)),
        on_request=bool(known.get(_REQUEST, False)),
    )
