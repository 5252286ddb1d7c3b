"""Reads what a nanotron YAML file says of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.launch.keys import Keys, overridden
from planner.launch.nanotron_keys import DTYPES, ENGINES, EXPERTS, HARMLESS, MODEL, NOTED
from planner.launch.records import (
    Draft,
    Given,
)
from planner.launch.sizes import cluster_size
from planner.launch.tables import dotted, is_yaml, read_table
from simulator.errors import InputError, Problem
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ZERO_STATES, Recompute, ScheduleName
from simulator.workload.job import Optimizer
from simulator.workload.stack import load_stack


def read_nanotron(given: Given) -> Draft:
    """Return what a nanotron YAML file says."""
    files = [file for file in given.files if is_yaml(file)]
    if not files:
        rule = "nanotron is read from its YAML file"
        raise InputError(Problem(where=given.files[0].name, rule=rule, fix="config.yaml"))
    values = dotted(read_table(files[0]))
    keys = Keys(values, files[0].name, ignore=given.options.ignore)
    for name, value in given.options.variables.items():
        if "." in name:
            keys.override(name, value, "--set")
    if given.options.seq_length is not None:
        keys.override("tokens.sequence_length", given.options.seq_length, "--seq-length")
    layout, accumulation = _read_layout(keys)
    world = layout["dp"] * layout["tp"] * layout["pp"] * layout["cp"]
    gpus = given.gpus_per_node
    nodes = max(world // gpus, 1) if gpus else None
    nodes, gpus = cluster_size(given, nodes, None, keys)
    if nodes * gpus != world:
        keys.complain(
            "parallelism.dp",
            f"dp x tp x pp x cp = {world}, and there are {nodes} x {gpus} accelerators",
            fix="other --nodes or another --cluster",
        )
    model = _model(keys, given)
    job = _read_job(keys, layout, accumulation, given.options.stack or "nanotron")
    keys.settle(HARMLESS, NOTED)
    keys.close()
    return Draft(
        model=model,
        job=job,
        layout=layout,
        stack=given.options.stack or "nanotron",
        nodes=nodes,
        gpus_per_node=gpus,
        read=tuple(keys.read),
        unused=tuple(keys.unused),
        notes=tuple(keys.notes),
    )


def _read_layout(keys: Keys) -> tuple[dict[str, Any], int]:
    keys.need("parallelism.dp", "parallelism.tp", "parallelism.pp")
    found: dict[str, Any] = {
        axis: keys.whole(f"parallelism.{axis}", 1) for axis in ("dp", "tp", "pp")
    }
    found["cp"] = keys.whole("parallelism.context_parallel_size", 1)
    ep = keys.whole("parallelism.expert_parallel_size", 1)
    found |= {"ep": ep} if ep > 1 else {}
    # Source: ParallelismArgs.__post_init__: afab and ALL_REDUCE where nothing is said.
    engine = keys.word("parallelism.pp_engine", ENGINES, ScheduleName.GPIPE)
    found["schedule"] = engine.value
    modes = {"reduce_scatter": True, "all_reduce": False}
    scatters = keys.word("parallelism.tp_mode", modes, default=False)
    found["sequence_parallel"] = scatters and found["tp"] > 1
    if keys.flag("parallelism.recompute_layer"):
        found["recompute"] = Recompute.FULL.value
    found["zero_stage"] = keys.whole("optimizer.zero_stage", 0, least=0)
    if found["zero_stage"] > ZERO_STATES:
        keys.wrong("optimizer.zero_stage", "nanotron shards optimizer states alone", "1")
    found["micro_batch_size"] = keys.whole("tokens.micro_batch_size", 1)
    return found, keys.whole("tokens.batch_accumulation_per_replica", 1)


def _model(keys: Keys, given: Given) -> str | dict[str, Any]:
    named = given.options.model
    described = keys.given("model.model_config.num_hidden_layers")
    problems = list(keys.problems)
    own = _read_model(keys)
    if named is None:
        return own
    keys.problems[:] = problems
    if described:
        keys.notes.append(overridden("--model", named, keys.where, "a model of its own"))
    return named


def _read_model(keys: Keys) -> dict[str, Any]:
    place = "model.model_config."
    keys.need(*(place + name for name in ("num_hidden_layers", "hidden_size", "vocab_size")))
    fields = {key: keys.whole(place + name) for name, key in MODEL.items()}
    experts = [name for name in keys.values if name.startswith(place + "moe_config")]
    if [name for name in experts if keys.take(name) is not None]:
        keys.complain(place + "moe_config", EXPERTS, fix="a dense model, or Megatron's files")
    if keys.given(place + "is_starcoder2_config"):
        keys.wrong(place + "is_starcoder2_config", "is not read; Llama and Qwen2 tables are")
    activation = str(keys.take(place + "hidden_act") or "silu")
    return {
        **{key: value for key, value in fields.items() if value is not None},
        "activation": activation,
        "gated_mlp": True,
        "norm": "rmsnorm",
        "position": "rope",
        "attention_bias": keys.flag(place + "attention_bias"),
        "tie_word_embeddings": keys.flag(place + "tie_word_embeddings"),
    }


def _read_job(
    keys: Keys, layout: Mapping[str, Any], accumulation: int, stack: str
) -> dict[str, Any]:
    keys.need("tokens.sequence_length")
    batch = layout["micro_batch_size"] * accumulation * layout["dp"]
    length = keys.whole("tokens.sequence_length", 1)
    names = {"adamW": Optimizer.ADAM, "sgd": Optimizer.SGD}
    found: dict[str, Any] = {
        "global_batch_size": batch,
        "seq_length": length,
        "precision": keys.word("model.dtype", DTYPES, Dtype.BF16).value,
        "make_vocab_size_divisible_by": keys.whole("model.make_vocab_size_divisible_by", 1),
        "optimizer": keys.word("optimizer.optimizer_factory.name", names, Optimizer.ADAM).value,
    }
    steps = keys.values.get("tokens.train_steps")
    keys.take("tokens.train_steps")
    if isinstance(steps, int):
        found["tokens"] = steps * batch * length
    wide = keys.flag("optimizer.accumulate_grad_in_fp32", default=True)
    gradient = Dtype.FP32 if wide else Dtype.BF16
    if load_stack(stack).numerics.gradient_bytes != gradient.bytes:
        found["dtypes"] = {"gradient": gradient.value, "reduce": gradient.value}
    return found
