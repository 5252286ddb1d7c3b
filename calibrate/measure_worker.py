"""The worker process of `traincast calibrate run`, started with `-m calibrate.measure_worker`.

As a new program it reads torch only when it is tied to its supervisor, as that takes seconds; as a
fork server it reads torch once, for all workers.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from calibrate.limits import Limits
from calibrate.worker_main import Say, run_worker
from calibrate.worker_messages import Job


def _do_job(job: Job, say: Say) -> None:
    from calibrate.measure_session import do_job

    do_job(job, say)


_LATE = ("torch._dynamo", "torch.distributed.pipelining")
"""What torch itself reads only at the first step of training, and what a pipeline reads."""


def preload() -> None:
    """Read all that workers need, and what reads units: seconds that every worker would take."""
    from calibrate.measure_registry import MEASURES

    measuring = dict.fromkeys(module for module, _ in MEASURES.values())
    for name in ("calibrate.measure_session", *measuring, *_LATE):
        # What this torch lacks, the first point that needs it says.
        with suppress(ImportError):
            import_module(name)
    Limits.model_validate_json(Limits().model_dump_json())


def main() -> NoReturn:
    """Be a worker or a fork server, as the command line says."""
    code = run_worker(_do_job, preload)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Threads of libraries must not keep a worker whose work is done.


if __name__ == "__main__":
    main()
