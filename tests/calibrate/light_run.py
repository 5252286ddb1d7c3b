"""A supervisor with light workers: `-m tests.calibrate.light_run FOLDER PLAN [retry]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from calibrate.run_settings import RunSettings
from calibrate.supervise import supervise
from simulator.errors import TraincastError

WORKER = Path(__file__).with_name("light_worker.py")


def main(folder: str, plan: str, *words: str) -> int:
    settings = RunSettings(
        folder=Path(folder),
        plan=plan,
        retry="retry" in words,
        worker=(sys.executable, str(WORKER), folder),
    )
    try:
        for event in supervise(settings):
            print(event, flush=True)  # noqa: T201
    except TraincastError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def forked(folder: str, plan: str, words: tuple[str, ...], errors: str, cpu: str) -> None:
    """Do the same in a process that was forked, with its own standard error."""
    os.environ["LIGHT_CPU"] = cpu
    for path, stream in ((os.devnull, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    code = main(folder, plan, *words)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
