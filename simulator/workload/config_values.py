"""The values that an architecture reads in a config, under one spelling, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulator.errors import InputError, Problem
from simulator.files import parse_record
from simulator.workload.config_keys import ALIASES, MAY_DIFFER, PREFERRED, ConfigKeys
from simulator.workload.config_source import Source

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
        if key not in MAY_DIFFER and any(value != values[0] for value in values[1:]):
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


def names(key: str, source: Source) -> tuple[str, ...]:
    """Return how configs of this architecture may spell `key`."""
    own = source.architecture.keys
    return (key, *(name for name in ALIASES.get(key, ()) if name not in own))


def respelt(
    problems: tuple[Problem, ...], spelling: Mapping[str, str], source: Source
) -> list[Problem]:
    """Return problems with the file's own spelling of their keys, and a fix."""
    return [_respell(problem, spelling, source) for problem in problems]


def _respell(problem: Problem, spelling: Mapping[str, str], source: Source) -> Problem:
    head, dot, rest = problem.key.partition(".")
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
            rule="this key is required",
            fix="write the value of the model's published config.json",
        )
        for key in REQUIRED
        if key not in assumed and all(source.table.get(name) is None for name in names(key, source))
    ]


def with_defaults(
    source: Source, values: Mapping[str, Any]
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
