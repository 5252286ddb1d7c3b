"""What pricing yields: passes with the seconds of their blocks, and the cost of a kind of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from simulator.cost.blocks import BlockCost
from simulator.cost.measured import compute_of, with_compute
from simulator.cost.plan import Burst, CommPlan
from simulator.hardware.software_constants import MeasuredPass
from simulator.parallel.shard import Shard
from simulator.parallel.split_backward import kept_for_weights
from simulator.parallel.work import Block, PassPair
from simulator.results import Category


@dataclass(frozen=True, kw_only=True)
class PricedPass:
    """A pass pair of a shard with the seconds of its blocks, found where they are asked for.

    Memory asks for none of them, and most layouts of a search are refused by it.
    """

    passes: PassPair
    shard: Shard
    price: Callable[[Block], BlockCost]
    measured: MeasuredPass | None = None
    """What its compute was measured to take."""

    @cached_property
    def kept_for_weights(self) -> float:
        """Bytes that stay for the weight gradients where those are put off."""
        return kept_for_weights(self.passes, self.shard)

    @cached_property
    def forward(self) -> BlockCost:
        """Cost of the forward block."""
        cost = self.price(self.passes.forward)
        return cost if self.measured is None else with_compute(cost, self.measured.forward)

    @cached_property
    def backward(self) -> BlockCost:
        """Cost of the backward block."""
        cost = self.price(self.passes.backward)
        return cost if self.measured is None else with_compute(cost, self.measured.backward)

    @cached_property
    def recompute(self) -> BlockCost:
        """Cost of what is computed again: of a measured pass its share of the forward block."""
        cost = self.price(self.passes.recompute)
        whole = compute_of(self.price(self.passes.forward)) if self.measured else 0.0
        if self.measured is None or not whole:
            return cost
        return with_compute(cost, self.measured.forward * compute_of(cost) / whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCost:
    """One kind of work: compute `seconds` split by category, or collectives one after another."""

    seconds: float
    by_category: Mapping[Category, float]
    plans: tuple[CommPlan, ...] = ()
    bursts: tuple[Burst, ...] = ()
    """Of compute: what it sends meanwhile over links that others load too, part of `seconds`."""
    turns: int = 1
    """How often compute and bursts alternate: its layers."""
