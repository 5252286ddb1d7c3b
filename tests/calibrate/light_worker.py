"""A worker that measures nothing: all of the real one but torch, so that tests start many.

`light_worker.py FOLDER PIPE`; FOLDER only marks its processes for the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from calibrate.batches import DeviceFacts
from calibrate.measuring import Alone, Outcome
from calibrate.points import Point
from calibrate.records import Fingerprint
from calibrate.work import Work, do_work
from calibrate.worker_main import Say, run_worker
from calibrate.worker_messages import Facts, Job, Ready
from simulator.hardware.accelerator import Dtype

SECONDS = 0.02
"""That a point takes."""
FACTS = DeviceFacts(
    device="cpu",
    devices=1,
    memory=1e9,
    dtypes=(Dtype.FP32,),
    flops=1e12,
    fingerprint=Fingerprint(cpu=os.environ.get("LIGHT_CPU", "light")),
)


def do_job(job: Job, say: Say) -> None:
    if job.task.batch is None:
        say(Facts(facts=FACTS))
        return
    # Something that would outlive a worker that is killed alone.
    subprocess.Popen(["sh", "-c", "sleep 600; :", sys.argv[1]])
    say(Ready())
    do_work(Work(job=job, measure=measure, ranks=Alone(), say=say))


def measure(point: Point) -> Outcome:
    time.sleep(SECONDS)
    return Outcome(seconds=SECONDS, spread=0.0, samples=3)


if __name__ == "__main__":
    sys.exit(run_worker(do_job, preload=lambda: None))
