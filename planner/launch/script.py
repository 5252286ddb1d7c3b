"""The shell script that starts a run on every node, with placeholders that stop it until filled."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.launch.keys import FILL_IN
from planner.launch.records import Run
from simulator.errors import InputError, Problem
from simulator.site_file import Site
from simulator.slurm import batch_script

_JOB = "traincast-launch"
_FIRST_PORT = 29500
"""torchrun's own default (torch/distributed/run.py, --master-port)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a script starts."""

    title: str
    program: tuple[str, ...]
    """Words between torchrun's options and the arguments."""
    groups: Mapping[str, Sequence[Sequence[str]]]
    """Array -> flags, each with its values."""
    fill: Mapping[str, str]
    """Variable that the user must set -> what it is."""
    environment: Mapping[str, str] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


def train_script(run: Run, start: Start) -> str:
    """Return the script to run on every node, with torchrun."""
    lines = ["#!/bin/bash", f"# {start.title}", *(f"# {line}" for line in start.comments)]
    if run.nodes > 1:
        lines.append("# Run it on every node, with MASTER_ADDR and NODE_RANK set.")
    lines += ["set -euo pipefail", *_placeholders(start.fill)]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in start.environment.items()]
    lines += [
        f"GPUS_PER_NODE={run.gpus_per_node}",
        f"NUM_NODES={run.nodes}",
        "MASTER_ADDR=${MASTER_ADDR:-localhost}",
        f"MASTER_PORT=${{MASTER_PORT:-{_FIRST_PORT}}}",
        "NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-0}}",
        "DISTRIBUTED_ARGS=(",
        '    --nproc_per_node "$GPUS_PER_NODE"',
        '    --nnodes "$NUM_NODES"',
        '    --node_rank "$NODE_RANK"',
        '    --master_addr "$MASTER_ADDR"',
        '    --master_port "$MASTER_PORT"',
        ")",
    ]
    for name, flags in start.groups.items():
        lines += [f"{name}=(", *(f"    {_line(flag)}" for flag in flags if flag), ")"]
    arrays = " ".join(f'"${{{name}[@]}}"' for name in start.groups)
    lines.append(f'torchrun "${{DISTRIBUTED_ARGS[@]}}" {_line(start.program)} {arrays}')
    return "\n".join(lines) + "\n"


def job_script(run: Run, site: Site) -> str:
    """Return the Slurm job that runs train.sh once on every node of `run`.

    Raises:
        InputError: the site file is about other nodes than the run.
    """
    problems = [
        Problem(
            where="site",
            key=key,
            found=str(found),
            rule=f"the run has {wanted}",
            fix=f"{key} = {wanted}",
        )
        for key, found, wanted in (
            ("nodes", site.nodes, run.nodes),
            ("gpus_per_node", site.gpus_per_node, run.gpus_per_node),
        )
        if found not in (wanted, 0)
    ]
    if problems:
        raise InputError(*problems)
    one = site.model_copy(update={"ranks_per_node": 1})
    return batch_script(one, job=_JOB, command=("bash", "train.sh"))


def _placeholders(fill: Mapping[str, str]) -> Iterator[str]:
    if not fill:
        return
    yield "# Only you know these: set them here or in the environment."
    for name, what in fill.items():
        yield f"{name}=${{{name}:-{FILL_IN}}}  # {what}"
    yield f"for name in {' '.join(fill)}; do"
    yield f'    if [[ "${{!name}}" == {FILL_IN} ]]; then echo "set $name in $0" >&2; exit 2; fi'
    yield "done"


def _line(words: Sequence[str]) -> str:
    """Return words of a command; those with a dollar sign have a variable."""
    return " ".join(f'"{word}"' if "$" in word else shlex.quote(word) for word in words)
