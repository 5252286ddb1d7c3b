"""Random runs that a framework can express, on shipped models and machines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from planner.launch import Tool
from simulator.parallel.checks import violations
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario, ScenarioFile, resolve_scenario

GPUS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What of a layout a framework can be told."""

    models: tuple[str, ...]
    stack: str
    tp: tuple[int, ...] = (1, 2, 4, 8)
    pp: tuple[int, ...] = (1, 2, 4)
    cp: tuple[int, ...] = (1, 2)
    vpp: tuple[int, ...] = (1, 2)
    zero: tuple[int, ...] = (0, 1)
    exchange: tuple[str, ...] = ("p2p",)
    schedules: tuple[str | None, ...] = (None,)
    recompute: tuple[dict[str, Any], ...] = ({}, {"recompute": "full"})
    precisions: tuple[str, ...] = ("bf16",)
    ep: tuple[int, ...] = (1,)


SPACES = {
    Tool.MEGATRON_LM: Space(
        models=("llama3.1-8b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "qwen3-8b"),
        stack="megatron-core",
        exchange=("p2p", "all_gather", "a2a"),
        recompute=(
            {},
            {"recompute": "selective"},
            {"recompute": "selective", "recompute_modules": ["layernorm"]},
            {"recompute": "full"},
            {"recompute": "full", "recompute_num_layers": 2},
            {"recompute": "full", "recompute_num_layers": 2, "recompute_method": "uniform"},
        ),
        precisions=("bf16", "fp8"),
        ep=(1, 2, 4, 8),
    ),
    Tool.MEGATRON_BRIDGE: Space(
        models=("llama3.1-8b", "llama3-70b", "deepseek-v3", "qwen3-30b-a3b"),
        stack="megatron-bridge",
        exchange=("p2p", "a2a"),
        ep=(1, 2, 4, 8),
    ),
    Tool.TORCHTITAN: Space(
        models=("llama3.1-8b", "llama3.1-70b", "qwen3-8b"),
        stack="torchtitan",
        zero=(0, 3),
        schedules=(None, "gpipe", "looped-bfs", "zb-v", "dualpipe-v"),
        exchange=("p2p", "all_gather"),
    ),
    Tool.DEEPSPEED: Space(
        models=("llama3.1-8b", "qwen2.5-7b", "mistral-7b-v0.1"),
        stack="deepspeed-zero3",
        tp=(1,),
        pp=(1,),
        vpp=(1,),
        zero=(3,),
        exchange=("a2a",),
    ),
    Tool.NANOTRON: Space(
        models=("llama3.1-8b", "llama3.2-1b", "qwen2.5-7b"),
        stack="nanotron",
        vpp=(1,),
        schedules=("1f1b", "gpipe"),
    ),
}


def scenario_of(space: Space, nodes: int, **job: Any) -> Scenario:
    """Return a scenario of the first model of a space."""
    return scenario_with(space.models[0], space.stack, nodes, **job)


def scenario_with(model: str, stack: str, nodes: int, **job: Any) -> Scenario:
    """Return a scenario on nodes of eight H100."""
    fields = {"global_batch_size": 64, "seq_length": 2048, "stack": stack, **job}
    file = ScenarioFile.model_validate_json(
        json.dumps(
            {"model": model, "cluster": {"profile": "dgx-h100", "nodes": nodes}, "job": fields}
        )
    )
    return resolve_scenario(file, "scenario.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A scenario, told shortly, and a legal layout of it."""

    scenario: Scenario = field(repr=False)
    layout: ParallelLayout = field(repr=False)
    model: str
    shown: str


@st.composite
def runs(draw: st.DrawFn, tool: Tool) -> Drawn:
    """Return a scenario, and a legal layout of it that `tool` can express."""
    space, nodes = SPACES[tool], draw(st.sampled_from((1, 2, 4)))
    job: dict[str, Any] = {
        "precision": draw(st.sampled_from(space.precisions)),
        "make_vocab_size_divisible_by": 1 if tool is not Tool.MEGATRON_LM else 128,
    }
    if draw(st.booleans()):
        job["tokens"] = 64 * 2048 * draw(st.integers(1, 10**6))
    scenario = scenario_with(draw(st.sampled_from(space.models)), space.stack, nodes, **job)
    layout = _layout(draw, space, scenario)
    model, stack = scenario.model.spec, scenario.stack
    assume(not list(violations(model, scenario.file.job, stack, layout)))
    return Drawn(
        scenario=scenario, layout=layout, model=model.name, shown=f"{layout}, {job}, {nodes} nodes"
    )


def _layout(draw: st.DrawFn, space: Space, scenario: Scenario) -> ParallelLayout:
    world = scenario.world_size
    sizes = [(tp, pp, cp) for tp in space.tp for pp in space.pp for cp in space.cp]
    tp, pp, cp = draw(st.sampled_from([s for s in sizes if world % (s[0] * s[1] * s[2]) == 0]))
    schedule = draw(st.sampled_from(space.schedules)) if pp > 1 else None
    vpp = draw(st.sampled_from(space.vpp)) if pp > 1 else 1
    vpp = {"zb-v": 2, "dualpipe-v": 2, "looped-bfs": 2, "gpipe": 1}.get(schedule or "", vpp)
    zero = draw(st.sampled_from(space.zero))
    dp = world // (tp * pp * cp)
    fields: dict[str, Any] = {
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "dp": dp,
        "vpp": vpp,
        "schedule": schedule,
        # torchtitan shards wherever context is parallel, and never over one rank.
        "zero_stage": (3 if cp > 1 else zero if dp > 1 else 0)
        if space is SPACES[Tool.TORCHTITAN]
        else zero,
        "micro_batch_size": draw(st.sampled_from((1, 2))),
        "sequence_parallel": tp > 1 and scenario.stack.sequence_parallel and draw(st.booleans()),
        **draw(st.sampled_from(space.recompute)),
    }
    if cp > 1:
        fields["cp_comm_type"] = draw(st.sampled_from(space.exchange))
    if scenario.model.spec.moe is not None:
        fields["ep"] = draw(st.sampled_from(space.ep))
        fields["etp"] = draw(st.sampled_from((1, tp)))
    return ParallelLayout.model_validate_json(json.dumps(fields))
