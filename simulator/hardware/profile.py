"""A hardware profile: vendor numbers with their sources, overlaid with fitted constants."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, model_validator

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, is_there, nearest, parse_record, read_text, read_toml
from simulator.hardware.accelerator import Accelerator
from simulator.hardware.cluster import Fabric, Node
from simulator.hardware.constants import FittedConstants

PROFILE_FOLDER = Path(__file__).resolve().parents[2] / "hardware_profiles"
INLINE = "in the profile itself"
"""`ProfileFile.constants` of a profile that holds its own table of constants."""
_CONSTANTS = "constants"
_Read = TypeVar("_Read")


def _text_or_table(schema: dict[str, Any]) -> None:
    schema["type"] = ["string", "object"]


class Source(FileRecord):
    """Where numbers of a profile come from."""

    what: str
    """The keys or the kind of numbers it is the source of."""
    reference: str
    """Document and page, or a public address."""
    read_on: date


class Price(FileRecord):
    """What one accelerator costs; a placeholder that a user replaces by their own."""

    per_accelerator_hour: float | None = Field(default=None, ge=0)
    """In `currency`; None where the user has not said."""
    currency: str = "USD"


class ProfileFile(FileRecord):
    """A profile as it stands in its TOML file."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    title: str
    aliases: tuple[str, ...] = ()
    """Other names of the same machine, as measurement tables write it."""
    accelerator: Accelerator
    node: Node
    fabric: Fabric
    constants: str = Field(json_schema_extra=_text_or_table)
    """File of fitted constants, relative to the profile; or a table `[constants]` that holds what
    such a file would hold."""
    price: Price = Price()
    source: tuple[Source, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _domain_holds_whole_nodes(self) -> ProfileFile:
        size, node = self.node.scale_up.domain_size, self.node.accelerators
        if max(size, node) % min(size, node):
            raise ValueError(
                f"node.scale_up.domain_size {size} must divide or be a multiple of "
                f"node.accelerators {node}"
            )
        return self


class Profile(FileRecord):
    """A machine, ready to compute with: the vendor's numbers and the fitted constants."""

    machine: ProfileFile
    constants: FittedConstants
    sha256: str
    """Of all that was read, so that a result names exactly what it was computed from."""

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.machine.name

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator."""
        return self.machine.accelerator

    @property
    def node(self) -> Node:
        """The node."""
        return self.machine.node

    @property
    def fabric(self) -> Fabric:
        """The network between nodes."""
        return self.machine.fabric

    @property
    def nic_bandwidth(self) -> float:
        """Bytes/s, per direction and accelerator, that NICs of a node give when all share them."""
        nic = self.node.nic
        if nic is None:
            raise InputError(
                Problem(
                    where=self.name,
                    key="node.nic",
                    rule="this profile has no NIC, so a run cannot span several nodes",
                    fix="add a [node.nic] table or use 1 node",
                )
            )
        return float(nic.per_node * nic.bandwidth * nic.efficiency / self.node.accelerators)


def profile_names() -> list[str]:
    """Return the names of the shipped profiles, sorted."""
    return sorted(path.stem for path in PROFILE_FOLDER.glob("*.toml"))


def load_profile(name_or_path: str, *, relative_to: Path | None = None) -> Profile:
    """Return a shipped profile by name, or the one in a TOML file.

    Raises:
        InputError: unknown name, or anything wrong in the profile or its constants.
    """
    path = _profile_path(name_or_path, relative_to)
    table, text = read_toml(path), read_text(path)
    if isinstance(table.get(_CONSTANTS), dict):
        return parse_profile(text, str(path))
    machine = parse_record(ProfileFile, table, str(path))
    constants_path = _constants_path(path, machine)
    constants = parse_record(FittedConstants, read_toml(constants_path), str(constants_path))
    digest = _digest(text + read_text(constants_path))
    return Profile(machine=machine, constants=constants, sha256=digest)


def parse_profile(text: str, where: str) -> Profile:
    """Return the profile in the text of a file that holds its own table of constants.

    Raises:
        InputError: with the problems of machine and constants together.
    """
    table = tomllib.loads(text)
    machine, wrong = _problems_of(
        lambda: parse_record(ProfileFile, {**table, _CONSTANTS: INLINE}, where)
    )
    constants, inner = _problems_of(lambda: parse_record(FittedConstants, table[_CONSTANTS], where))
    wrong += [
        replace(problem, key=".".join(filter(None, (_CONSTANTS, problem.key)))) for problem in inner
    ]
    if machine is None or constants is None:
        raise InputError(*wrong)
    return Profile(machine=machine, constants=constants, sha256=_digest(text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _problems_of(read: Callable[[], _Read]) -> tuple[_Read | None, list[Problem]]:
    try:
        return read(), []
    except InputError as error:
        return None, list(error.problems)


def _constants_path(profile: Path, machine: ProfileFile) -> Path:
    """Return the file of constants beside the profile, or else the shipped one of that name."""
    beside = profile.parent / machine.constants
    if is_there(beside):
        return beside
    shipped = [f"fitted/{path.name}" for path in sorted((PROFILE_FOLDER / "fitted").glob("*.toml"))]
    if machine.constants in shipped:
        return PROFILE_FOLDER / machine.constants
    raise InputError(
        Problem(
            where=str(profile),
            key="constants",
            found=repr(machine.constants),
            rule="no such file beside the profile, nor among the shipped constants",
            fix=nearest(machine.constants, shipped),
        )
    )


def _profile_path(name_or_path: str, relative_to: Path | None) -> Path:
    if name_or_path.endswith(".toml"):
        return (relative_to or Path()) / name_or_path
    if name_or_path not in profile_names():
        raise InputError(
            Problem(
                where=name_or_path[:200],
                rule="is neither a shipped profile nor a .toml file",
                fix=nearest(name_or_path[:200], profile_names()),
            )
        )
    return PROFILE_FOLDER / f"{name_or_path}.toml"
