"""Imports a Hugging Face `config.json` of a decoder, offline.

A key left out takes the library's default for its architecture; a key that changes what is
computed and is not understood is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem, UnsupportedError
from simulator.files import FileRecord, read_json
from simulator.workload.config_keys import (
    ALIASES,
    AttnConfig,
    ConfigKeys,
    DbrxAttnConfig,
    DbrxFfnConfig,
    FfnConfig,
)
from simulator.workload.config_source import Source, text_model
from simulator.workload.config_values import (
    COMMON,
    missing,
    names,
    read_values,
    respelt,
    with_defaults,
)
from simulator.workload.model import ImportedModel, ModelSpec
from simulator.workload.model_file import parse_model
from simulator.workload.unread_keys import Unread, judge_unread

NESTED: dict[str, type[FileRecord]] = {
    "attn_config": AttnConfig,
    "ffn_config": FfnConfig,
    "dbrx_attn_config": DbrxAttnConfig,
    "dbrx_ffn_config": DbrxFfnConfig,
}
"""Keys that hold a table, and the record of what is read in it."""
ALL_KEYS = frozenset(ConfigKeys.model_fields).union(*ALIASES.values())


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
    source = text_model(data, where)
    judged = _judge(source)
    values, spelling = _checked_values(source, judged.problems)
    config, defaulted = with_defaults(source, values)
    spec = _spec(source, config, spelling, name)
    return ImportedModel(spec=spec, notes=(*source.notes, *judged.notes, *defaulted))


def _checked_values(
    source: Source, refused: tuple[Problem, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return values and their spelling, or raise all that is wrong with them and `refused`."""
    problems = [*refused, *missing(source)]
    try:
        values, spelling = read_values(source)
    except InputError as error:
        problems.extend(error.problems)
        values, spelling = {}, {}
    if problems:
        raise (UnsupportedError if refused else InputError)(*problems)
    return values, spelling


def _spec(
    source: Source, config: Mapping[str, Any], spelling: Mapping[str, str], name: str
) -> ModelSpec:
    fields = {key: config[key] for key in COMMON if config.get(key) is not None}
    fields["activation"] = fields.pop("hidden_act")
    try:
        derived = source.architecture.derive(config)
        fields = {**fields, **source.architecture.fixed, **derived}
        fields = {key: value for key, value in fields.items() if value is not None}
        return parse_model({"name": name, "source": source.where, **fields}, source.where)
    except InputError as error:
        raise type(error)(*respelt(error.problems, spelling, source)) from error


def _judge(source: Source) -> Unread:
    """Return what the keys that are not read come to, those of nested tables with them."""
    read = {name for key in COMMON | source.architecture.keys for name in names(key, source)}
    judged = [_judge_table(source, "", source.table, read)]
    for key in sorted(NESTED.keys() & source.architecture.keys):
        for name in names(key, source):
            table = source.table.get(name)
            if isinstance(table, Mapping):
                fields = set(NESTED[key].model_fields)
                judged.append(_judge_table(source, f"{name}.", table, fields))
    return Unread(
        problems=tuple(problem for part in judged for problem in part.problems),
        notes=tuple(note for part in judged for note in part.notes),
    )


def _judge_table(source: Source, prefix: str, table: Mapping[str, Any], read: set[str]) -> Unread:
    architecture = source.architecture
    agreed = {key for key, value in architecture.stated.items() if table.get(key) == value}
    known = read | agreed | architecture.ignored
    unread = {key: value for key, value in table.items() if key not in known}
    return judge_unread(
        unread,
        ALL_KEYS,
        source.where,
        prefix=source.prefix + prefix,
        left_out=architecture.left_out,
    )
