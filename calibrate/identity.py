"""Which rank a process is: read from the variables that torchrun, srun or a person sets."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrate.batches import World
from calibrate.limits import MOST_RANKS
from simulator.errors import InputError, Problem

_TORCH = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_SLURM = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE")
_MASTER = ("MASTER_ADDR", "MASTER_PORT")
_TASKS = "SLURM_TASKS_PER_NODE"
_MAX_PORT = 65535
_MAX_DIGITS = 9
"""Of a number in a variable; no rank, count or port has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process among those that measure together."""

    rank: int = 0
    local_rank: int = 0
    world: World = field(default_factory=World)
    host: str = field(default_factory=socket.gethostname)
    master: str = ""
    """Host of the store that all ranks share; empty where there is one process."""
    port: int = 0

    @property
    def name(self) -> str:
        """The rank and its host, for messages."""
        return f"rank {self.rank} ({self.host})"


def read_identity(environment: Mapping[str, str]) -> Identity:
    """Return who this process is; without any of the variables it is alone.

    torchrun's variables (`RANK`, ...) come before Slurm's, as torchrun may run below srun.

    Raises:
        InputError: a part of the variables is missing, is no number, or they contradict each other.
    """
    if "RANK" in environment or "WORLD_SIZE" in environment:
        return _identity(environment, _TORCH)
    if "SLURM_PROCID" in environment and environment.get("SLURM_NTASKS", "1") != "1":
        return _identity({**environment, _SLURM[3]: _tasks_per_node(environment)}, _SLURM)
    return Identity()


def _identity(environment: Mapping[str, str], names: tuple[str, ...]) -> Identity:
    if environment.get(names[1]) == "1" and environment.get(names[0]) == "0":
        return Identity()
    problems = _problems(environment, names)
    if problems:
        raise InputError(*problems)
    rank, size, local_rank, local_size = (int(environment[name]) for name in names)
    return Identity(
        rank=rank,
        local_rank=local_rank,
        world=World(size=size, local_size=local_size),
        master=environment["MASTER_ADDR"],
        port=int(environment["MASTER_PORT"]),
    )


def _problems(environment: Mapping[str, str], names: tuple[str, ...]) -> list[Problem]:
    missing = [name for name in (*names, *_MASTER) if not environment.get(name)]
    fix = "start it with torchrun or srun (`traincast calibrate launch`), or set them all"
    if missing:
        return [_problem(", ".join(missing), "must be set for several ranks", "", fix)]
    wrong = [name for name in (*names, "MASTER_PORT") if not _is_number(environment[name])]
    if wrong:
        return [_problem(name, "must be a number", environment[name][:60], fix) for name in wrong]
    return _contradictions(environment, names)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def _contradictions(environment: Mapping[str, str], names: tuple[str, ...]) -> list[Problem]:
    rank, size, local_rank, local_size = (int(environment[name]) for name in names)
    port = int(environment["MASTER_PORT"])
    rules = (
        (names[0], rank < size, f"must be less than {names[1]} = {size}"),
        (names[2], local_rank < local_size, f"must be less than {names[3]} = {local_size}"),
        (
            names[1],
            local_size > 0 and size % max(1, local_size) == 0,
            f"must be a multiple of {names[3]} = {local_size}: as many ranks on every node",
        ),
        (
            names[2],
            local_size == 0 or local_rank == rank % local_size,
            f"must be {names[0]} modulo {names[3]}: ranks of a node follow one another",
        ),
        (names[1], size <= MOST_RANKS, f"must be at most {MOST_RANKS}"),
        ("MASTER_PORT", 0 < port <= _MAX_PORT, f"must be 1 to {_MAX_PORT}"),
    )
    return [_problem(name, rule, environment[name]) for name, holds, rule in rules if not holds]


def _tasks_per_node(environment: Mapping[str, str]) -> str:
    """Return the tasks on every node: "8" of SLURM_TASKS_PER_NODE = "8(x4)".

    Raises:
        InputError: nodes have different numbers of them.
    """
    given = environment.get(_SLURM[3], "")
    text = given or environment.get(_TASKS, "")
    match = re.fullmatch(r"(\d+)(\(x\d+\))?", text)
    if match is None:
        rule = "every node must have as many ranks"
        raise InputError(_problem(_TASKS, rule, text or "nothing", "srun --ntasks-per-node N"))
    return match[1]


def _problem(key: str, rule: str, found: str, fix: str = "") -> Problem:
    return Problem(where="environment", key=key, rule=rule, found=found, fix=fix)
