"""Which table of a config describes the language model, and of what architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from simulator.errors import InputError, Problem, UnsupportedError
from simulator.files import nearest
from simulator.workload.architectures.entry import Architecture
from simulator.workload.architectures.registry import ARCHITECTURES, UNSUPPORTED

TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
CLASS_SUFFIXES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The table that is read, its architecture, and what was said of it so far."""

    table: Mapping[str, Any]
    architecture: Architecture
    where: str
    prefix: str = ""
    notes: tuple[str, ...] = ()


def text_model(data: Mapping[str, Any], where: str) -> Source:
    """Return the config that describes the language model: `data` or a table nested in it."""
    key = next((key for key in TEXT_CONFIGS if isinstance(data.get(key), Mapping)), None)
    if key is None:
        architecture = _find(_model_type(data, where), where)
        _check_class(architecture, data, where)
        notes = _class_note(data)
        return Source(table=data, architecture=architecture, where=where, notes=notes)
    outer = data.get("model_type")
    if isinstance(outer, str) and outer in UNSUPPORTED:
        _find(outer, where)
    table = dict(data[key])
    if "tie_word_embeddings" not in table and "tie_word_embeddings" in data:
        table["tie_word_embeddings"] = data["tie_word_embeddings"]
    inner = table.get("model_type") or _class_type(table)
    inner = inner or ("llama" if outer in ("llava", "llava_next") else outer)
    architecture = _find(str(inner), where)
    _check_class(architecture, table, where, prefix=f"{key}.")
    note = f"only the language model in {key} is taken; all else of {outer!r} is left out"
    return Source(
        table=table,
        architecture=architecture,
        where=where,
        prefix=f"{key}.",
        notes=(note,),
    )


def _model_type(data: Mapping[str, Any], where: str) -> str:
    kind = data.get("model_type")
    if isinstance(kind, str) and kind:
        return kind
    named = _class_type(data)
    if named is not None:
        return named
    raise InputError(
        Problem(
            where=where,
            key="model_type",
            rule="is required, to know the architecture",
            found="" if kind is None else repr(kind)[:60],
            fix='write it, such as "model_type": "llama"',
        )
    )


def _first_class(data: Mapping[str, Any]) -> str:
    classes = data.get("architectures")
    return str(classes[0]) if isinstance(classes, list) and classes else ""


def _class_type(data: Mapping[str, Any]) -> str | None:
    """Return the architecture that the model class is of, or None where it is not known."""
    first = _first_class(data)
    for suffix in CLASS_SUFFIXES:
        first = first.removesuffix(suffix)
    plain = {_squeezed(name): name for name in [*ARCHITECTURES, *UNSUPPORTED]}
    return plain.get(_squeezed(first))


def _squeezed(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _check_class(
    architecture: Architecture, data: Mapping[str, Any], where: str, *, prefix: str = ""
) -> None:
    """Raise where `architectures` names what is not modelled, or only one has experts.

    The class is what runs, whatever model_type says.
    """
    named = _class_type(data)
    if named in UNSUPPORTED:
        _find(named, where, key=f"{prefix}architectures")
    if named is None or _has_experts(ARCHITECTURES[named]) == _has_experts(architecture):
        return
    raise InputError(
        Problem(
            where=where,
            key=f"{prefix}architectures",
            found=repr(_first_class(data)),
            rule=f"contradicts model_type {data.get('model_type')!r}: only one of them has experts",
            fix="write the model_type and the class of the same model",
        )
    )


def _has_experts(architecture: Architecture) -> bool:
    return not {"num_experts", "dbrx_ffn_config"}.isdisjoint(architecture.keys)


def _class_note(data: Mapping[str, Any]) -> tuple[str, ...]:
    first = _first_class(data)
    if first and not any(word in first for word in ("CausalLM", "LMHead", "Conditional")):
        return (f"{first}: a language-model head is assumed",)
    return ()


def _find(kind: str, where: str, *, key: str = "model_type") -> Architecture:
    if kind in ARCHITECTURES:
        return ARCHITECTURES[kind]
    problem = Problem(
        where=where,
        key=key,
        found=repr(kind)[:60],
        rule="is not an architecture that can be imported",
        fix=f"{nearest(kind, list(ARCHITECTURES))} Or describe the model in a TOML file",
    )
    if kind in UNSUPPORTED:
        problem = replace(
            problem,
            rule=f"this architecture has {UNSUPPORTED[kind]}, which is not modelled yet",
            fix="use a decoder of softmax attention with dense or expert layers",
        )
    raise UnsupportedError(problem)
