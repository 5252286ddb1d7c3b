"""A point that the software cannot do is recorded with its reason, and the worker goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from calibrate.batches import Batch
from calibrate.measuring import Alone, Outcome
from calibrate.points import GemmPoint, Point
from calibrate.records import Status
from calibrate.work import Work, do_work
from calibrate.worker_messages import Done, Job, Message, Task
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype


@dataclass(slots=True)
class Supervisor:
    """Keeps what a worker says."""

    messages: list[Message] = field(default_factory=list)

    def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def statuses(self) -> list[Status]:
        return [message.record.status for message in self.messages if isinstance(message, Done)]


def product(dtype: Dtype) -> GemmPoint:
    return GemmPoint(dtype=dtype, m=16, n=16, k=16)


def measure(point: Point) -> Outcome:
    assert isinstance(point, GemmPoint)
    if point.dtype is Dtype.FP4:
        raise UnsupportedError(Problem(where="point", rule="no fp4 product here"))
    return Outcome(seconds=1.0, spread=0.0, samples=3)


def test_the_points_behind_an_unsupported_one_are_measured() -> None:
    points = tuple(map(product, (Dtype.FP32, Dtype.FP4, Dtype.FP4, Dtype.FP4, Dtype.BF16)))
    batch = Batch(name="kernels", ranks="one", points=points, seconds=5.0)
    task = Task(number=1, device="cpu", batch=batch, todo=tuple(range(5)))
    said = Supervisor()
    job = Job(task=task, parent=1, start_limit=1.0)
    do_work(Work(job=job, measure=measure, ranks=Alone(), say=said))

    assert said.statuses == [Status.OK, *[Status.FAILED] * 3, Status.OK]
    reasons = [m.record.reason for m in said.messages if isinstance(m, Done)]
    assert reasons[1] == "point: no fp4 product here"
