"""The form: a field for every plain key of a scenario's records, with its choices and its help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simulator.field_docs import field_docs
from simulator.hardware.profile import profile_names
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import ClusterFile, ScenarioFile
from simulator.workload.job import TrainingJob
from simulator.workload.load import model_names
from simulator.workload.stack import stack_names

_BY_CLUSTER = {"layout.dp": "fills the cluster"}
"""Keys that a scenario may leave out although their record has a default: what then holds."""


class FieldKind(StrEnum):
    """How a field is edited."""

    NUMBER = "number"
    TEXT = "text"
    CHOICE = "choice"
    SWITCH = "switch"
    """true, false, or left out."""
    LIST = "list"
    """A TOML array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One key of a scenario, as the form shows it."""

    key: str
    """Its path in the file: "layout.tp"."""
    kind: FieldKind
    help: str = ""
    choices: tuple[str, ...] = ()
    """Of a choice all values; of a text known names."""
    default: str = ""
    """What holds where it is left out; empty where it must be given or is nothing."""

    @property
    def name(self) -> str:
        """The key inside its table."""
        return self.key.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """The fields of one table of a scenario."""

    title: str
    fields: tuple[FormField, ...]


def scenario_form() -> tuple[FieldGroup, ...]:
    """Return the form of a scenario: every key that is one value, or a list of them."""
    names = {
        "model": model_names(),
        "cluster.profile": profile_names(),
        "job.stack": stack_names(),
    }
    tables = (
        ("Model", "", ScenarioFile),
        ("Cluster", "cluster.", ClusterFile),
        ("Job", "job.", TrainingJob),
        ("Layout", "layout.", ParallelLayout),
    )
    return tuple(
        FieldGroup(title=title, fields=tuple(_fields(record, prefix, names)))
        for title, prefix, record in tables
    )


def _fields(
    record: type[BaseModel], prefix: str, names: dict[str, list[str]]
) -> Iterator[FormField]:
    for name, info in record.model_fields.items():
        key = prefix + name
        kind, choices = _kind_of(info.annotation)
        if kind is not None:
            yield FormField(
                key=key,
                kind=kind,
                help=field_docs(record).get(name, ""),
                choices=choices or tuple(names.get(key, ())),
                default=_BY_CLUSTER.get(key) or _default(info),
            )


def _kind_of(annotation: Any) -> tuple[FieldKind | None, tuple[str, ...]]:
    """Return how values of a type are edited; None where the form has nothing for them."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind_of(inner[0])
    if origin in (Union, UnionType):
        others = [each for each in inner if each is not type(None)]
        return _kind_of(others[0]) if len(others) == 1 else (None, ())
    if origin is Literal:
        return FieldKind.CHOICE, tuple(map(str, inner))
    if origin is tuple:
        return (None if _is_record(inner[0]) else FieldKind.LIST), ()
    return _plain_kind(annotation)


def _plain_kind(annotation: Any) -> tuple[FieldKind | None, tuple[str, ...]]:
    if not isinstance(annotation, type) or issubclass(annotation, BaseModel):
        return None, ()
    if issubclass(annotation, StrEnum):
        return FieldKind.CHOICE, tuple(str(each) for each in annotation)
    if issubclass(annotation, bool):
        return FieldKind.SWITCH, ("true", "false")
    if issubclass(annotation, int | float):
        return FieldKind.NUMBER, ()
    return (FieldKind.TEXT if issubclass(annotation, str) else None), ()


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _default(info: FieldInfo) -> str:
    value = info.default
    if info.is_required() or value is None or value in ("", ()):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
