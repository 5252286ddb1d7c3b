"""Finds a model by preset name, TOML file or Hugging Face config."""

from __future__ import annotations

from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import nearest, read_toml
from simulator.workload.hf_config import import_config
from simulator.workload.model import ImportedModel, ModelSpec
from simulator.workload.model_file import parse_model

MODEL_FOLDER = Path(__file__).resolve().parent / "models"


def model_names() -> list[str]:
    """Return the names of the shipped models, sorted."""
    return sorted(path.stem for path in MODEL_FOLDER.glob("*.toml"))


def load_model(name_or_path: str, *, relative_to: Path | None = None) -> ImportedModel:
    """Return a shipped model by name, or the one in a TOML file, a `config.json` or its folder.

    Raises:
        InputError: unknown name, or anything wrong in the file.
        UnsupportedError: a config that asks for what is not modelled.
    """
    if name_or_path in model_names():
        return _read_toml(MODEL_FOLDER / f"{name_or_path}.toml")
    path = (relative_to or Path()) / name_or_path
    if name_or_path.endswith(".toml"):
        return _read_toml(path)
    if name_or_path.endswith(".json") or _is_folder(path):
        return import_config(path)
    raise InputError(
        Problem(
            where=name_or_path[:200],
            rule="is neither a shipped model nor a .toml file, a .json file or a folder with one",
            fix=nearest(name_or_path[:200], model_names()),
        )
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _read_toml(path: Path) -> ImportedModel:
    spec = parse_model(read_toml(path), str(path))
    return ImportedModel(spec=spec, notes=_count_note(spec))


def _count_note(spec: ModelSpec) -> tuple[str, ...]:
    counts = (
        ("parameters", spec.parameters, spec.published_parameters),
        ("active parameters", spec.active_parameters, spec.published_active_parameters),
    )
    return tuple(
        f"counts {counted} {what}, but {published} are published"
        for what, counted, published in counts
        if published not in (None, counted)
    )
