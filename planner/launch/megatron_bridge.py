"""Megatron-Bridge: a recipe with overrides, in the same words as Megatron-Core's configs.

Source: Megatron-Bridge scripts/training/run_recipe.py, src/megatron/bridge/training/config.py and
mixed_precision.py; Megatron-Core 0.16 core/transformer/transformer_config.py,
core/model_parallel_config.py, core/distributed/distributed_data_parallel_config.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.launch.bridge_keys import OF, STACK, spelt
from planner.launch.bridge_precision import (
    ENDS_IN_BF16,
    KEY,
    WIDE,
    ends_in_bf16,
    is_wide,
    precision_words,
)
from planner.launch.bridge_read import read_bridge
from planner.launch.bridge_recipes import RECIPES, recipe_of
from planner.launch.comparing import preset_of
from planner.launch.megatron_checks import UNSAID, refusals
from planner.launch.megatron_job import JOB_ARGUMENTS, job_settings
from planner.launch.megatron_layout import LAYOUT_ARGUMENTS, is_serial, layout_settings
from planner.launch.megatron_model import model_settings
from planner.launch.records import Argument, Launch, LaunchFile, Run, Tool, ToolEntry
from planner.launch.script import Start, train_script
from simulator.errors import Problem, UnsupportedError

_PRECISION_ONLY = ("bf16", "fp16", "fp8_format", "fp8_recipe", "fp8_param_gather", "fp4_format")
_DROPPED = (
    *_PRECISION_ONLY,
    "fp4_recipe",
    "grad_reduce_in_bf16",
    "accumulate_allreduce_grads_in_fp32",
    "ckpt_format",
)
_RESET = (
    "virtual_pipeline_model_parallel_size",
    "pipeline_model_parallel_layout",
    "recompute_granularity",
    "recompute_method",
    "recompute_num_layers",
)
"""Settings that a recipe may have, and that are off where the layout does not say them."""


def write_bridge(run: Run) -> Launch:
    """Return the script that trains `run` with a recipe of Megatron-Bridge.

    Raises:
        UnsupportedError: there is no recipe of the model.
    """
    preset = preset_of(run.model)
    recipe = recipe_of(preset) if preset else None
    if recipe is None:
        raise UnsupportedError(
            Problem(
                where=run.where,
                key="model",
                found=run.model.name,
                rule="Megatron-Bridge takes a model from a recipe, and none is known for this one",
                fix=f"one of: {', '.join(RECIPES)}; or --tool megatron-lm, which takes any sizes",
            )
        )
    _check(run)
    fill = {"DATA_PATH": "prefix of the tokenised data", "LR": "learning rate"}
    overrides = [f"{key}={_spelt(value)}" for key, value in _overrides(run).items()]
    overrides += precision_words(run)
    if run.job.tokens is None:
        fill["TRAIN_ITERS"] = "steps; the scenario has no job.tokens"
        overrides.append("train.train_iters=$TRAIN_ITERS")
    if run.model.moe is not None and run.job.moe.aux_loss:
        fill["MOE_AUX_LOSS_COEFF"] = "weight of the load-balancing loss"
        overrides.append("model.moe_aux_loss_coeff=$MOE_AUX_LOSS_COEFF")
    overrides += ["dataset.data_path=$DATA_PATH", "optimizer.lr=$LR"]
    start = Start(
        title=f"Megatron-Bridge: {run.model.name}, {run.layout}",
        program=("scripts/training/run_recipe.py",),
        groups={
            "RECIPE_ARGS": [["--recipe", recipe], ["--dataset", "megatron-indexed"]],
            "OVERRIDES": [[word] for word in overrides],
        },
        fill=fill,
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if is_serial(run) else {},
        comments=("What is not overridden is the recipe's own.",),
    )
    script = LaunchFile(name="train.sh", text=train_script(run, start))
    notes = (ENDS_IN_BF16,) if ends_in_bf16(run.job) else ()
    return Launch(tool=Tool.MEGATRON_BRIDGE, files=(script,), fill=tuple(fill), notes=notes)


def _check(run: Run) -> None:
    """Raise `UnsupportedError` with all that Megatron-Core itself would refuse."""
    settings = model_settings(run.model, run.job.seq_length)
    problems = [
        Problem(where=run.where, key=spelt(name), rule=f"Megatron-Core: {rule}")
        for name, rule in refusals(settings | layout_settings(run) | job_settings(run))
    ]
    if problems:
        raise UnsupportedError(*problems)


def _overrides(run: Run) -> dict[str, Any]:
    settings = layout_settings(run) | job_settings(run)
    if run.model.moe is None:
        settings = {n: v for n, v in settings.items() if not n.startswith("moe_")}
    found = {
        f"{OF.get(name, 'model')}.{name}": value
        for name, value in settings.items()
        if name not in _DROPPED and value is not None
    }
    found |= {f"model.{name}": settings.get(name) for name in _RESET}
    # Those of some recipes; Megatron-Core refuses them beside a layout of stages.
    found |= {f"model.account_for_{end}_in_pipeline_split": False for end in ("embedding", "loss")}
    if settings.get("use_megatron_fsdp"):
        found |= {"dist.use_megatron_fsdp": True, "checkpoint.ckpt_format": "fsdp_dtensor"}
    found["dataset.sequence_length"] = run.job.seq_length
    found[f"ddp.{WIDE}"] = is_wide(run)
    return found


def _spelt(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(map(str, value)) + "]"
    return str(value)


def recognise_bridge(file: LaunchFile) -> bool:
    """Return whether a file is one of Megatron-Bridge's."""
    return "run_recipe" in file.text or ("--recipe" in file.text and "model." in file.text)


MEGATRON_BRIDGE = ToolEntry(
    title="Megatron-Bridge: a recipe of run_recipe.py and its overrides",
    version="Megatron-Bridge 0.3",
    stacks=(STACK, "megatron-core"),
    write=write_bridge,
    read=read_bridge,
    recognise=recognise_bridge,
    unsaid=UNSAID,
    arguments=(
        Argument(name="--recipe", key="model"),
        Argument(
            name=KEY, key="job.precision", note="and job.recipe, job.dtypes.gradient; name or table"
        ),
        Argument(name=f"{KEY}.{WIDE}", key="job.dtypes.gradient"),
        Argument(name="dataset.sequence_length", key="job.seq_length"),
        Argument(name=f"ddp.{WIDE}", key="", note=f"none: {KEY} sets it again"),
        *(
            replace(argument, name=spelt(argument.name))
            for argument in (*LAYOUT_ARGUMENTS, *JOB_ARGUMENTS)
            if argument.name not in (*_DROPPED, "num_layers_per_virtual_pipeline_stage")
        ),
    ),
)
