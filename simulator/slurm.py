"""A Slurm job script for a site: what the site file leaves open stands in it as a comment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from simulator.site_file import GpuRequest, Site

_FIRST_PORT, _PORTS = 20000, 10000
"""Below the ports that Linux hands out by itself (32768 and above)."""


def batch_script(site: Site, *, job: str, command: Sequence[str], notes: Sequence[str] = ()) -> str:
    """Return a script that runs `command` as every task of a job; `notes` are comments in it."""
    lines = [
        "#!/bin/bash -l",
        *(f"#SBATCH {directive}" for directive in _directives(site, job)),
        *(f"# {note}" for note in (*_notes(site), *notes)),
        "set -eo pipefail",
        *(f"module load {shlex.quote(module)}" for module in site.modules),
        *(f"export {name}={shlex.quote(value)}" for name, value in site.environment.items()),
        *site.setup,
        'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
        f"MASTER_PORT={_port(site)}",
        "export MASTER_ADDR MASTER_PORT",
        _srun(site, command),
    ]
    return "\n".join(lines) + "\n"


def _directives(site: Site, job: str) -> Iterator[str]:
    yield f"--job-name={job}"
    yield f"--partition={site.partition}"
    yield f"--nodes={site.nodes}"
    yield f"--ntasks-per-node={site.ranks}"
    yield f"--time={site.time}"
    optional = {"account": site.account, "qos": site.qos, "constraint": site.constraint}
    for name, value in optional.items():
        if value is not None:
            yield f"--{name}={value}"
    match site.gpus:
        case GpuRequest.GRES:
            kind = f":{site.gpu_type}" if site.gpu_type else ""
            yield f"--gres=gpu{kind}:{site.gpus_per_node}"
        case GpuRequest.PER_NODE:
            yield f"--gpus-per-node={site.gpus_per_node}"
        case GpuRequest.PER_TASK:
            yield f"--gpus-per-task={max(site.gpus_per_node // site.ranks, 1)}"
        case GpuRequest.NONE:
            pass
    if site.cpus_per_task is not None:
        yield f"--cpus-per-task={site.cpus_per_task}"
    if site.exclusive:
        yield "--exclusive"


def _notes(site: Site) -> Iterator[str]:
    """Return what the file leaves open, and what is taken instead."""
    open_keys = ("account", "qos", "constraint", "cpus_per_task")
    left = [name for name in open_keys if getattr(site, name) is None]
    if left:
        yield f"Not in the site file, so Slurm's own defaults hold: {', '.join(left)}."
    if site.ranks_per_node is None:
        yield f"ranks_per_node is not given: one an accelerator, {site.ranks}."
    if site.port is None:
        yield f"port is not given: {_FIRST_PORT} plus the job's number modulo {_PORTS}."


def _port(site: Site) -> str:
    return str(site.port) if site.port else f"$(({_FIRST_PORT} + SLURM_JOB_ID % {_PORTS}))"


def _srun(site: Site, command: Sequence[str]) -> str:
    """Return the line that starts all ranks; one that is lost takes the job along."""
    line = ["srun", "--kill-on-bad-exit=1", f"--ntasks-per-node={site.ranks}"]
    if site.cpus_per_task is not None:
        line.append(f"--cpus-per-task={site.cpus_per_task}")
    if site.container is not None:
        line.append(f"--container-image={site.container.image}")
        if site.container.mounts:
            line.append(f"--container-mounts={','.join(site.container.mounts)}")
    return shlex.join([*line, *command])
