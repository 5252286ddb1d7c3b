"""Mixtures of experts of step rows: from a shipped model where the columns agree with one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from calibrate.validation.cells import Row, SkippedRowError
from simulator.workload.load import load_model, model_names
from simulator.workload.model import ModelSpec
from simulator.workload.model_parts import Experts

_DENSE = 0.95
"""Active over total parameters below which a model is a mixture of experts."""
_HYBRID = re.compile(r"qwen3[-_ ]?next|nemotron[-_ ]?(3|h\b)|mamba|jamba|kimi[-_ ]?linear", re.I)
"""Models with linear attention or state-space layers."""
_LATENT = re.compile(r"deepseek|kimi", re.I)
"""Models whose attention cannot be read from the columns of a table."""


def experts_of(row: Row) -> Experts | None:
    """Return the mixture of experts that the columns describe; None for a dense model.

    Raises:
        SkippedRowError: a size is missing or impossible, or layers are not transformer layers.
    """
    if _HYBRID.search(row.text("model")):
        name = row.text("model")[:60]
        raise SkippedRowError(f"model: {name!r} has linear attention or state-space layers")
    if not _is_sparse(row):
        return None
    experts, width = row.integer("experts"), row.integer("moe_ffn_hidden")
    shared = row.integer("shared_experts") if _counts(row, "shared_experts") else 0
    try:
        return Experts(
            num_experts=experts,
            num_experts_per_tok=row.integer("topk", largest=experts),
            moe_intermediate_size=width,
            shared_expert_intermediate_size=shared * width,
            dense_layers=_dense_layers(row) or (),
        )
    except ValidationError as error:
        raise SkippedRowError(f"experts: {error.errors()[0]['msg']}") from error


def shipped_mixture(row: Row) -> ModelSpec | None:
    """Return the shipped model that a row names, with the row's layers and vocabulary.

    None where there is none of that name, or where its sizes are not those of the columns.

    Raises:
        SkippedRowError: the columns cannot say what the named model's attention is.
    """
    name = _shipped_name(row.text("model"))
    model = load_model(name).spec if name else None
    differing = list(_differences(row, model)) if model else []
    if model is not None and not differing:
        return _as_in(row, model)
    if _LATENT.search(row.text("model")):
        why = f"{name} has other {', '.join(differing)}" if model else "no shipped model of it"
        raise SkippedRowError(f"model: latent attention is not in the columns, and {why}")
    if model is not None:
        row.assume(f"not the shipped {name}: other {', '.join(differing)}")
    return None


def _is_sparse(row: Row) -> bool:
    total = row.optional_number("params_b")
    active = row.optional_number("active_params_b")
    fewer = total is not None and active is not None and active < _DENSE * total
    several = _counts(row, "experts") and row.number("experts") > 1
    return several or fewer or row.known("moe_ffn_hidden")


def _counts(row: Row, column: str) -> bool:
    return row.known(column) and row.text(column) not in ("0", "0.0")


def _dense_layers(row: Row) -> tuple[int, ...] | None:
    """Return the layers with a dense MLP, the first ones; None where the row does not say."""
    if not row.known("dense_layers"):
        return None
    if not _counts(row, "dense_layers"):
        return ()
    return tuple(range(row.integer("dense_layers", largest=row.integer("layers"))))


def _shipped_name(model: str) -> str | None:
    """Return the shipped model whose name is the longest beginning of `model`, or its longer form.

    >>> _plain("Qwen3_235B-A22B"), "qwen3235ba22b".startswith(_plain("Qwen3-235B"))
    ('qwen3235ba22b', True)
    """
    wanted = _plain(model)
    names = {name: _plain(name) for name in model_names()}
    begins = [name for name, plain in names.items() if wanted.startswith(plain)]
    if begins:
        return max(begins, key=lambda name: len(names[name]))
    longer = [name for name, plain in names.items() if wanted and plain.startswith(wanted)]
    return longer[0] if len(longer) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _differences(row: Row, model: ModelSpec) -> Iterator[str]:
    """Yield the columns that say something else than the model; the vocabulary may be another."""
    if model.moe is None:
        yield "experts"
        return
    for column, size in _sizes(model, model.moe).items():
        if _counts(row, column) and row.integer(column) != size:
            yield column
    if row.known("layers") and row.integer("layers") > model.num_hidden_layers:
        yield "layers"


def _sizes(model: ModelSpec, moe: Experts) -> dict[str, int]:
    """Return what the columns of `model` should say.

    Key-value heads and their width only without latent attention: tables then repeat the heads.
    """
    sizes = {
        "hidden": model.hidden_size,
        "heads": model.num_attention_heads,
        "experts": moe.num_experts,
        "topk": moe.num_experts_per_tok,
        "moe_ffn_hidden": moe.moe_intermediate_size,
        "shared_experts": moe.shared_expert_intermediate_size // moe.moe_intermediate_size,
    }
    if model.mla is None:
        sizes |= {"kv_heads": model.num_key_value_heads, "head_dim": model.head_dim}
    return sizes


def _as_in(row: Row, model: ModelSpec) -> ModelSpec:
    """Return a shipped model with the layers and the vocabulary of a row."""
    layers = row.integer("layers", model.num_hidden_layers)
    assert model.moe is not None
    dense = _dense_layers(row)
    if dense is None:
        dense = tuple(index for index in model.moe.dense_layers if index < layers)
    changes: dict[str, Any] = {
        "vocab_size": row.integer("vocab_padded" if row.known("vocab_padded") else "vocab"),
        "max_position_embeddings": row.integer("seq_len"),
        "published_parameters": None,
        "moe": model.moe.model_copy(update={"dense_layers": dense}),
    }
    if row.known("tied_embeddings"):
        tied = row.flag("tied_embeddings", default=model.tie_word_embeddings)
        changes["tie_word_embeddings"] = tied
    if layers != model.num_hidden_layers:
        changes |= _cut(model, layers)
    row.assume(f"{model.name} as shipped, with {layers} layers")
    return model.model_copy(update=changes)


def _cut(model: ModelSpec, layers: int) -> dict[str, Any]:
    """Return what else changes with the first `layers` layers alone: nothing predicts ahead."""
    return {
        "num_hidden_layers": layers,
        "num_nextn_predict_layers": 0,
        "layer_types": model.layer_types[:layers] if model.layer_types else None,
        "no_rope_layers": tuple(index for index in model.no_rope_layers if index < layers),
    }
