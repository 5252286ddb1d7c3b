"""Imports a Hugging Face `config.json` of a dense decoder, offline.

A key left out takes the library's default for its architecture; a key that changes what is
computed and is not understood is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem, UnsupportedError
from simulator.files import nearest, parse_record, read_json
from simulator.workload.architectures.entry import Architecture
from simulator.workload.architectures.registry import ARCHITECTURES, UNSUPPORTED
from simulator.workload.config_keys import ALIASES, MAY_DIFFER, PREFERRED, ConfigKeys
from simulator.workload.model import ImportedModel, ModelSpec
from simulator.workload.model_file import parse_model
from simulator.workload.unread_keys import judge_unread

REQUIRED = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
)
COMMON = frozenset(
    {
        *REQUIRED,
        "num_key_value_heads",
        "head_dim",
        "max_position_embeddings",
        "tie_word_embeddings",
        "hidden_act",
    }
)
"""Keys that every architecture reads."""
NULL_IS_A_VALUE = frozenset(
    {
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "sliding_window",
        "layer_types",
        "no_rope_layers",
    }
)
"""Keys whose null differs from their absence: it overrides the library's default."""
TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
CLASS_SUFFIXES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model")
ALL_KEYS = frozenset(ConfigKeys.model_fields) | {n for names in ALIASES.values() for n in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A config on its way: its table, its architecture, and what was said of it so far."""

    table: Mapping[str, Any]
    architecture: Architecture
    where: str
    prefix: str = ""
    notes: tuple[str, ...] = ()


def import_config(path: Path | str) -> ImportedModel:
    """Return the model in the `config.json` at `path` (or in that folder).

    Raises:
        InputError: not JSON, or wrong, missing or contradictory values: all of them.
        UnsupportedError: an architecture, or keys, that are not modelled; it names them.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "config.json"
    name = path.parent.name if path.stem == "config" else path.stem
    return parse_config(read_json(path), str(path), name=name or path.stem)


def parse_config(data: Any, where: str, *, name: str = "model") -> ImportedModel:
    """Return the model that a config's content describes; `where` names its file in errors.

    Raises: as `import_config`.
    """
    if not isinstance(data, Mapping):
        raise InputError(Problem(where=where, rule="must be a JSON object", found=repr(data)[:60]))
    source = _text_model(data, where)
    values, spelling = _read_values(source)
    read = {name for key in COMMON | source.architecture.keys for name in _names(key, source)}
    unread = {key: value for key, value in source.table.items() if key not in read}
    judged = judge_unread(unread, ALL_KEYS, where)
    missing = _missing(source, values)
    if judged.problems:
        raise UnsupportedError(*judged.problems, *missing)
    if missing:
        raise InputError(*missing)
    config, defaulted = _with_defaults(source, values)
    spec = _spec(source, config, spelling, name)
    return ImportedModel(spec=spec, notes=(*source.notes, *judged.notes, *defaulted))


def _text_model(data: Mapping[str, Any], where: str) -> _Source:
    """Return the config that describes the language model: `data` or a table nested in it."""
    key = next((key for key in TEXT_CONFIGS if isinstance(data.get(key), Mapping)), None)
    if key is None:
        architecture = _find(_model_type(data, where), where)
        notes = _class_note(data)
        return _Source(table=data, architecture=architecture, where=where, notes=notes)
    outer = data.get("model_type")
    if isinstance(outer, str) and outer in UNSUPPORTED:
        _find(outer, where)
    table = dict(data[key])
    if "tie_word_embeddings" not in table and "tie_word_embeddings" in data:
        table["tie_word_embeddings"] = data["tie_word_embeddings"]
    inner = table.get("model_type") or ("llama" if outer in ("llava", "llava_next") else outer)
    note = f"only the language model in {key} is taken; all else of {outer!r} is left out"
    return _Source(
        table=table,
        architecture=_find(str(inner), where),
        where=where,
        prefix=f"{key}.",
        notes=(note,),
    )


def _model_type(data: Mapping[str, Any], where: str) -> str:
    kind = data.get("model_type")
    if isinstance(kind, str) and kind:
        return kind
    classes = data.get("architectures")
    first = str(classes[0]) if isinstance(classes, list) and classes else ""
    for suffix in CLASS_SUFFIXES:
        first = first.removesuffix(suffix)
    plain = {name.lower().replace("_", ""): name for name in [*ARCHITECTURES, *UNSUPPORTED]}
    if first.lower() in plain:
        return plain[first.lower()]
    raise InputError(
        Problem(
            where=where,
            key="model_type",
            rule="is required, to know the architecture",
            found="" if kind is None else repr(kind)[:60],
            fix='write it, such as "model_type": "llama"',
        )
    )


def _class_note(data: Mapping[str, Any]) -> tuple[str, ...]:
    classes = data.get("architectures")
    first = str(classes[0]) if isinstance(classes, list) and classes else ""
    if first and not any(word in first for word in ("CausalLM", "LMHead", "Conditional")):
        return (f"{first}: a language-model head is assumed",)
    return ()


def _find(kind: str, where: str) -> Architecture:
    if kind in ARCHITECTURES:
        return ARCHITECTURES[kind]
    problem = Problem(
        where=where,
        key="model_type",
        found=repr(kind)[:60],
        rule="is not an architecture that can be imported",
        fix=f"{nearest(kind, list(ARCHITECTURES))} Or describe the model in a TOML file",
    )
    if kind in UNSUPPORTED:
        problem = replace(
            problem,
            rule=f"this architecture has {UNSUPPORTED[kind]}, which is not modelled yet",
            fix="use a dense decoder-only model",
        )
    raise UnsupportedError(problem)


def _read_values(source: _Source) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of the keys that the architecture reads, and how the file spells them."""
    spelling, problems = _spelling(source)
    table = {key: source.table[name] for key, name in spelling.items()}
    try:
        parsed = parse_record(ConfigKeys, table, source.where)
    except InputError as error:
        raise InputError(*problems, *_respelt(error.problems, spelling, source)) from error
    if problems:
        raise InputError(*problems)
    values = parsed.model_dump(by_alias=True, exclude_unset=True)
    kept = {k: v for k, v in values.items() if v is not None or k in NULL_IS_A_VALUE}
    return kept, spelling


def _spelling(source: _Source) -> tuple[dict[str, str], list[Problem]]:
    """Return which of a key's names the file uses, and contradictions between names."""
    spelling: dict[str, str] = {}
    problems: list[Problem] = []
    for key in COMMON | source.architecture.keys:
        present = [name for name in _names(key, source) if name in source.table]
        if not present:
            continue
        spelling[key] = next((name for name in present if name in PREFERRED), present[0])
        values = [source.table[name] for name in present if source.table[name] is not None]
        if key not in MAY_DIFFER and any(value != values[0] for value in values):
            problems.append(
                Problem(
                    where=source.where,
                    key=source.prefix + present[-1],
                    found=repr(source.table[present[-1]])[:60],
                    rule=f"means the same as {present[0]} and must be equal to it",
                    fix=f"remove one of {', '.join(present)}",
                )
            )
    return spelling, problems


def _names(key: str, source: _Source) -> tuple[str, ...]:
    own = source.architecture.keys
    return (key, *(name for name in ALIASES.get(key, ()) if name not in own))


def _respelt(
    problems: tuple[Problem, ...], spelling: Mapping[str, str], source: _Source
) -> list[Problem]:
    """Return problems with the file's own spelling of their keys, and a fix."""
    return [_respell(problem, spelling, source) for problem in problems]


def _respell(problem: Problem, spelling: Mapping[str, str], source: _Source) -> Problem:
    head, dot, rest = problem.key.partition(".")
    key = source.prefix + spelling.get(head, head) + dot + rest if problem.key else ""
    fix = problem.fix or "write the value of the model's published config.json"
    return replace(problem, where=source.where, key=key, fix=fix)


def _missing(source: _Source, values: Mapping[str, Any]) -> list[Problem]:
    optional = source.architecture.sizes if source.prefix else {}
    return [
        Problem(
            where=source.where,
            key=source.prefix + key,
            rule="this key is required",
            fix="write the value of the model's published config.json",
        )
        for key in REQUIRED
        if values.get(key) is None
        and key not in source.architecture.defaults
        and key not in optional
    ]


def _with_defaults(
    source: _Source, values: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values over the library's defaults, and a note of the defaults that were used."""
    sizes = source.architecture.sizes if source.prefix else {}
    defaults = {**sizes, **source.architecture.defaults}
    used = [
        f"{key} = {value}"
        for key, value in defaults.items()
        if key not in values and value is not None and key in COMMON
    ]
    note = (f"not in the file, the library's default is used: {', '.join(used)}",) if used else ()
    return {**defaults, **values}, note


def _spec(
    source: _Source, config: Mapping[str, Any], spelling: Mapping[str, str], name: str
) -> ModelSpec:
    fields = {key: config[key] for key in COMMON if config.get(key) is not None}
    fields["activation"] = fields.pop("hidden_act")
    try:
        derived = source.architecture.derive(config)
        fields = {**fields, **source.architecture.fixed, **derived}
        fields = {key: value for key, value in fields.items() if value is not None}
        return parse_model({"name": name, "source": source.where, **fields}, source.where)
    except InputError as error:
        raise type(error)(*_respelt(error.problems, spelling, source)) from error
