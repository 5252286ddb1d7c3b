"""`traincast calibrate launch`: starts a run on all devices here, or writes what starts it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from simulator.errors import InfeasibleError, InputError, Problem
from traincast.commands.calibrate_run import check_torch, check_values, run_measurements
from traincast.commands.output import STDOUT, write
from traincast.commands.targets import check_writable

_OPTIONS = "options of `traincast calibrate run`"


def launch(
    arguments: Annotated[
        list[str], typer.Argument(metavar="-- RUN-OPTIONS...", help=f"The {_OPTIONS}.")
    ],
    *,
    local: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Start N processes on this machine.")
    ] = None,
    torchrun: Annotated[
        bool, typer.Option("--torchrun", help="Write the line to run on every node.")
    ] = False,
    slurm: Annotated[
        str | None, typer.Option(metavar="SITE.toml", help="Write a job script for Slurm.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Of --torchrun.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(min=1, help="Of --torchrun.")] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of --torchrun: the first node.")
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="For the line or the script ('-': stdout).")
    ] = STDOUT,
    submit: Annotated[bool, typer.Option("--submit", help="Hand the script to sbatch.")] = False,
) -> None:
    """Start a run on all devices of a machine or a cluster, or write what starts it.

    One of --local, --torchrun and --slurm says how.
    """
    from calibrate.launch import local_command, sbatch_script, torchrun_line
    from simulator.site_file import read_site

    if out != STDOUT:
        check_writable({"--out": out})
    chosen = [local is not None, torchrun, slurm is not None]
    if sum(chosen) != 1:
        rule = "one of --local N, --torchrun and --slurm SITE.toml is needed"
        raise InputError(Problem(rule=rule, found=f"{sum(chosen)} of them"))
    _check_run(arguments, here=local is not None)
    if submit and (slurm is None or out == STDOUT):
        rule = "needs --slurm SITE.toml and a file to keep the script in"
        raise InputError(Problem(key="--submit", rule=rule, fix="--out job.sbatch"))
    if local is not None:
        _become(local_command(local, arguments))
    elif slurm is not None:
        write(sbatch_script(read_site(slurm), arguments), out)
        if submit:
            _submit(out)
        elif out != STDOUT:
            typer.echo(f"wrote {out}; next: {shlex.join(['sbatch', out])}", err=True)
    else:
        line = torchrun_line(*_torchrun_options(nodes, gpus_per_node, endpoint), arguments)
        write(line + "\n", out)
        if out != STDOUT:
            typer.echo(f"wrote {out}; next: run its line on every node", err=True)


def _check_run(arguments: list[str], *, here: bool) -> None:
    """Let the verb itself say what is wrong with its options, before anything is started."""
    verb = typer.Typer(add_completion=False)
    verb.command()(run_measurements)
    command = typer.main.get_command(verb)
    check_values(command.make_context("traincast calibrate run", list(arguments)).params, here=here)


def _torchrun_options(
    nodes: int | None, gpus_per_node: int | None, endpoint: str | None
) -> tuple[int, int, str]:
    given = {"--nodes": nodes, "--gpus-per-node": gpus_per_node, "--endpoint": endpoint}
    missing = [name for name, value in given.items() if value is None]
    if missing or nodes is None or gpus_per_node is None or endpoint is None:
        problems = (Problem(key=name, rule="is needed with --torchrun") for name in missing)
        raise InputError(*problems)
    return nodes, gpus_per_node, endpoint


def _become(command: list[str]) -> None:
    """Let the command take this process's place: its exit code and signals are this one's."""
    check_torch()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)


def _submit(script: str) -> None:
    command = ["sbatch", script]
    shown = shlex.join(command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        rule = f"cannot be started: {(error.strerror or '').lower()}"
        fix = f"on a login node of the cluster: {shown}"
        raise InputError(Problem(where="sbatch", rule=rule, fix=fix)) from error
    if done.returncode != 0:
        rule = f"ended with exit code {done.returncode}"
        found = " ".join(done.stderr.split()) or "no words"
        raise InfeasibleError(Problem(where=shown, rule=rule, found=found))
    typer.echo(done.stdout.strip() or f"{Path(script).name} was handed to sbatch")
