"""The worker process of `traincast calibrate run`, started with `-m calibrate.measure_worker`.

Torch is read only when the worker is tied to its supervisor: reading it takes seconds, and it
starts threads.
"""

from __future__ import annotations

import os
import sys

from calibrate.worker_main import Say, run_worker
from calibrate.worker_messages import Job


def _do_job(job: Job, say: Say) -> None:
    from calibrate.measure_session import do_job

    do_job(job, say)


if __name__ == "__main__":
    code = run_worker(_do_job)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Threads of libraries must not keep a worker whose work is done.
