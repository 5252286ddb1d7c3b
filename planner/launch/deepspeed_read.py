"""Reads DeepSpeed's JSON file, alone or with the script that starts it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.launch.deepspeed_keys import AUTO, HARMLESS, NOTED, TRAINER_HARMLESS
from planner.launch.flags import launcher_size, parse_flags
from planner.launch.keys import Keys, overridden
from planner.launch.megatron_deepspeed import read_megatron_deepspeed
from planner.launch.records import Draft, Given, LaunchFile
from planner.launch.shell_script import Command, read_script
from planner.launch.sizes import cluster_size
from planner.launch.tables import dotted, read_table
from simulator.errors import InputError, Problem
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ContextExchange, Recompute
from simulator.workload.hf_config import parse_config
from simulator.workload.job import Optimizer
from simulator.workload.stack import Stack, load_stack

_ZERO = "zero_optimization."
_MEGATRON = "num_layers"
"""A flag by which a command is taken for Megatron-DeepSpeed's."""
_OPTIMIZERS = {
    "adam": Optimizer.ADAM,
    "adamw": Optimizer.ADAM,
    "fusedadam": Optimizer.ADAM,
    "adamw_torch": Optimizer.ADAM,
    "adamw_torch_fused": Optimizer.ADAM,
    "adamw_bnb_8bit": Optimizer.ADAM_8BIT,
    "paged_adamw_8bit": Optimizer.ADAM_8BIT,
    "sgd": Optimizer.SGD,
    "muon": Optimizer.MUON,
    "adafactor": Optimizer.ADAFACTOR,
}
_DTYPES = {"fp32": Dtype.FP32, "bf16": Dtype.BF16, "fp16": Dtype.FP16}
_DEVICES = {"cpu": True, "none": False}
_TRAINER = {
    "per_device_train_batch_size": "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "optim": "optimizer.type",
}
"""Flag of the Trainer -> key of the JSON file that "auto" leaves to it."""
_LENGTHS = ("block_size", "max_length", "max_seq_length", "model_max_length", "cutoff_len")
_READ = ("config_name", "model_name_or_path", "deepspeed", "max_steps", "gradient_checkpointing")
_STACK = "deepspeed-zero3"


def read_deepspeed(given: Given) -> Draft:
    """Return what DeepSpeed's JSON file says, with its script and the model's config, if given."""
    tables = {file.name: read_table(file) for file in given.files if file.name.endswith(".json")}
    models = [name for name, table in tables.items() if "model_type" in table]
    configs = [table for name, table in tables.items() if name not in models]
    command = _command(given, configs)
    trainer = parse_flags(command.arguments)
    if _MEGATRON in trainer:
        draft = read_megatron_deepspeed(given, trainer, launcher_size(command.launcher), configs)
        return replace(draft, notes=(*command.notes, *draft.notes))
    if not configs:
        where = given.files[0].name
        rule = "no DeepSpeed configuration (JSON) is among the files"
        raise InputError(Problem(where=where, rule=rule, fix="add ds_config.json to the command"))
    where = next(name for name in tables if name not in models)
    values = _filled(dotted(configs[-1]), trainer)
    keys = Keys(values, where, ignore=given.options.ignore)
    for name, value in given.options.variables.items():
        if not name.isupper():
            keys.override(name, value, "--set")
    keys.notes += command.notes
    keys.lost = command.lost
    nodes, gpus = cluster_size(given, *launcher_size(command.launcher), keys)
    stack = load_stack(given.options.stack or _STACK)
    stage = str(keys.values.get("zero_optimization.stage", 0))
    if given.options.stack is None and stage not in map(str, stack.zero_stages):
        keys.notes.append(f"ZeRO-{stage}: the stack {stack.name} is of others; taken: {_OTHER}")
        stack = load_stack(_OTHER)
    model = _model(keys, given, {name: tables[name] for name in models}, trainer)
    layout, batch = _layout(keys, nodes * gpus, trainer)
    job = _job(keys, batch, stack, trainer, given)
    changes = _changes(keys, stack)
    keys.settle(HARMLESS, NOTED)
    flags = Keys(trainer, command.program or where, spell=_flag, ignore=given.options.ignore)
    for name in (*_TRAINER, *_LENGTHS, *_READ, "bf16", "fp16"):
        flags.take(name)
    flags.settle(TRAINER_HARMLESS)
    keys.problems += flags.problems
    keys.close()
    return Draft(
        model=model,
        job=job,
        layout=layout,
        stack=stack.name,
        stack_changes=changes,
        nodes=nodes,
        gpus_per_node=gpus,
        read=(*keys.read, *map(_flag, flags.read)),
        unused=(*keys.unused, *map(_flag, flags.unused)),
        notes=tuple(keys.notes),
    )


