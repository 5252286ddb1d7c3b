"""From the model columns of a row to a model specification."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.mixtures import experts_of, shipped_mixture
from simulator.workload.layer import Norm
from simulator.workload.model import ModelSpec, Position
from simulator.workload.model_parts import Experts

_GATED = 3
_PLAIN = 2
_PLAIN_EXPANSION = 4
_SAME_SIZE = 0.05
"""Relative difference above which a row's own parameter count is mentioned."""
_BILLION = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """What tables do not say of a family of models; it moves a step by a percent or two."""

    norm: Norm
    biases: bool
    position: Position
    activation: str
    tied: bool
    embedding_norm: bool = False


_LLAMA = _Family(
    norm=Norm.RMSNORM, biases=False, position=Position.ROPE, activation="silu", tied=False
)
_GPT = _Family(
    norm=Norm.LAYERNORM, biases=True, position=Position.LEARNED, activation="gelu", tied=True
)
_MPT = _Family(
    norm=Norm.LAYERNORM, biases=False, position=Position.LEARNED, activation="gelu", tied=True
)
_BLOOM = _Family(
    norm=Norm.LAYERNORM,
    biases=True,
    position=Position.ALIBI,
    activation="gelu",
    tied=True,
    embedding_norm=True,
)
_NEMOTRON = _Family(
    norm=Norm.LAYERNORM, biases=False, position=Position.ROPE, activation="relu2", tied=False
)
_BY_NAME = {"mpt": _MPT, "bloom": _BLOOM, "nemotron": _NEMOTRON}


def model_of(row: Row) -> ModelSpec:
    """Return the transformer of a step row, dense or with a mixture of experts.

    Raises:
        SkippedRowError: a size is missing or impossible, or not all layers are transformer layers.
    """
    experts = experts_of(row)
    shipped = shipped_mixture(row) if experts is not None else None
    spec = shipped or _of_columns(row, experts)
    _compare_size(row, spec)
    return spec


def _of_columns(row: Row, experts: Experts | None) -> ModelSpec:
    layers, hidden, heads = (row.integer(name) for name in ("layers", "hidden", "heads"))
    if not row.known("head_dim") and hidden % heads:
        raise SkippedRowError(f"heads: {heads} do not divide hidden {hidden}, head_dim not given")
    intermediate, matrices = _mlp(row, hidden, experts)
    family = _family(row, matrices)
    try:
        return ModelSpec(
            name=(row.text("model") or "model")[:200],
            num_hidden_layers=layers,
            hidden_size=hidden,
            num_attention_heads=heads,
            num_key_value_heads=row.integer("kv_heads", heads),
            head_dim=row.integer("head_dim", hidden // heads)
            if row.known("head_dim")
            else hidden // heads,
            intermediate_size=intermediate,
            vocab_size=_vocabulary(row),
            tie_word_embeddings=row.flag("tied_embeddings", default=family.tied),
            gated_mlp=matrices == _GATED,
            activation=family.activation,
            mlp_bias=family.biases,
            attention_bias=family.biases,
            attention_output_bias=family.biases,
            moe=experts,
            norm=family.norm,
            norm_bias=family.biases,
            embedding_norm=family.embedding_norm,
            position=family.position,
            max_position_embeddings=row.integer("seq_len"),
        )
    except ValidationError as error:
        raise SkippedRowError(f"model: {_first(error)}") from error


def _mlp(row: Row, hidden: int, experts: Experts | None) -> tuple[int, int]:
    """Return the MLP's width and its number of matrices; the experts have as many."""
    if experts is not None and not row.known("ffn_hidden"):
        return experts.moe_intermediate_size, row.integer("ffn_matrices", _GATED)
    if row.known("ffn_matrices"):
        matrices = row.integer("ffn_matrices")
    else:
        width = row.integer("ffn_hidden") if row.known("ffn_hidden") else None
        wide = width is None or width == _PLAIN_EXPANSION * hidden
        matrices = row.integer("ffn_matrices", _PLAIN if wide else _GATED)
    if matrices not in (_PLAIN, _GATED):
        raise row.bad("ffn_matrices", "2 or 3")
    default = _PLAIN_EXPANSION * hidden if matrices == _PLAIN else None
    return row.integer("ffn_hidden", default), matrices


def _family(row: Row, matrices: int) -> _Family:
    name = row.text("model").lower()
    named = (family for begin, family in _BY_NAME.items() if name.startswith(begin))
    family = next(named, None) if matrices == _PLAIN else None
    family = family or (_GPT if matrices == _PLAIN else _LLAMA)
    biases = "biases" if family.biases else "no biases"
    row.assume(f"{family.norm}, {biases}, positions {family.position}")
    return family


def _vocabulary(row: Row) -> int:
    return row.integer("vocab_padded" if row.known("vocab_padded") else "vocab")


def _compare_size(row: Row, spec: ModelSpec) -> None:
    stated = row.optional_number("params_b")
    billions = spec.parameters / _BILLION
    if stated is not None and abs(billions / stated - 1) > _SAME_SIZE:
        row.assume(f"the shape's {billions:.4g} B parameters, not params_b = {stated:.4g}")


def _first(error: ValidationError) -> str:
    item = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, item['loc']))} {str(item['msg']).removeprefix('Value error, ')}"
