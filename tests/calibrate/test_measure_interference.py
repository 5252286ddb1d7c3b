"""Kernels beside collectives, and the timing of one work while another goes on."""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import Any

import pytest

from calibrate.limits import Limits
from calibrate.measuring import Alone
from calibrate.points import InterferencePoint
from calibrate.records import VALUES
from simulator.parallel.groups import Collective
from simulator.workload.stack_choices import KernelClass
from tests.calibrate.gloo_ranks import on_ranks

torch = pytest.importorskip("torch")

from calibrate.measure_beside import Side, UncoveredError, measure_beside  # noqa: E402
from calibrate.measure_device import device_of  # noqa: E402
from calibrate.measure_interference import LEAST_SECONDS, long_enough  # noqa: E402

LIMITS = Limits(block_seconds=0.01, blocks=3, max_seconds=1.0)


def _sleeping(seconds: float, alone: float | None = None) -> Side:
    device = device_of(torch.device("cpu"))
    return Side(work=lambda: sleep(seconds), alone=alone or seconds, device=device)


def test_both_are_timed_alone_and_together_and_the_rest_looks_on(tmp_path: Path) -> None:
    first, second, outside = on_ranks(3, _both, tmp_path)
    assert first == second == outside
    assert list(first) == list(VALUES["interference"])
    assert all(seconds > 0 for seconds in first.values())


def _both(context: Any) -> dict[str, float]:
    from calibrate.measure_interference import measure_interference

    point = InterferencePoint(
        kernel=KernelClass.GEMM, collective=Collective.ALL_REDUCE, ranks=2, bytes=float(2**16)
    )
    return dict(measure_interference(point, context).values)


@pytest.mark.parametrize("kind", KernelClass)
def test_a_kernel_of_every_class_takes_long_beside_its_launch(kind: KernelClass) -> None:
    device = device_of(torch.device("cpu"))
    kernel = long_enough(kind, device, Alone())
    assert max(device.timed(kernel) for _ in range(3)) >= LEAST_SECONDS


def test_works_that_do_not_meet_take_as_long_together_as_alone() -> None:
    outcome = measure_beside(_sleeping(0.004), _sleeping(0.001), Alone(), LIMITS)
    assert 0.004 <= outcome.seconds < 0.008


def test_a_work_that_outlasts_the_other_is_tried_beside_more_of_it() -> None:
    slowed = _sleeping(0.004, alone=0.0008)
    outcome = measure_beside(slowed, _sleeping(0.001), Alone(), LIMITS)
    assert 0.004 <= outcome.seconds < 0.008


def test_a_work_that_always_outlasts_the_other_has_no_time_beside_it() -> None:
    with pytest.raises(UncoveredError, match="more than 30 times as long"):
        measure_beside(_sleeping(0.01, alone=0.0001), _sleeping(0.0005), Alone(), LIMITS)
