"""DeepSpeed: its JSON file, with a Hugging Face config and the line that starts run_clm.py.

Source: DeepSpeed deepspeed/runtime/config.py (`_batch_assertion`), runtime/zero/config.py;
transformers examples/pytorch/language-modeling/run_clm.py.
"""

from __future__ import annotations

import json
from math import ceil
from typing import Any

from planner.launch.deepspeed_keys import ARGUMENTS
from planner.launch.deepspeed_read import read_deepspeed
from planner.launch.flags import flag_words
from planner.launch.hugging_face import config_of
from planner.launch.records import Launch, LaunchFile, Run, Tool, ToolEntry
from planner.launch.script import Start, train_script
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ContextExchange, ParallelLayout, Recompute
from simulator.parallel.numbers import with_dtypes
from simulator.workload.job import Optimizer

_OPTIMIZERS = {Optimizer.ADAM: "adamw_torch", Optimizer.ADAM_8BIT: "adamw_bnb_8bit"}
_DTYPES = {2.0: "bf16", 4.0: "fp32"}
_INDENT = 2


def write_deepspeed(run: Run) -> Launch:
    """Return ds_config.json, the model's config.json and the script that starts run_clm.py.

    Raises:
        UnsupportedError: the layout or the model is not one of DeepSpeed's with transformers.
    """
    _check(run)
    fill = {
        "TOKENIZER": f"name or folder of the tokenizer, with {run.model.vocab_size} tokens",
        "DATASET": "name of the dataset",
        "OUTPUT": "folder for checkpoints",
        "LR": "learning rate",
    }
    if run.job.tokens is None:
        fill["MAX_STEPS"] = "steps; the scenario has no job.tokens"
    start = Start(
        title=f"DeepSpeed with transformers: {run.model.name}, {run.layout}",
        program=("run_clm.py",),
        groups={"TRAINER_ARGS": [flag_words(n, v, dash="_") for n, v in _trainer(run).items()]},
        fill=fill,
        environment=_ulysses(run.layout),
        comments=(
            "run_clm.py is transformers' examples/pytorch/language-modeling/run_clm.py.",
            "config.json has sizes alone: its rotary base is transformers' default.",
            "block_size is cut to the tokenizer's model_max_length, with a warning.",
        ),
    )
    script = train_script(run, start)
    config = json.dumps(config_of(run.model, run.where), indent=_INDENT) + "\n"
    return Launch(
        tool=Tool.DEEPSPEED,
        files=(
            LaunchFile(name="ds_config.json", text=json.dumps(_config(run), indent=_INDENT) + "\n"),
            LaunchFile(name="config.json", text=config),
            LaunchFile(name="train.sh", text=script),
        ),
        fill=tuple(fill),
    )


def _check(run: Run) -> None:
    layout = run.layout
    problems = [
        Problem(
            where=run.where,
            key=f"layout.{key}",
            found=str(found),
            rule="DeepSpeed's JSON file does not say it: Megatron-DeepSpeed's arguments would",
            fix=f"{key} = 1, or --tool megatron-lm",
        )
        for key, found in (("pp", layout.pp), ("tp", layout.tp), ("ep", layout.ep))
        if found > 1
    ]
    if layout.cp > 1 and layout.cp_comm_type is not ContextExchange.ULYSSES:
        problems.append(
            Problem(
                where=run.where,
                key="layout.cp_comm_type",
                found=layout.cp_comm_type,
                rule="DeepSpeed splits sequences by all-to-all (Ulysses)",
                fix='cp_comm_type = "a2a"',
            )
        )
    if problems:
        raise UnsupportedError(*problems)


def _config(run: Run) -> dict[str, Any]:
    job, layout = run.job, run.layout
    numerics = with_dtypes(run.stack, job).numerics
    zero: dict[str, Any] = {
        "stage": layout.zero_stage,
        "overlap_comm": run.stack.overlap.gradient_reduce,
        "contiguous_gradients": True,
        "reduce_bucket_size": run.stack.bucket_parameters,
    }
    if layout.optimizer_offload:
        zero["offload_optimizer"] = {
            "device": "cpu",
            "pin_memory": True,
            "ratio": layout.optimizer_offload,
        }
    found: dict[str, Any] = {
        "train_batch_size": job.global_batch_size,
        "train_micro_batch_size_per_gpu": layout.micro_batch_size,
        "gradient_accumulation_steps": layout.micro_batches(job.global_batch_size),
        "bf16": {"enabled": job.precision is Dtype.BF16},
        "fp16": {"enabled": job.precision is Dtype.FP16},
        "data_types": {"grad_accum_dtype": _DTYPES.get(numerics.gradient_bytes, "bf16")},
        "zero_optimization": zero,
    }
    if layout.cp > 1:
        found["sequence_parallel_size"] = layout.cp
        # transformers compares it with all ranks times their batch, whatever they share.
        del found["train_batch_size"]
    return found


def _ulysses(layout: ParallelLayout) -> dict[str, str]:
    """Return what makes the Trainer split sequences: the JSON file alone does not.

    Source: accelerate's guide of sequence parallelism, ParallelismConfig's variables.
    """
    if layout.cp == 1:
        return {}
    return {
        "ACCELERATE_USE_PARALLELISM_CONFIG": "true",
        "PARALLELISM_CONFIG_DP_SHARD_SIZE": str(layout.dp),
        "PARALLELISM_CONFIG_SP_SIZE": str(layout.cp),
        "PARALLELISM_CONFIG_SP_BACKEND": "deepspeed",
        "PARALLELISM_CONFIG_SP_SEQ_LENGTH_IS_VARIABLE": "true",
    }


def _trainer(run: Run) -> dict[str, Any]:
    job, layout = run.job, run.layout
    steps = "$MAX_STEPS" if job.tokens is None else ceil(job.tokens / job.tokens_per_step)
    return {
        "deepspeed": "ds_config.json",
        "do_train": True,
        "config_name": "config.json",
        "tokenizer_name": "$TOKENIZER",
        "dataset_name": "$DATASET",
        "output_dir": "$OUTPUT",
        "block_size": job.seq_length,
        "max_steps": steps,
        "per_device_train_batch_size": layout.micro_batch_size,
        "gradient_accumulation_steps": layout.micro_batches(job.global_batch_size),
        "gradient_checkpointing": layout.recompute is Recompute.FULL,
        "bf16": job.precision is Dtype.BF16,
        "fp16": job.precision is Dtype.FP16,
        "optim": _OPTIMIZERS.get(job.optimizer, job.optimizer.value),
        "learning_rate": "$LR",
    }


def recognise_deepspeed(file: LaunchFile) -> bool:
    """Return whether a file is one of DeepSpeed's."""
    if file.name.endswith(".json"):
        return "zero_optimization" in file.text or "train_micro_batch_size_per_gpu" in file.text
    return "--deepspeed" in file.text


DEEPSPEED = ToolEntry(
    title="DeepSpeed: its JSON file, with the flags of Hugging Face's Trainer",
    version="DeepSpeed 0.18 with transformers 5",
    stacks=("deepspeed-zero3", "megatron-deepspeed"),
    write=write_deepspeed,
    read=read_deepspeed,
    recognise=recognise_deepspeed,
    arguments=ARGUMENTS,
)
