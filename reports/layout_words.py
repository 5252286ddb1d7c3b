"""A layout in words, in Megatron's names: in the terminal and in pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.quantities import percent
from reports.words import Words, english

Layout = Mapping[str, Any]
_AXES = ("tp", "pp", "dp")
_AXES_IF_USED = ("cp", "ep", "vpp")


def layout_line(layout: Layout) -> str:
    """Return a layout in one line, with the micro-batches of a replica."""
    return ", ".join([*layout_parts(layout), f"{layout['micro_batches']:,} micro-batches"])


def layout_words(layout: Layout, words: Words = english) -> str:
    """Return a layout in one line; one that a result holds in part is said as far as it is known.

    >>> layout_words({"tp": 8, "pp": 2, "cp": 1, "recompute": "none", "shard_size": None})
    'tp 8, pp 2, recompute none'
    """
    return ", ".join(layout_parts(layout, words))


def layout_parts(layout: Layout, words: Words = english) -> list[str]:
    """Return the parts of a layout; what is off is left out."""
    tp, size = layout.get("tp", 1), layout.get("micro_batch_size")
    parts = [f"{axis} {layout[axis]}" for axis in _AXES if layout.get(axis)]
    parts += [f"{axis} {layout[axis]}" for axis in _AXES_IF_USED if layout.get(axis, 1) > 1]
    parts += [f"etp {layout['etp']}"] if layout.get("etp") not in (None, tp) else []
    if exchange_words(layout):
        parts.append(words("cp by {exchange}", exchange=exchange_words(layout)))
    parts += [words("micro-batch {size}", size=size)] if size is not None else []
    if layout.get("pp", 1) > 1 and "schedule" in layout:
        parts.append(words("schedule {schedule}", schedule=schedule_words(layout)))
    parts += [f"ZeRO-{layout['zero_stage']}"] if layout.get("zero_stage") else []
    if layout.get("shard_size"):
        parts.append(words("shards of {size}", size=layout["shard_size"]))
    if layout.get("data_parallel", "all-reduce") != "all-reduce":
        parts.append(str(layout["data_parallel"]))
    if "recompute" in layout:
        parts.append(words("recompute {what}", what=recompute_words(layout)))
    parts += [words("sequence parallel")] if layout.get("sequence_parallel") else []
    if offload_words(layout):
        parts.append(words("{what} offloaded", what=offload_words(layout)))
    return parts


def recompute_words(layout: Layout) -> str:
    """Return what is recomputed: "none", "selective", "moe_act+layernorm", "full, 4 layers"."""
    if layout.get("recompute_modules"):
        return "+".join(layout["recompute_modules"])
    layers, method = layout.get("recompute_num_layers"), layout.get("recompute_method")
    named = f" {method}" if method else ""
    return f"{layout['recompute']}{named}" + (f", {layers} layers" if layers else "")


def schedule_words(layout: Layout) -> str:
    """Return the schedule with its options: "interleaved groups of 8, 2 extra"."""
    group, extra = layout.get("microbatch_group_size"), layout.get("extra_warm_up")
    options = [f"groups of {group}"] if group else []
    options += [f"{extra} extra"] if extra else []
    return " ".join([str(layout["schedule"]), ", ".join(options)]).rstrip()


def exchange_words(layout: Layout) -> str:
    """Return how keys and values are exchanged where that is not a ring; else nothing."""
    how = layout.get("cp_comm_type", "p2p")
    if layout.get("cp", 1) == 1 or how == "p2p":
        return ""
    inner = layout.get("cp_inner")
    return f"{how}" + (f" in groups of {inner}" if inner else "")


def offload_words(layout: Layout) -> str:
    """Return what waits in host memory; nothing where nothing does."""
    layers, share = layout.get("offload_layers", 0), layout.get("optimizer_offload", 0)
    parts = [f"{layers} layers"] if layers else []
    parts += [f"{percent(share)} of optimizer states"] if share else []
    return " and ".join(parts)
