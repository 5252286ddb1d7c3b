"""`traincast calibrate run`: measures a machine, point by point, and keeps every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from simulator.errors import InfeasibleError, InputError, Problem
from traincast.commands.targets import check_folders

if TYPE_CHECKING:
    from calibrate.run_events import Finished
    from calibrate.run_settings import RunSettings


_Out = Annotated[str, typer.Option(metavar="DIR", help="Folder to measure into, or to go on in.")]
_Plan = Annotated[str, typer.Option(metavar="PLAN", help="quick, standard, full, or a .toml file.")]
_Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Model whose shapes come first [default: the plan's]."),
]
_Device = Annotated[
    str | None, typer.Option(metavar="DEVICE", help="cpu or cuda [default: cuda where it is].")
]
_Backend = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of torch.distributed [default: nccl on cuda, gloo on cpu]; rccl is nccl.",
    ),
]
_Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help='For the whole run, such as "5 min" [default: none].'),
]
_Retry = Annotated[
    bool, typer.Option("--retry", help="Measure again what timed out, failed or was noisy.")
]
_PointLimit = Annotated[
    str, typer.Option(metavar="TIME", help="For a point, on top of 5 times what it should take.")
]
_StartLimit = Annotated[
    str, typer.Option(metavar="TIME", help="For workers to start and find each other.")
]
_SilentLimit = Annotated[
    str, typer.Option(metavar="TIME", help="Without a sign of life of another rank.")
]


def run_measurements(
    *,
    out: _Out,
    plan: _Plan = "quick",
    model: _Model = None,
    device: _Device = None,
    backend: _Backend = None,
    budget: _Budget = None,
    retry: _Retry = False,
    point_limit: _PointLimit = "60 s",
    start_limit: _StartLimit = "180 s",
    silent_limit: _SilentLimit = "30 s",
) -> None:
    """Measure this machine: alone, or with others under torchrun or srun.

    Every finished point is on disk before the next begins. Ended at any moment, the same command
    goes on. What hangs, fails or does not fit in memory is recorded as such and the rest goes on.
    """
    from calibrate.crew import Patience
    from calibrate.run_events import Finished
    from calibrate.run_settings import RunSettings
    from calibrate.supervise import supervise
    from traincast.commands.run_screen import screen

    check_torch()
    check_folders({"--out": out})
    settings = RunSettings(
        folder=Path(out),
        plan=plan,
        model=model,
        device=_device(device),
        backend=backend or "",
        budget=None if budget is None else _seconds("--budget", budget),
        retry=retry,
        patience=Patience(
            start=_seconds("--start-limit", start_limit),
            point=_seconds("--point-limit", point_limit),
            silent=_seconds("--silent-limit", silent_limit),
        ),
    )
    finished: Finished | None = None
    with screen() as shown:
        for event in supervise(settings):
            shown.show(event)
            finished = event if isinstance(event, Finished) else finished
    if finished is not None:
        _end(finished, settings)


def _end(finished: Finished, settings: RunSettings) -> None:
    """Print what was measured and what to do next.

    Raises:
        InfeasibleError: nothing was measured that a profile can be fitted to.
    """
    from calibrate.journal_lines import REPEATABLE
    from calibrate.records import Status
    from reports.quantities import counted, seconds

    counts = finished.counts
    parts = [f"{counts[status]} {status}" for status in Status if counts.get(status)]
    took = seconds(finished.seconds)
    typer.echo(f"measured in {took}: {', '.join(parts) or 'nothing new'}")
    if finished.left_out:
        typer.echo(f"left out for the budget: {finished.left_out}; the same command measures them")
    if counts.get(Status.TIMEOUT) or counts.get(Status.FAILED):
        typer.echo(f"logs of the workers: {settings.folder / 'logs'}")
    if any(counts.get(status) for status in REPEATABLE):
        typer.echo(f"--retry measures {', '.join(REPEATABLE)} points again")
    typer.echo(f"{counted(finished.fitted, 'point')} to fit in {finished.journal}")
    if not finished.fitted:
        rule = "no point was measured well enough to be fitted"
        raise InfeasibleError(Problem(where=finished.journal, rule=rule))
    typer.echo(f"next: traincast calibrate fit {finished.folder} --out profile.toml")


def check_torch() -> None:
    """Raise `InputError` where PyTorch is not installed; it is not read."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        rule = "measuring needs PyTorch; nothing else does"
        fix = "the cluster's own torch, or: pip install 'traincast[calibrate]'"
        raise InputError(Problem(where="torch", rule=rule, found="not installed", fix=fix))


def check_values(options: Mapping[str, Any], *, here: bool) -> None:
    """Raise `InputError` with all options of a run that are wrong wherever it is started."""
    from calibrate.plan import load_plan

    plan = options["plan"]
    checks: list[Callable[[], object]] = [lambda: _device(options["device"])]
    if here or not plan.endswith(".toml") or Path(plan).is_file():
        # A plan file that is not here may be there where the run is.
        checks.append(lambda: load_plan(plan))
    for name in ("budget", "start_limit", "point_limit", "silent_limit"):
        if options[name] is not None:
            key = f"--{name.replace('_', '-')}"
            checks.append(partial(_seconds, key, options[name]))
    problems: list[Problem] = []
    for check in checks:
        try:
            check()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)


def _device(name: str | None) -> Literal["", "cpu", "cuda"]:
    if name not in (None, "cpu", "cuda"):
        rule, fix = "must be cpu or cuda", "cuda for AMD's accelerators too"
        raise InputError(Problem(key="--device", rule=rule, found=str(name), fix=fix))
    return cast(Literal["", "cpu", "cuda"], name or "")


def _seconds(option: str, text: str) -> float:
    from simulator.units import Dimension, parse_quantity

    try:
        value = parse_quantity(text, Dimension.TIME)
    except ValueError as error:
        fix = f'{option} "5 min"'
        raise InputError(Problem(key=option, rule=str(error), found=text, fix=fix)) from error
    if value <= 0:
        raise InputError(Problem(key=option, rule="must be greater than 0", found=text))
    return value
