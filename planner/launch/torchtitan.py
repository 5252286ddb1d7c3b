"""torchtitan: its TOML file, and for 0.3 the command line with the same keys.

Source: torchtitan 0.3.0 config/configs.py, config/manager.py, distributed/pipeline_parallel.py,
distributed/parallel_dims.py; 0.2 config/job_config.py.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import tomlkit

from planner.launch.comparing import preset_of, split_of
from planner.launch.keys import FILL_IN
from planner.launch.records import Launch, LaunchFile, Run, Tool, ToolEntry
from planner.launch.script import Start, train_script
from planner.launch.titan_flavors import FLAVORS, Flavor, flavor_of
from planner.launch.titan_keys import ARGUMENTS, SCHEDULES, SINGLE
from planner.launch.titan_read import read_titan
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import (
    ZERO_GRADIENTS,
    ZERO_PARAMETERS,
    ContextExchange,
    ParallelLayout,
    Recompute,
)
from simulator.parallel.partition import partition_layers
from simulator.workload.job import Optimizer, Recipe, TrainingJob
from simulator.workload.stack_choices import PartitionRule

_ENDS = 2
"""Embedding and head, which each count as a layer."""
_OPTIMIZERS = {Optimizer.ADAM: "AdamW"}
_ROTATIONS = {ContextExchange.RING: "alltoall", ContextExchange.ALL_GATHER: "allgather"}


_FLOAT8, _MX = "quantize.linear.float8", "quantize.linear.mx"
"""Converters of 0.2 (components/quantization); 0.1 has other names, and 0.3 none in its files."""
_ASYNC = "enable_async_tensor_parallel"
_BEFORE = {f"compile.{_ASYNC}": f"parallelism.{_ASYNC}"}
"""Key of 0.3 -> of 0.2, where they differ."""


def write_titan(run: Run) -> Launch:
    """Return torchtitan.toml and the scripts that start it, or 0.3 without it.

    Raises:
        UnsupportedError: torchtitan has no such model.
    """
    flavor = flavor_of(run.model)
    if flavor is None:
        raise UnsupportedError(_unknown(run))
    settings = _settings(run, flavor)
    script = train_script(
        run,
        Start(
            title=f"torchtitan up to 0.2: {run.model.name}, {run.layout}",
            program=("-m", "torchtitan.train"),
            groups={"CONFIG_ARGS": [["--job.config_file", "torchtitan.toml"]]},
            fill={},
        ),
    )
    files = [
        LaunchFile(name="torchtitan.toml", text=_toml(run, settings)),
        LaunchFile(name="train.sh", text=script),
    ]
    newer = _command_line(run, flavor, settings)
    files += [LaunchFile(name="train-0.3.sh", text=newer)] if newer else []
    why = "train-0.3.sh is left out: torchtitan 0.3 sets this model or precision in Python"
    places = ["training.dataset", "optimizer.lr", "model.hf_assets_path"]
    places += ["training.steps"] if run.job.tokens is None else []
    return Launch(
        tool=Tool.TORCHTITAN,
        files=tuple(files),
        fill=tuple(places),
        notes=() if newer else (why,),
    )


def _unknown(run: Run) -> Problem:
    """Return that torchtitan has no such model, or has it without a part of it."""
    preset = preset_of(run.model)
    near = [flavor for flavor in FLAVORS if flavor.preset == preset]
    if near:
        return Problem(
            where=run.where,
            key="model.num_nextn_predict_layers",
            found=str(run.model.num_nextn_predict_layers),
            rule=f"torchtitan's {near[0].name} {near[0].flavor} has no multi-token prediction",
            fix="a model file with num_nextn_predict_layers = 0, or --tool megatron-lm",
        )
    known = ", ".join(entry.preset for entry in FLAVORS)
    return Problem(
        where=run.where,
        key="model",
        found=run.model.name,
        rule="torchtitan takes its models from a registry, and this one is not in it",
        fix=f"one of: {known}; or --tool megatron-lm, which takes any sizes",
    )


def _settings(run: Run, flavor: Flavor) -> dict[str, Any]:
    job, layout = run.job, run.layout
    local = layout.micro_batch_size if layout.pp == 1 else job.global_batch_size // layout.dp
    steps = FILL_IN if job.tokens is None else ceil(job.tokens / job.tokens_per_step)
    return {
        "model.name": flavor.name,
        "model.flavor": flavor.flavor,
        "model.hf_assets_path": FILL_IN,
        "optimizer.name": _OPTIMIZERS.get(job.optimizer, job.optimizer.value),
        "optimizer.lr": FILL_IN,
        "training.dataset": FILL_IN,
        "training.local_batch_size": local,
        "training.global_batch_size": job.global_batch_size,
        "training.seq_len": job.seq_length,
        "training.steps": steps,
        "training.mixed_precision_param": "float32" if job.precision is Dtype.FP32 else "bfloat16",
        **_parallelism(run),
        **_activations(layout),
        "compile.enable": True,
        **({f"compile.{_ASYNC}": True} if _is_async(run) else {}),
        **_precision(job),
    }


def _is_async(run: Run) -> bool:
    return run.layout.tp > 1 and run.stack.overlap.tensor_chunks > 1


def _parallelism(run: Run) -> dict[str, Any]:
    layout = run.layout
    sharded = layout.zero_stage > 0
    shard = layout.shard_ranks // layout.cp if sharded else 1
    found: dict[str, Any] = {
        "data_parallel_replicate_degree": layout.dp // shard if shard else 0,
        "data_parallel_shard_degree": shard,
        "tensor_parallel_degree": layout.tp,
        "pipeline_parallel_degree": layout.pp,
        "context_parallel_degree": layout.cp,
    }
    if sharded:
        policies = {ZERO_GRADIENTS: "never", ZERO_PARAMETERS: "always" if layout.pp > 1 else ""}
        policy = policies.get(layout.zero_stage, "")
        found |= {"fsdp_reshard_after_forward": policy} if policy else {}
    if layout.tp > 1 and not layout.sequence_parallel:
        found["enable_sequence_parallel"] = False
    if layout.cp > 1:
        rotation = _ROTATIONS.get(layout.cp_comm_type, layout.cp_comm_type.value)
        found["context_parallel_rotate_method"] = rotation
    if run.model.moe is not None:
        found["expert_parallel_degree"] = layout.ep
        found["expert_tensor_parallel_degree"] = layout.expert_tp
    found |= _pipeline(run) if layout.pp > 1 else {}
    return {f"parallelism.{name}": value for name, value in found.items()}


def _pipeline(run: Run) -> dict[str, Any]:
    layout, layers = run.layout, run.model.num_hidden_layers
    names = {name: text for text, name in SCHEDULES.items()}
    schedule = names.get(layout.effective_schedule, layout.effective_schedule.value)
    found: dict[str, Any] = {
        "pipeline_parallel_schedule": schedule,
        "pipeline_parallel_microbatch_size": layout.micro_batch_size,
    }
    stages = layout.pp * layout.vpp
    each = ceil((layers + _ENDS) / stages)
    usual = 1 if schedule in SINGLE else 2
    plain = layout.model_copy(update={"layers_per_stage": None})
    split = split_of(run)
    assert split is not None, "the layout was checked"
    if split != partition_layers(plain, layers, PartitionRule.EMBEDDING_COUNTS):
        return found | {"module_fqns_per_model_part": _modules(split)}
    if layout.vpp == usual:
        return found
    if ceil((layers + _ENDS) / each) == stages:
        return found | {"pipeline_parallel_layers_per_stage": each}
    return found | {"module_fqns_per_model_part": _modules(split)}


def _modules(split: tuple[int, ...]) -> list[list[str]]:
    """Return the modules of each stage.

    >>> _modules((1, 2))
    [['tok_embeddings', 'layers.0'], ['layers.1', 'layers.2', 'norm', 'output']]
    """
    parts, first = [], 0
    for count in split:
        parts.append([f"layers.{layer}" for layer in range(first, first + count)])
        first += count
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "output"]
    return parts


def _activations(layout: ParallelLayout) -> dict[str, Any]:
    found = {"activation_checkpoint.mode": layout.recompute.value}
    if layout.recompute is Recompute.SELECTIVE:
        found["activation_checkpoint.selective_ac_option"] = "op"
    return found


def _precision(job: TrainingJob) -> dict[str, Any]:
    if job.precision is not Dtype.FP8:
        return {}
    if job.effective_recipe is Recipe.MXFP8:
        return {"model.converters": [_MX]}
    assert job.effective_recipe is not None, "fp8 has one"
    return {
        "model.converters": [_FLOAT8],
        f"{_FLOAT8}.recipe_name": job.effective_recipe.value,
        f"{_FLOAT8}.enable_fsdp_float8_all_gather": job.fp8_parameters,
    }


def _toml(run: Run, settings: dict[str, Any]) -> str:
    document = tomlkit.document()
    document.add(tomlkit.comment(f"torchtitan up to 0.2: {run.model.name}, {run.layout}"))
    document.add(tomlkit.comment(f"Only you know what is {FILL_IN}."))
    for name, value in settings.items():
        *tables, key = _BEFORE.get(name, name).split(".")
        place: Any = document
        for table in tables:
            place = place.setdefault(table, tomlkit.table())
        place[key] = value
    return tomlkit.dumps(document)


def _command_line(run: Run, flavor: Flavor, settings: dict[str, Any]) -> str:
    """Return the script of 0.3, where the config registry has the model; else nothing."""
    if not flavor.config or run.job.precision is not Dtype.BF16:
        return ""
    if "parallelism.module_fqns_per_model_part" in settings:
        return ""
    fill = {"DATASET": "name of the dataset", "ASSETS": "folder of the tokenizer"}
    flags = [["--module", flavor.name], ["--config", flavor.config]]
    flags += [["--hf_assets_path", "$ASSETS"], ["--dataloader.dataset", "$DATASET"]]
    if run.job.tokens is None:
        fill["STEPS"] = "steps; the scenario has no job.tokens"
    for name, value in settings.items():
        if name.startswith(("training.", "parallelism.", "compile.")) and name not in _OLDER:
            text = "$STEPS" if value == FILL_IN else str(value)
            flags.append(
                _switch(name, on=value) if isinstance(value, bool) else [f"--{name}", text]
            )
    # tyro takes the choice of a policy last.
    flags.append([f"activation_checkpoint:{run.layout.recompute.value}"])
    return train_script(
        run,
        Start(
            title=f"torchtitan 0.3: {run.model.name}, {run.layout}",
            program=("-m", "torchtitan.train"),
            groups={"CONFIG_ARGS": flags},
            fill=fill,
            comments=("Optimizer and learning rate are those of the config.",),
        ),
    )


_OLDER = (
    "training.dataset",
    "parallelism.expert_tensor_parallel_degree",
    "parallelism.context_parallel_rotate_method",
)
"""Keys that 0.3 has no more."""


def _switch(name: str, *, on: bool) -> list[str]:
    """Return a switch as tyro spells it: --a.b or --a.no-b."""
    *tables, key = name.split(".")
    return ["--" + ".".join([*tables, key if on else f"no-{key}"])]


def recognise_titan(file: LaunchFile) -> bool:
    """Return whether a file is one of torchtitan's."""
    if file.name.endswith(".toml"):
        return "[training]" in file.text and "flavor" in file.text
    return "torchtitan.train" in file.text and "--module" in file.text


TORCHTITAN = ToolEntry(
    title="torchtitan: its TOML file, and the command line of 0.3",
    version="torchtitan 0.3.0 and 0.2",
    stacks=("torchtitan",),
    write=write_titan,
    read=read_titan,
    recognise=recognise_titan,
    arguments=ARGUMENTS,
    unsaid={
        "layout.zero_stage": "torchtitan shards parameters with FSDP2 (zero_stage 3; 2 where they "
        "stay gathered), or replicates them (0)",
    },
)
