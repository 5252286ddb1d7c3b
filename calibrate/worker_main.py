"""The life of a worker: its job comes in a line, it says what it does, it ends with its parent."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

from calibrate.orphans import die_with_parent, start_warden
from calibrate.serve_workers import SERVE, serve
from calibrate.work import failure
from calibrate.worker_messages import Job, Message

Say = Callable[[Message], None]
_STDIN = 0
_CHUNK = 65536
_WAIT_SECONDS = 10.0
"""Between the report of an error and the exit that other ranks would take for the cause."""


def run_worker(do_job: Callable[[Job, Say], None], preload: Callable[[], None]) -> int:
    """Do the job on standard input and return the exit code.

    The last argument of the command line is the number of the pipe for messages. After `--serve`
    it is a socket's: this process then forks the workers, and `preload` reads what they need. To
    be called before anything has started a thread.
    """
    number = int(sys.argv[-1])
    pipe = serve(number, preload) if sys.argv[-2] == SERVE else number
    job = Job.model_validate_json(_first_line())
    die_with_parent(job.parent)
    start_warden(_STDIN, close=(pipe,))
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)

    def say(message: Message) -> None:
        data = message.model_dump_json().encode() + b"\n"
        while data:
            data = data[os.write(pipe, data) :]

    try:
        do_job(job, say)
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        say(failure(error))
        time.sleep(_WAIT_SECONDS)
        return 1
    return 0


def _first_line() -> bytes:
    """Return the job without reading further, which is the warden's to do."""
    data = b""
    while not data.endswith(b"\n"):
        chunk = os.read(_STDIN, _CHUNK)
        if not chunk:
            sys.exit("no job has come: workers are started by `traincast calibrate run`")
        data += chunk
    return data
