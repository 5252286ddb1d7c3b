"""Layouts of a mixed cluster whose layers are spread by how fast the machines of its stages are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import floor

import numpy as np

from planner.balance import FloatArray, balanced_layers
from planner.division import fits_of
from planner.feasible import Feasible, LayoutKey, layout_key
from simulator.api import Forecaster
from simulator.mixed import Mixed
from simulator.parallel.checks import violations
from simulator.parallel.layout import ParallelLayout, Placement
from simulator.parallel.program import StepProgram

_TRIES = 4
"""Splits that are tried until one fits; memory is linear in the layers of a stage but for what is
held while passes run, so that the second mostly does."""


def with_balanced(
    forecaster: Forecaster, feasible: Feasible, layouts: Iterable[ParallelLayout], fraction: float
) -> Feasible:
    """Return the layouts that fit, and of each of `layouts` the balanced one where it fits too.

    A balanced layout has its own layers_per_stage and is else the same. `fraction` is the share of
    its accelerator's memory that a stage may reserve.
    """
    if forecaster.mixed is None or not forecaster.stack.custom_partition:
        return feasible
    balancer = _Balancer(forecaster, forecaster.mixed, fraction)
    too_large: set[LayoutKey] = set()
    found: list[ParallelLayout] = []
    for layout in sorted(layouts, key=lambda each: each.micro_batch_size):
        family = layout_key(layout.model_copy(update={"micro_batch_size": 1}))
        if family in too_large or not balancer.uneven(layout):
            continue
        spread = balancer.balanced(layout)
        if spread is None:
            # Memory never falls when the micro-batch grows and all else stays.
            too_large.add(family)
        elif spread != layout:
            found.append(spread)
    fits = (*feasible.fits, *fits_of(forecaster, found))
    nearest = () if fits else feasible.nearest
    return replace(feasible, fits=fits, nearest=nearest, balanced=len(found))


def balanced_layout(
    forecaster: Forecaster, layout: ParallelLayout, fraction: float = 1.0
) -> ParallelLayout | None:
    """Return a layout with the layers spread so that its slowest stage is fastest and all fit.

    None where no split fits, the cluster is not mixed, or stages cannot be told their layers: in
    one stage, where two ways share them (zb-v, dualpipe), where vpp does not divide the layers.
    Stages of several chunks have equally many layers in each. Layers and ends of a stage take what
    the passes over them do; the update and collectives between passes count for nothing.
    """
    if forecaster.mixed is None or not forecaster.stack.custom_partition:
        return None
    balancer = _Balancer(forecaster, forecaster.mixed, fraction)
    return balancer.balanced(layout) if balancer.uneven(layout) else None


class _Balancer:
    """Balances the layouts of one forecaster; remembers splits that are asked for again."""

    def __init__(self, forecaster: Forecaster, mixed: Mixed, fraction: float) -> None:
        self.forecaster, self.mixed, self.fraction = forecaster, mixed, fraction
        self._found: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        self._states: dict[tuple[object, ...], bool] = {}

    def uneven(self, layout: ParallelLayout) -> bool:
        """Return whether stages stand on different machines, and can be told their layers."""
        whole = self.forecaster.model.num_hidden_layers % layout.vpp == 0
        loops = layout.pipeline.placement is Placement.LOOP
        return whole and loops and len(set(self.mixed.stage_kinds(layout))) > 1

    def balanced(self, layout: ParallelLayout) -> ParallelLayout | None:
        """Return what `balanced_layout` does of an uneven layout."""
        if self._states_too_large(layout):
            return None
        count, kinds = self.forecaster.model.num_hidden_layers, self.mixed.stage_kinds(layout)
        layers, ends = self._seconds(layout, kinds)
        most = [count] * layout.pp
        known: dict[int, tuple[int, float]] = {}
        for _ in range(_TRIES):
            split = self._split(layers, ends, tuple(most))
            if split is None:
                return None
            spread = layout.model_copy(update={"layers_per_stage": split * layout.vpp})
            if self._broken(spread):
                return None
            most = self._room(spread, split, most, known)
            if all(held <= room for held, room in zip(split, most, strict=True)):
                return spread if self.forecaster.fits_host(spread) else None
        return None

    def _states_too_large(self, layout: ParallelLayout) -> bool:
        """Return whether weights, gradients and states of all stages exceed all their memory.

        Wherever the layers are, they are the same in all; they depend on no micro-batch.
        """
        key = (
            *(layout.tp, layout.pp, layout.cp, layout.dp, layout.ep, layout.expert_tp),
            *(layout.zero_stage, layout.optimizer_offload),
        )
        if key not in self._states:
            pairs = self.mixed.memory(layout)
            held = sum(u.weights + u.gradients + u.optimizer + u.context for u, _ in pairs)
            self._states[key] = held > self.fraction * sum(room for _, room in pairs)
        return self._states[key]

    def _broken(self, layout: ParallelLayout) -> bool:
        cast = self.forecaster
        return any(True for _ in violations(cast.model, cast.job, cast.stack, layout))

    def _split(
        self, layers: FloatArray, ends: Sequence[float], most: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        key = (layers.tobytes(), layers.shape, *ends, *most)
        if key not in self._found:
            self._found[key] = balanced_layers(layers, ends, most)
        return self._found[key]

    def _seconds(
        self, layout: ParallelLayout, kinds: Sequence[Sequence[int]]
    ) -> tuple[FloatArray, list[float]]:
        """Return (stages, layers) the passes over each layer of a chunk, and those over ends."""
        machines = self.mixed.machines
        told = [_passes(self.forecaster, layout, kind) for kind in range(len(machines))]
        layers = np.array([np.max([told[kind][0] for kind in held], axis=0) for held in kinds])
        places = map(layout.pipeline.places_of, range(layout.pp))
        ends = [
            max(sum(told[kind][1][place] for place in own) for kind in held)
            for own, held in zip(places, kinds, strict=True)
        ]
        if layout.vpp > 1:
            layers = layers.reshape(layout.pp, -1, layout.vpp).sum(axis=2)
        return layers, ends

    def _room(
        self,
        layout: ParallelLayout,
        split: Sequence[int],
        most: Sequence[int],
        known: dict[int, tuple[int, float]],
    ) -> list[int]:
        """Return how many layers each stage may hold, by what those it was given take.

        `known` is what each stage took with other layers before.
        """
        found = list(most)
        for stage, (use, room) in enumerate(self.mixed.memory(layout)):
            held, over = split[stage], use.reserved - self.fraction * room
            if over > 0:
                before = known.get(stage)
                each = use.reserved / held
                if before is not None and before[0] != held:
                    each = (use.reserved - before[1]) / (held - before[0])
                found[stage] = min(held - 1, floor(held - over / each))
            known[stage] = held, use.reserved
        return found


def _passes(
    forecaster: Forecaster, layout: ParallelLayout, kind: int
) -> tuple[FloatArray, list[float]]:
    """Return the seconds of both passes over each layer, and by place over what is no layer."""
    assert forecaster.mixed is not None
    machine = forecaster.mixed.machines[kind]
    program: StepProgram = machine.programs.of(layout)
    layers: list[float] = []
    ends: list[float] = []
    for chunk in program.chunks:
        own = [
            (priced.forward.seconds + priced.backward.seconds + priced.recompute.seconds, count)
            for layer, count in chunk.whole.layers
            for priced in [machine.costs.priced_pass(program, layer)]
        ]
        layers += [seconds for seconds, count in own for _ in range(count)]
        both = machine.costs.segment(program, chunk.whole)
        ends.append(sum(cost.seconds for cost in both) - sum(s * n for s, n in own))
    return np.array(layers), ends