def _flag(name: str) -> str:
    return f"--{name}"


def _command(given: Given, configs: list[Mapping[str, Any]]) -> Command:
    """Return the command of the script, adding configurations that it writes itself."""
    found = Command(launcher=(), program="", arguments=())
    for file in given.files:
        if file.name.endswith(".json"):
            continue
        script = read_script(file.text, file.name, given.options.variables)
        for name, text in script.written.items():
            if "{" in text and not configs:
                configs.append(read_table(LaunchFile(name=name, text=text)))
        commands = [c for c in script.commands if any("deepspeed" in w for w in c.arguments)]
        found = commands[-1] if commands else found
    return found


def _filled(values: dict[str, Any], trainer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with what "auto" stands for, from the Trainer's flags."""
    found = dict(values)
    for flag, key in _TRAINER.items():
        if flag in trainer and found.get(key, AUTO) == AUTO:
            found[key] = trainer[flag]
    for kind in ("bf16", "fp16"):
        if found.get(f"{kind}.enabled") == AUTO:
            found[f"{kind}.enabled"] = trainer.get(kind, False)
    return {key: value for key, value in found.items() if value != AUTO or key in _NEEDED}


_OTHER = "megatron-deepspeed"
"""The stack of the ZeRO stages that the usual one does not have."""
_NEEDED = ("train_micro_batch_size_per_gpu", "zero_optimization.stage")
"""Keys whose "auto" must be resolved."""


def _model(
    keys: Keys,
    given: Given,
    configs: Mapping[str, Mapping[str, Any]],
    trainer: Mapping[str, Any],
) -> str | dict[str, Any]:
    named = trainer.get("model_name_or_path") or trainer.get("config_name")
    if given.options.model is not None:
        if says := next(iter(configs), named):
            keys.notes.append(overridden("--model", given.options.model, keys.where, str(says)))
        return given.options.model
    for name, table in configs.items():
        spec = parse_config(table, name, name=re.sub(r"\.json$", "", name)).spec
        return spec.model_dump(mode="json", exclude_none=True)
    keys.complain(
        "model",
        "neither the JSON file nor the script describes it",
        found=str(named or ""),
        fix="--model NAME, or --model config.json (of that model on the Hugging Face Hub)",
    )
    return "llama3.1-8b"


def _layout(keys: Keys, world_size: int, trainer: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the fields of a layout, and the global batch."""
    cp = keys.whole("sequence_parallel_size", 1)
    tp = keys.whole("tensor_parallel.autotp_size", 1, least=0) or 1
    if world_size % (cp * tp):
        keys.complain("sequence_parallel_size", f"{cp} x tp {tp} must divide {world_size}")
    partition = keys.whole(_ZERO + "zero_hpz_partition_size", 1)
    if partition > 1:
        rule = "secondary copies of parameters (ZeRO++) are not modelled"
        keys.wrong(_ZERO + "zero_hpz_partition_size", rule, "1")
    if keys.given(_ZERO + "offload_param.device"):
        devices = {"none": True}
        keys.word(_ZERO + "offload_param.device", devices, default=True)
    replicas = max(world_size // (cp * tp), 1)
    micro, accumulation = _batch(keys, replicas)
    found: dict[str, Any] = {
        "tp": tp,
        "cp": cp,
        "dp": replicas,
        "zero_stage": keys.whole(_ZERO + "stage", 0, least=0),
        "micro_batch_size": micro,
    }
    if cp > 1:
        found["cp_comm_type"] = ContextExchange.ULYSSES.value
    if keys.word(_ZERO + "offload_optimizer.device", _DEVICES, default=False):
        found["optimizer_offload"] = keys.real(
            _ZERO + "offload_optimizer.ratio", 1.0, least=0, most=1
        )
    if trainer.get("gradient_checkpointing") not in (None, "False", "false"):
        found["recompute"] = Recompute.FULL.value
    elif not trainer:
        keys.notes.append("no script: gradient checkpointing is taken as off")
    return found, micro * accumulation * replicas


def _batch(keys: Keys, replicas: int) -> tuple[int, int]:
    """Return micro-batch and accumulation steps.

    Source: DeepSpeed runtime/config.py: batch = micro-batch x accumulation x replicas.
    """
    name = "train_micro_batch_size_per_gpu"
    if keys.values.get(name) == AUTO:
        rule = 'is "auto", which the Trainer fills in'
        keys.complain(name, rule, fix=f"add the script to the command, or --set {name}=N")
        keys.take(name)
        return 1, 1
    micro = keys.whole(name)
    batch = keys.whole("train_batch_size")
    steps = keys.whole("gradient_accumulation_steps", 1)
    if micro is None:
        if batch is None:
            keys.complain(name, "is missing, and so is train_batch_size")
            return 1, 1
        micro = max(batch // (steps * replicas), 1)
    if batch is not None and not keys.given("gradient_accumulation_steps"):
        steps = max(batch // (micro * replicas), 1)
    if batch is not None and batch != micro * steps * replicas:
        rule = f"must be micro-batch {micro} x accumulation {steps} x {replicas} replicas"
        keys.wrong("train_batch_size", rule, f"{micro * steps * replicas}, or other --nodes")
    return int(micro), int(steps)


def _job(
    keys: Keys,
    batch: int,
    stack: Stack,
    trainer: Mapping[str, Any],
    given: Given,
) -> dict[str, Any]:
    lengths = [str(trainer[name]) for name in _LENGTHS if name in trainer]
    chosen = given.options.seq_length
    if chosen is not None and lengths and lengths[0] != str(chosen):
        keys.notes.append(overridden("--seq-length", chosen, keys.where, lengths[0]))
    length = given.options.seq_length or (
        int(lengths[0]) if lengths and lengths[0].isdigit() else 0
    )
    if not length:
        rule = "neither the JSON file nor the script says it"
        keys.complain("sequence length", rule, fix="--seq-length N")
    wide, narrow = keys.flag("bf16.enabled"), keys.flag("fp16.enabled")
    found: dict[str, Any] = {
        "global_batch_size": batch,
        "seq_length": max(length, 1),
        "precision": "fp16" if narrow else "bf16" if wide else "fp32",
        "optimizer": _optimizer(keys).value,
        # transformers does not pad the vocabulary.
        "make_vocab_size_divisible_by": 1,
    }
    updates = str(trainer.get("max_steps", ""))
    if updates.isdigit():
        found["tokens"] = int(updates) * batch * found["seq_length"]
    gradient = keys.word("data_types.grad_accum_dtype", _DTYPES, None)
    wire = keys.word("communication_data_type", _DTYPES, None)
    dtypes: dict[str, str] = {}
    if gradient is not None and gradient.bytes != stack.numerics.gradient_bytes:
        dtypes |= {"gradient": gradient.value, "reduce": (wire or gradient).value}
    elif wire is not None and wire.bytes != stack.numerics.reduce_bytes:
        dtypes["reduce"] = wire.value
    return found | ({"dtypes": dtypes} if dtypes else {})


def _optimizer(keys: Keys) -> Optimizer:
    name = keys.take("optimizer.type")
    if name is None:
        return Optimizer.ADAM
    found = _OPTIMIZERS.get(str(name).lower())
    if found is None:
        keys.wrong("optimizer.type", "is not modelled", "one of: " + ", ".join(_OPTIMIZERS))
    return found or Optimizer.ADAM


def _changes(keys: Keys, stack: Stack) -> dict[str, Any]:
    # Source: runtime/zero/config.py: overlap_comm is on by default for stage 3 alone.
    stage = keys.values.get(_ZERO + "stage", 0)
    overlaps = keys.flag(_ZERO + "overlap_comm", default=str(stage) == "3")
    if overlaps == stack.overlap.gradient_reduce:
        return {}
    return {"overlap.gradient_reduce": overlaps}
