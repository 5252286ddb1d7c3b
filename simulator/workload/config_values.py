"""The values that an architecture reads in a config, under one spelling, defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulator.errors import InputError, Problem
from simulator.files import parse_record
from simulator.workload.config_keys import ALIASES, MAY_DIFFER, PREFERRED, ConfigKeys
from simulator.workload.config_source import Source

SPEC_TABLES = ("moe.", "mla.")
"""Tables of a model description whose keys stand at the top of a config."""
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
NULL_SUFFICES = frozenset({"q_lora_rank"})
"""Keys that must be there, if only to say that there is none."""
UNION_LABEL = re.compile(r"constrained-.*|tuple\[.*")
"""What pydantic adds to a key that may be a number or a list, for each of the two."""
EXPERT_KEY = re.compile("expert|moe")
"""In the names of keys that only a mixture of experts needs."""
NULL_IS_A_VALUE = frozenset(
    {
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "sliding_window",
        "layer_types",
        "no_rope_layers",
        "num_experts",
        "n_shared_experts",
        "q_lora_rank",
        "attention_chunk_size",
    }
)
"""Keys whose null differs from their absence: it overrides the library's default."""


def read_values(source: Source) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of the keys that the architecture reads, and how the file spells them."""
    spelling, problems = _spelling(source)
    table = {key: source.table[name] for key, name in spelling.items()}
    try:
        parsed = parse_record(ConfigKeys, table, source.where)
    except InputError as error:
        raise InputError(*problems, *respelt(error.problems, spelling, source)) from error
    if problems:
        raise InputError(*problems)
    values = parsed.model_dump(by_alias=True, exclude_unset=True)
    kept = {k: v for k, v in values.items() if v is not None or k in NULL_IS_A_VALUE}
    return kept, spelling


def _spelling(source: Source) -> tuple[dict[str, str], list[Problem]]:
    """Return which of a key's names the file uses, and contradictions between names."""
    spelling: dict[str, str] = {}
    problems: list[Problem] = []
    for key in sorted(COMMON | source.architecture.keys):
        present = [name for name in names(key, source) if name in source.table]
        if not present:
            continue
        given = [name for name in present if source.table[name] is not None] or present
        spelling[key] = next((name for name in given if name in PREFERRED), given[0])
        values = [source.table[name] for name in given]
        same = [_collapsed(value) for value in values]
        if key not in MAY_DIFFER and any(value != same[0] for value in same[1:]):
            problems.append(
                Problem(
                    where=source.where,
                    key=source.prefix + given[-1],
                    found=repr(values[-1])[:60],
                    rule=f"means the same as {given[0]} and must be equal to it",
                    fix=f"remove one of {', '.join(given)}",
                )
            )
    return spelling, problems


def _collapsed(value: object) -> object:
    """Return the one value of a list that says the same of every layer."""
    alike = isinstance(value, list) and value and all(each == value[0] for each in value)
    return value[0] if isinstance(value, list) and alike else value


def names(key: str, source: Source) -> tuple[str, ...]:
    """Return how configs of this architecture may spell `key`."""
    own = source.architecture.keys
    return (key, *(name for name in ALIASES.get(key, ()) if name not in own))


def respelt(
    problems: tuple[Problem, ...], spelling: Mapping[str, str], source: Source
) -> list[Problem]:
    """Return problems with the file's own spelling of their keys, and a fix, one for each key."""
    fixed = [_respell(problem, spelling, source) for problem in problems]
    unions = {problem.key for problem, old in zip(fixed, problems, strict=True) if _is_union(old)}
    seen = [problem.key for problem in fixed]
    return [
        problem
        for index, problem in enumerate(fixed)
        if problem.key not in unions or problem.key not in seen[:index]
    ]


def _is_union(problem: Problem) -> bool:
    return any(UNION_LABEL.fullmatch(part) for part in problem.key.split("."))


def _respell(problem: Problem, spelling: Mapping[str, str], source: Source) -> Problem:
    name = problem.key
    if name.startswith(SPEC_TABLES):
        name = name.partition(".")[2]
    name = ".".join(part for part in name.split(".") if not UNION_LABEL.fullmatch(part))
    head, dot, rest = name.partition(".")
    key = source.prefix + spelling.get(head, head) + dot + rest if problem.key else ""
    fix = problem.fix or "write the value of the model's published config.json"
    return replace(problem, where=source.where, key=key, fix=fix)


def missing(source: Source) -> list[Problem]:
    """Return a problem for each size that the file lacks and the library must not guess."""
    assumed = {
        **(source.architecture.sizes if source.prefix else {}),
        **source.architecture.defaults,
    }
    return [
        Problem(
            where=source.where,
            key=source.prefix + key,
            rule=_required_rule(key, source),
            fix="write the value of the model's published config.json",
        )
        for key in _required(source)
        if key not in assumed and not _is_given(key, source)
    ]


def _is_given(key: str, source: Source) -> bool:
    given = [source.table[name] for name in names(key, source) if name in source.table]
    return bool(given) and (key in NULL_SUFFICES or any(value is not None for value in given))


def _required_rule(key: str, source: Source) -> str:
    others = ", ".join(names(key, source)[1:])
    if key in REQUIRED or not others:
        return "this key is required"
    return f"this key is required, under this name or as {others}"


def _required(source: Source) -> tuple[str, ...]:
    """Return the keys without which nothing can be said; a file may say that it has no experts."""
    experts = [source.table[key] for key in names("num_experts", source) if key in source.table]
    own = source.architecture.required
    if experts and not any(experts):
        own = tuple(key for key in own if not EXPERT_KEY.search(key))
    return (*REQUIRED, *own)


def with_defaults(
    source: Source, values: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values over the library's defaults, and a note of the defaults that were used."""
    sizes = source.architecture.sizes if source.prefix else {}
    defaults = {**sizes, **source.architecture.defaults}
    used = [
        f"{key} = {value}"
        for key, value in defaults.items()
        if key not in values and value is not None and (key in COMMON or key in sizes)
    ]
    note = (f"not in the file, the library's default is used: {', '.join(used)}",) if used else ()
    return {**defaults, **values}, note
