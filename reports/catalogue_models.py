"""What a list or page of models says in words: experts, and the kinds of attention."""

from __future__ import annotations

from simulator.workload.layer import AttentionSpec, LayerSpec, LinearSpec, MlaSpec
from simulator.workload.model import ModelSpec


def experts(spec: ModelSpec) -> str:
    """Return routed experts x those a token goes to, and shared ones: "256 x 8 + 1 shared".

    Shared experts are counted in widths of a routed one, as DeepSeek does; a shared expert of
    another width is 1. Empty for a dense model.
    """
    moe = spec.moe
    if moe is None:
        return ""
    shared, rest = divmod(moe.shared_expert_intermediate_size, moe.moe_intermediate_size)
    count = 1 if rest else shared
    return f"{moe.num_experts} x {moe.num_experts_per_tok}" + (f" + {count} shared" * (count > 0))


def attention(spec: ModelSpec) -> str:
    """Return the kinds of attention, most frequent first: "grouped 8, sliding 128 + full"."""
    groups = spec.layer_groups()
    counts: dict[str, int] = {}
    for layer, count in groups.items():
        reach = _reach(layer)
        if reach:
            counts[reach] = counts.get(reach, 0) + count
    reaches = sorted(counts, key=lambda reach: (-counts[reach], reach == "full"))
    heads = _heads(spec)
    return heads if reaches in ([], ["full"]) else f"{heads}, {' + '.join(reaches)}"


def _heads(spec: ModelSpec) -> str:
    if spec.mla is not None:
        return "latent"
    if spec.num_key_value_heads == spec.num_attention_heads:
        return "multi-head"
    if spec.num_key_value_heads == 1:
        return "multi-query"
    return f"grouped {spec.num_key_value_heads}"


def _reach(layer: LayerSpec) -> str:
    """Return which keys a token of this layer sees; empty where there is no attention."""
    block = layer.attention
    match block:
        case None:
            return ""
        case LinearSpec():
            return "a matrix"
        case MlaSpec():
            return "full"
        case AttentionSpec(window=int(window)):
            return f"sliding {window}"
        case AttentionSpec(chunk=int(chunk)):
            return f"chunked {chunk}"
        case AttentionSpec():
            return "full"
