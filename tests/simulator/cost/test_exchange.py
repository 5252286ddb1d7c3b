"""Two stages of 1F1B that send to each other over a library whose ranks take turns."""

from __future__ import annotations

import pytest

from simulator.hardware.software_constants import SoftwareConstants
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.schedule.tasks import Work, WorkKind
from tests.simulator.small_cpu import forecaster, with_software

TURNS = 2.0
WIRE, LINK = 1 * 128 * 256 * 4 - 16 * 1024, 0.95 * 25e6
"""Bytes of a micro-batch of one sequence, less what an idle link of this profile lets pass at
once; bytes/s of a link of 200 Mb/s at 95 %."""


@pytest.mark.parametrize(
    ("alone", "exchange", "longer"),
    [
        # The stage behind comes later, and asks behind the gradient that it sends.
        (WorkKind.SEND_FORWARD, WorkKind.EXCHANGE_FORWARD, (TURNS - 1) * WIRE / LINK),
        (WorkKind.SEND_BACKWARD, WorkKind.EXCHANGE_BACKWARD, 0.0),
    ],
)
def test_the_later_of_two_ranks_sends_before_it_receives(
    alone: WorkKind, exchange: WorkKind, longer: float
) -> None:
    profile = with_software(SoftwareConstants(stack="pytorch-gloo"))
    apart = profile.constants.collectives.model_copy(update={"apart": {"sendrecv": TURNS}})
    constants = profile.constants.model_copy(update={"collectives": apart})
    found = forecaster(profile.model_copy(update={"constants": constants}))
    layout = ParallelLayout(pp=2, dp=2, schedule=ScheduleName.ONE_F_ONE_B)
    program = found.program(layout)
    source = 0 if alone is WorkKind.SEND_FORWARD else 1
    one, both = (
        found.costs.work(program, Work(kind, 1 - source, source)).seconds
        for kind in (alone, exchange)
    )

    assert both - one == pytest.approx(longer)
