"""Small data files by name: shipped ones beside the hardware profiles, or a user's own."""

from __future__ import annotations

from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import Record, nearest, read_record
from simulator.hardware.profile import PROFILE_FOLDER


def read_shipped(kind: type[Record], folder: str, name: str, where: str, key: str) -> Record:
    """Return the record in the shipped file `name` of `folder`, or in the .toml file at `name`.

    Raises:
        InputError: there is no such file, said at `key` of `where`; or it is wrong.
    """
    if name.endswith(".toml"):
        return read_record(kind, name)
    shipped = shipped_names(folder)
    if name not in shipped:
        raise InputError(
            Problem(
                where=where,
                key=key,
                found=repr(name),
                rule="is neither shipped nor a .toml file",
                fix=nearest(name, shipped),
            )
        )
    return read_record(kind, _folder(folder) / f"{name}.toml")


def shipped_names(folder: str) -> list[str]:
    """Return the names of the shipped files of a folder, sorted."""
    return sorted(path.stem for path in _folder(folder).glob("*.toml"))


def _folder(name: str) -> Path:
    return PROFILE_FOLDER / name
