"""The command lines and the job script that start `traincast calibrate run` on many devices."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence

from simulator.errors import InputError, Problem
from simulator.site_file import Site
from simulator.slurm import batch_script

_RUN = ("-m", "traincast", "calibrate", "run")
_ENDPOINT = re.compile(r"[A-Za-z0-9_.-]+:\d{1,5}")
_PYTHON = "python3"
_JOB = "traincast-calibrate"


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


def sbatch_script(site: Site, arguments: Sequence[str]) -> str:
    """Return a job script for Slurm; what the site file leaves open stands in it as a comment."""
    command = (site.python or _PYTHON, *_RUN, *arguments)
    return batch_script(site, job=_JOB, command=command, notes=tuple(_notes(site)))


def _notes(site: Site) -> Iterator[str]:
    if site.python is None:
        yield f"python is not given: {_PYTHON}."
    if not site.exclusive:
        yield "exclusive is false: other jobs on these nodes disturb what is measured."
