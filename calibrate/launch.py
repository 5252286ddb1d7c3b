"""The command lines and the job script that start `traincast calibrate run` on many devices."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibrate.site_file import GpuRequest, Site
from simulator.errors import InputError, Problem
from simulator.files import read_record

_RUN = ("-m", "traincast", "calibrate", "run")
_ENDPOINT = re.compile(r"[A-Za-z0-9_.-]+:\d{1,5}")
_PYTHON = "python3"
_FIRST_PORT, _PORTS = 20000, 10000
"""Below the ports that Linux hands out by itself (32768 and above)."""


def local_command(ranks: int, arguments: Sequence[str]) -> list[str]:
    """Return the command that starts `ranks` processes on this machine."""
    if ranks == 1:
        return [sys.executable, *_RUN, *arguments]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, "--nproc-per-node", str(ranks), *_RUN, *arguments]


def torchrun_line(nodes: int, ranks: int, endpoint: str, arguments: Sequence[str]) -> str:
    """Return the line to run on every node, `ranks` processes on each.

    >>> torchrun_line(2, 8, "node1:29500", ["--out", "my run"])
    "torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node1:29500 \
--rdzv-id traincast -m traincast calibrate run --out 'my run'"

    Raises:
        InputError: the endpoint is not HOST:PORT.
    """
    if not _ENDPOINT.fullmatch(endpoint):
        rule, fix = "must be HOST:PORT, the first node and a free port on it", "node1:29500"
        raise InputError(Problem(key="--endpoint", rule=rule, found=endpoint, fix=fix))
    line = ["torchrun", "--nnodes", str(nodes), "--nproc-per-node", str(ranks)]
    line += ["--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "traincast"]
    return shlex.join([*line, *_RUN, *arguments])


def read_site(path: Path | str) -> Site:
    """Return a site file.

    Raises:
        InputError: everything that is wrong in it, or missing.
    """
    site = read_record(Site, path)
    if site.ranks == 0:
        rule = "must be given where gpus_per_node is 0: processes a node"
        raise InputError(Problem(where=str(path), key="ranks_per_node", rule=rule))
    if site.gpu_type is not None and site.gpus is not GpuRequest.GRES:
        rule, fix = 'needs gpus = "gres"', "leave it out, or use constraint"
        raise InputError(Problem(where=str(path), key="gpu_type", rule=rule, fix=fix))
    return site


def sbatch_script(site: Site, arguments: Sequence[str]) -> str:
    """Return a job script for Slurm; what the site file leaves open stands in it as a comment."""
    lines = [
        "#!/bin/bash -l",
        *(f"#SBATCH {directive}" for directive in _directives(site)),
        *(f"# {note}" for note in _notes(site)),
        "set -eo pipefail",
        *(f"module load {shlex.quote(module)}" for module in site.modules),
        *(f"export {name}={shlex.quote(value)}" for name, value in site.environment.items()),
        *site.setup,
        'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
        f"MASTER_PORT={_port(site)}",
        "export MASTER_ADDR MASTER_PORT",
        _srun(site, arguments),
    ]
    return "\n".join(lines) + "\n"


def _directives(site: Site) -> Iterator[str]:
    yield "--job-name=traincast-calibrate"
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
            yield "--gpus-per-task=1"
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
    if site.python is None:
        yield f"python is not given: {_PYTHON}."
    if not site.exclusive:
        yield "exclusive is false: other jobs on these nodes disturb what is measured."


def _port(site: Site) -> str:
    return str(site.port) if site.port else f"$(({_FIRST_PORT} + SLURM_JOB_ID % {_PORTS}))"


def _srun(site: Site, arguments: Sequence[str]) -> str:
    """Return the line that starts all ranks; one that is lost takes the job along."""
    line = ["srun", "--kill-on-bad-exit=1", f"--ntasks-per-node={site.ranks}"]
    if site.cpus_per_task is not None:
        line.append(f"--cpus-per-task={site.cpus_per_task}")
    if site.container is not None:
        line.append(f"--container-image={site.container.image}")
        if site.container.mounts:
            line.append(f"--container-mounts={','.join(site.container.mounts)}")
    return shlex.join([*line, site.python or _PYTHON, *_RUN, *arguments])
