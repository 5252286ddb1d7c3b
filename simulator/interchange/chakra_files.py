"""A folder of Chakra execution traces, one file a rank, as ASTRA-sim wants them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.hardware.profile import Profile
from simulator.interchange.astra_sim import astra_sim_files
from simulator.interchange.chakra_nodes import STEP_SECONDS, to_chakra, whom
from simulator.interchange.chakra_schema import AttributeProto, GlobalMetadata
from simulator.interchange.export import StepTrace
from simulator.interchange.folder import new_folder
from simulator.interchange.records import NodeKind
from simulator.interchange.stage_work import StageNode
from simulator.units import US

PREFIX = "step"
"""What the files of the ranks are called in front of their number."""
GROUPS_FILE = "comm_groups.json"
_VERSION = "0.0.4"
"""Of the schema, as Chakra's own generator (src/generator/generator.py) writes it."""
_VARINT_BITS = 7
_MORE = 1 << _VARINT_BITS
_LONGEST_SHIFT = 28
"""Of a length of 32 bits, as the feeder reads it."""


def write_chakra(
    folder: Path | str, trace: StepTrace, profile: Profile, *, step_seconds: float
) -> tuple[str, ...]:
    """Write `step.<rank>.et` for every rank, and what ASTRA-sim needs beside them, to a new folder.

    Returns what a reader of them must know: what could not be written, or is not the same there.

    Raises:
        InputError: the folder is there already, or cannot be written.
    """
    beside, notes = astra_sim_files(profile, trace)
    head = prefixed(_head(step_seconds))
    common = [_serialised(nodes) for nodes in trace.stages]
    with new_folder(folder) as inside:
        for rank in range(trace.world_size):
            stage = trace.stage_of(rank)
            nodes = zip(common[stage], trace.stages[stage], strict=True)
            own = (prefixed(text + _own(trace, node, rank)) for text, node in nodes)
            (inside / f"{PREFIX}.{rank}.et").write_bytes(head + b"".join(own))
        groups = {str(number): list(ranks) for number, ranks in trace.groups.items()}
        (inside / GROUPS_FILE).write_text(_json(groups), encoding="utf-8")
        for name, text in beside.items():
            (inside / name).write_text(text, encoding="utf-8")
    return notes


def split_messages(data: bytes) -> Iterator[bytes]:
    """Yield the serialised messages of a file, each of which stands behind its length.

    >>> list(split_messages(prefixed(b"one") + prefixed(b"two")))
    [b'one', b'two']

    Raises:
        ValueError: it ends within a length or a message.
    """
    at = 0
    while at < len(data):
        size, shift = 0, 0
        while True:
            if at == len(data) or shift > _LONGEST_SHIFT:
                raise ValueError(f"no length of a message at byte {at}")
            size += data[at] % _MORE << shift
            at, shift, more = at + 1, shift + _VARINT_BITS, data[at] >= _MORE
            if not more:
                break
        if at + size > len(data):
            raise ValueError(f"a message of {size} bytes at byte {at} of {len(data)}")
        yield data[at : at + size]
        at += size


def prefixed(message: bytes) -> bytes:
    """Return a serialised message behind its length, which is a varint.

    >>> prefixed(bytes(300))[:2].hex()
    'ac02'
    """
    length, size = bytearray(), len(message)
    while size >= _MORE:
        length.append(size % _MORE + _MORE)
        size >>= _VARINT_BITS
    length.append(size)
    return bytes(length) + message


def _head(step_seconds: float) -> bytes:
    head = GlobalMetadata(version=_VERSION)
    head.attr.append(AttributeProto(name=STEP_SECONDS, double_val=step_seconds))
    serialised: bytes = head.SerializeToString()
    return serialised


def _serialised(nodes: Sequence[StageNode]) -> list[bytes]:
    """Return the nodes of a stage without what differs between its ranks.

    Compute is rounded to microseconds so that their sum is, not each alone: a long row of short
    kernels is then as long as it was.
    """
    found, exact, whole = [], 0.0, 0
    for node, _ in nodes:
        if node.kind is NodeKind.COMPUTE:
            exact += node.seconds
            micros = round(exact / US) - whole
            whole += micros
        else:
            micros = math.ceil(node.seconds / US)
        found.append(to_chakra(node, micros).SerializeToString())
    return found


def _own(trace: StepTrace, node: StageNode, rank: int) -> bytes:
    if node.to is None:
        return b""
    serialised: bytes = whom(node.node, rank, *trace.resolved(node.to, rank)).SerializeToString()
    return serialised


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, allow_nan=False) + "\n"
