"""Bytes of gradients and parameters on the wire, routed experts apart."""

from __future__ import annotations

from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.program import build_program
from simulator.parallel.traffic import gathered
from simulator.workload.job import Part
from tests.fakes import fake_stack, tiny_job
from tests.simulator.parallel.mixtures import tiny_mixture


def test_of_trained_weights_only_those_of_narrow_layers_are_gathered_in_8_bits() -> None:
    # Attention is frozen and there is no shared expert: what is trained beside the routed experts
    # is the ends, norms and routers, 2 bytes each.
    freeze = (Part.ATTENTION,)
    job = tiny_job(precision=Dtype.FP8, fp8_parameters=True, freeze=freeze)
    layout = ParallelLayout(dp=2, zero_stage=1)
    program = build_program(tiny_mixture(), job, fake_stack(), layout, 8)
    (chunk,) = program.chunks
    assert gathered(program, chunk.whole).rest == 2 * chunk.whole.trained
