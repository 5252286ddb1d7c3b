"""What rows of mixtures of experts say of graphs and fused experts."""

from __future__ import annotations

import pytest

from calibrate.validation.cells import Row
from calibrate.validation.software import Stacks
from simulator.workload.stack import Kernels
from tests.calibrate.validation.tables import MIXTURE


def kernels(**changes: str) -> Kernels:
    row = Row({**MIXTURE, "framework": "Megatron-Bridge", "framework_version": "", **changes})
    return Stacks().of_step(row).kernels


def test_experts_launched_from_python_cost_cpu_time() -> None:
    assert kernels().cpu_experts > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"cuda_graph": "full_iteration"},
        {"overlap": "dispatcher HybridEP; cuda graphs: attn, router, preprocess"},
    ],
)
def test_a_graph_of_the_router_takes_the_cpu_time_of_experts_away(changes: dict[str, str]) -> None:
    assert kernels(**changes).cpu_experts == 0


def test_mxfp8_presets_that_graph_whole_steps_fuse_the_experts() -> None:
    found = kernels(precision="MXFP8", cuda_graph="full_iteration")
    assert (found.fused_clamp, found.fused_expert_bias) == (True, True)


@pytest.mark.parametrize("precision", ["MXFP8", "BF16"])
def test_other_presets_clamp_and_add_biases_apart(precision: str) -> None:
    found = kernels(precision=precision)
    assert (found.fused_clamp, found.fused_expert_bias) == (False, False)
