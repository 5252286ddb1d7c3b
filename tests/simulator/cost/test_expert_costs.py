"""What a stack's experts cost beside their products: waves, general kernels, CPU time."""

from __future__ import annotations

import pytest

from simulator.cost.blocks import BlockCost, KernelCosts
from simulator.cost.collectives.select import CollectiveCosts
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.work import Block
from simulator.results import Category
from simulator.workload.operator import Gemm, MemoryBound, Operator
from tests.fakes import fake_accelerator, fake_constants, fake_gemm, fake_profile, fake_stack

EXPERTS = 4


def costs_of(**kernels: object) -> KernelCosts:
    # Whole waves of 100 x 100 tiles on 4 units; the product of an expert is one tile.
    gemm = fake_gemm(tiles=((100, 100),), wave_quantisation=1.0)
    profile = fake_profile(
        accelerator=fake_accelerator(compute_units=EXPERTS),
        constants=fake_constants(gemm={Dtype.BF16: gemm}),
    )
    stack = fake_stack(kernels=kernels)
    return KernelCosts(profile, stack, Dtype.BF16, CollectiveCosts(profile))


def seconds(operator: Operator, **kernels: object) -> float:
    return costs_of(**kernels).operator_seconds(operator)


def block(*pieces: MemoryBound, **kernels: object) -> BlockCost:
    return costs_of(**kernels).block(Block(name="b", pieces=pieces))


def choice(name: str) -> MemoryBound:
    return MemoryBound(name=name, bytes=0.0, kind=MemoryClass.SOFTMAX, launches=0)


def product(batch: int) -> Gemm:
    return Gemm(name="x", m=100, n=100, k=100, batch=batch, grouped=True)


def test_products_of_their_own_do_not_share_a_wave() -> None:
    each = seconds(product(1), grouped_waves=False)
    apart = seconds(product(EXPERTS), grouped_waves=False)
    assert apart == pytest.approx(EXPERTS * each)
    assert seconds(product(EXPERTS)) == pytest.approx(each)


def test_general_kernels_take_the_stacks_own_time() -> None:
    tuned = MemoryBound(name="x", bytes=1e9, kind=MemoryClass.POINTWISE)
    general = MemoryBound(name="x", bytes=1e9, kind=MemoryClass.POINTWISE, eager=True)
    plain = seconds(tuned)
    assert seconds(tuned, eager_factor=2.5) == plain
    assert seconds(general, eager_factor=2.5) == pytest.approx(2.5 * plain)


def test_a_pass_over_experts_takes_at_least_its_cpu_time() -> None:
    found = block(choice("moe.router.choice"), cpu_experts=3.0)
    assert (found.seconds, found.by_category[Category.LAUNCH]) == pytest.approx((3.0, 3.0))


def test_cpu_time_of_experts_hides_behind_what_runs_longer() -> None:
    long = MemoryBound(name="x", bytes=1e15, kind=MemoryClass.POINTWISE)
    pieces = (choice("moe.router.choice.backward"), long)
    assert block(*pieces, cpu_experts=1e-3).seconds == block(*pieces).seconds


def test_layers_without_experts_take_none_of_it() -> None:
    assert block(choice("attention.softmax"), cpu_experts=3.0).seconds == 0.0
