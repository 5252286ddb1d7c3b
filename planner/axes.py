"""What a search table leaves free: the choices at each axis of one tp x pp x cp x dp."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import Any

from planner.splits import chunk_counts, given_layers
from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeModule,
    ScheduleName,
)
from simulator.parallel.placement import Placement
from simulator.scenario import Scenario, SearchFile
from simulator.workload.layer import MlaSpec, MoeSpec

Choice = dict[str, Any]
"""Fields of a `ParallelLayout` that are chosen together."""

AXES: tuple[tuple[str, ...], ...] = (
    ("tp", "pp", "cp", "dp"),
    ("sequence_parallel",),
    ("ep", "etp"),
    ("cp_comm_type", "cp_inner"),
    ("micro_batch_size",),
    ("schedule", "vpp", "layers_per_stage", "microbatch_group_size", "extra_warm_up"),
    ("zero_stage",),
    ("recompute", "recompute_modules", "recompute_num_layers"),
    ("offload_layers", "optimizer_offload"),
)
"""Fields that are chosen together, in the order in which they are; all others keep their default.
The choices at one axis depend on the first one alone, so that a refused branch can be counted."""

_LOOPED = (ScheduleName.INTERLEAVED, ScheduleName.LOOPED_BFS)
"""Schedules that differ from one of one chunk a stage only by having several."""
_FOLDED = (Placement.V, Placement.BIDIRECTIONAL)
_FOLDED_CHUNKS = 2
"""Chunks a stage where each stage runs one part on the way there and one on the way back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Ranks along the axes that everything else depends on."""

    tp: int
    pp: int
    cp: int
    dp: int

    @property
    def stage(self) -> int:
        """Ranks of a pipeline stage."""
        return self.tp * self.cp * self.dp

    def choice(self) -> Choice:
        """Return the first entry of `AXES`."""
        return {"tp": self.tp, "pp": self.pp, "cp": self.cp, "dp": self.dp}


def options(scenario: Scenario, mesh: Mesh) -> list[list[Choice]]:
    """Return the choices at each of `AXES` behind the first."""
    search = scenario.file.search
    spread = search.sequence_parallel if mesh.tp > 1 else (False,)
    return [
        [{"sequence_parallel": value} for value in sorted(set(spread))],
        list(_experts(scenario, mesh)),
        list(_exchanges(scenario, mesh.cp)),
        [{"micro_batch_size": n} for n in _micro_batch_sizes(scenario, mesh.dp)],
        list(_pipelines(scenario, mesh.pp)),
        [{"zero_stage": n} for n in _zero_stages(scenario, mesh.dp * mesh.cp)],
        list(_recomputations(scenario)),
        [
            {"offload_layers": layers, "optimizer_offload": share}
            for layers in sorted(set(search.offload_layers))
            for share in sorted(set(search.optimizer_offload))
        ],
    ]


def tensor_sizes(scenario: Scenario) -> tuple[int, ...]:
    """Return the tp to consider, rising."""
    search = scenario.file.search
    limit = search.max_tp or scenario.profile.node.scale_up.domain_size
    if search.tp is not None:
        return tuple(n for n in _distinct(search.tp) if n <= (search.max_tp or n))
    return tuple(n for n in divisors(scenario.world_size) if n <= min(limit, _most("tp")))


def depths(scenario: Scenario) -> tuple[int, ...]:
    """Return the pp to consider, rising."""
    given, layers = scenario.file.search.pp, scenario.model.spec.num_hidden_layers
    free = (n for n in divisors(scenario.world_size) if n <= min(layers, _most("pp")))
    return _distinct(free if given is None else given)


def expert_sizes(scenario: Scenario) -> tuple[int, ...]:
    """Return the ep to consider, rising: free, the divisors of the experts of a layer."""
    given, moe = scenario.file.search.ep, scenario.model.spec.moe
    if given is not None:
        return _distinct(given)
    if moe is None:
        return (1,)
    return tuple(n for n in divisors(moe.num_experts) if n <= _most("ep"))


def schedules(scenario: Scenario) -> tuple[ScheduleName, ...]:
    """Return the schedules to consider; free, those of the stack that need no file.

    GPipe, which keeps the activations of all micro-batches, is tried only where it is asked for or
    there is no other.
    """
    given, offered = scenario.file.search.schedule, scenario.stack.schedules
    if given is not None:
        return tuple(dict.fromkeys(given))
    free = tuple(n for n in offered if n not in (ScheduleName.GPIPE, ScheduleName.CSV))
    return free or offered


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive number, rising.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    low = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return tuple(sorted({*low, *(number // n for n in low)}))


def _experts(scenario: Scenario, mesh: Mesh) -> Iterator[Choice]:
    """Yield ep with etp; where both are free, those that divide the ranks of a stage.

    An etp that is tp is left to its default, None.
    """
    search = scenario.file.search
    moe = scenario.model.spec.moe is not None
    widths = _distinct(search.etp or ((1, mesh.tp) if moe else (mesh.tp,)))
    free = search.ep is None and search.etp is None
    for ep in expert_sizes(scenario):
        for etp in widths:
            if not free or mesh.stage % (ep * etp) == 0:
                yield {"ep": ep, "etp": None if etp == mesh.tp else etp}


def _exchanges(scenario: Scenario, cp: int) -> Iterator[Choice]:
    """Yield how keys and values are exchanged; where nothing is, the default alone."""
    search = scenario.file.search
    if cp == 1:
        yield {"cp_comm_type": ContextExchange.RING, "cp_inner": None}
        return
    for kind in dict.fromkeys(search.cp_comm_type or ContextExchange):
        if kind is not ContextExchange.HIERARCHICAL:
            yield {"cp_comm_type": kind, "cp_inner": None}
            continue
        inner = search.cp_inner or divisors(cp)[1:-1]
        yield from ({"cp_comm_type": kind, "cp_inner": n} for n in _distinct(inner))


def _micro_batch_sizes(scenario: Scenario, dp: int) -> tuple[int, ...]:
    given, batch = scenario.file.search.micro_batch_size, scenario.file.job.global_batch_size
    if given is not None:
        return _distinct(given)
    if batch % dp:
        return (1,)
    return tuple(n for n in divisors(batch // dp) if n <= _most("micro_batch_size"))


def _pipelines(scenario: Scenario, pp: int) -> Iterator[Choice]:
    """Yield schedules with vpp; where the stack needs to be told, with the layers of each stage."""
    for name in schedules(scenario):
        for vpp in _chunk_counts(scenario, name, pp):
            choice: Choice = {"schedule": name, "vpp": vpp}
            parts = ParallelLayout(pp=pp, vpp=vpp, schedule=name).pipeline.way
            layers = given_layers(scenario.model.spec, scenario.stack, pp, parts)
            if layers is not None:
                choice["layers_per_stage"] = layers
            yield from (choice | more for more in _warm_ups(scenario.file.search, name, pp))


def _warm_ups(search: SearchFile, name: ScheduleName, pp: int) -> Iterator[Choice]:
    """Yield the options of a schedule that has any."""
    groups: tuple[int | None, ...] = (None,)
    if search.microbatch_group_size is not None and name is ScheduleName.INTERLEAVED:
        groups = _distinct(search.microbatch_group_size)
    warms_up = pp > 1 and name in (ScheduleName.ONE_F_ONE_B, ScheduleName.INTERLEAVED)
    for group, extra in product(groups, _distinct(search.extra_warm_up) if warms_up else (0,)):
        grouped: Choice = {} if group is None else {"microbatch_group_size": group}
        yield grouped | ({"extra_warm_up": extra} if extra else {})


def _chunk_counts(scenario: Scenario, name: ScheduleName, pp: int) -> tuple[int, ...]:
    """Return the vpp at which a schedule is played on pp stages."""
    given = scenario.file.search.vpp
    if name not in _LOOPED:
        folded = ParallelLayout(pp=pp, schedule=name).pipeline.placement in _FOLDED
        only = _FOLDED_CHUNKS if folded else 1
        return (only,) if given is None or only in given else ()
    if pp == 1:
        return ()
    free = chunk_counts(scenario.model.spec, scenario.stack, pp)
    found = free if given is None else _distinct(given)
    return tuple(n for n in found if 1 < n <= _most("vpp"))


def _zero_stages(scenario: Scenario, data_ranks: int) -> tuple[int, ...]:
    stack = scenario.stack
    offered = {*stack.zero_stages, *stack.zero_stages_with_pipeline}
    stages = _distinct(scenario.file.search.zero_stage or offered)
    return stages if data_ranks > 1 else stages[:1]


def _recomputations(scenario: Scenario) -> Iterator[Choice]:
    """Yield what is recomputed: modules where selective, numbers of layers where full."""
    search = scenario.file.search
    for kind in dict.fromkeys(search.recompute):
        match kind:
            case Recompute.NONE:
                yield {"recompute": kind}
            case Recompute.SELECTIVE:
                for modules in dict.fromkeys(module_sets(scenario)):
                    yield {"recompute": kind, "recompute_modules": modules}
            case Recompute.FULL:
                for layers in dict.fromkeys(search.recompute_num_layers):
                    number = None if layers == "all" else layers
                    yield {"recompute": kind, "recompute_num_layers": number}


def module_sets(scenario: Scenario) -> tuple[tuple[RecomputeModule, ...], ...]:
    """Return the sets of modules that selective recomputation tries.

    Free, the attention core, and for experts or latent attention once more what is large and cheap
    to compute again: norms, the experts' activation, the latents' up projections. Source:
    Megatron-Core 0.13, docs of --recompute-modules; the recipe of DeepSeek-V3 in Megatron-Bridge.
    """
    given = scenario.file.search.recompute_modules
    if given is not None:
        return tuple(tuple(sorted(set(modules))) for modules in given)
    layers = scenario.model.spec.layer_groups()
    own = [RecomputeModule.LAYERNORM]
    if any(isinstance(layer.attention, MlaSpec) for layer in layers):
        own.append(RecomputeModule.MLA_UP_PROJECTION)
    if any(isinstance(layer.mlp, MoeSpec) for layer in layers):
        own.append(RecomputeModule.MOE_ACTIVATION)
    own = [module for module in own if module in scenario.stack.recompute_modules]
    return ((), tuple(own)) if own[1:] else ((),)


def _most(field: str) -> int:
    """Return the largest size of an axis that a layout may have."""
    limits = ParallelLayout.model_fields[field].metadata
    return next(int(limit.le) for limit in limits if hasattr(limit, "le"))


def _distinct(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))
