"""nanotron: its YAML file.

Source: nanotron src/nanotron/config/{config,parallelism_config,models_config}.py and
examples/config_*.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import yaml

from planner.launch.keys import FILL_IN
from planner.launch.nanotron_keys import DTYPES, ENGINES, EXPERTS, MODEL, SETTINGS
from planner.launch.nanotron_read import read_nanotron
from planner.launch.records import (
    BF16_BYTES,
    Argument,
    Launch,
    LaunchFile,
    Run,
    Tool,
    ToolEntry,
)
from planner.launch.script import Start, train_script
from planner.launch.tables import is_yaml
from simulator.errors import Problem, UnsupportedError
from simulator.parallel.layout import Recompute
from simulator.parallel.numbers import with_dtypes
from simulator.workload.job import Optimizer


def write_nanotron(run: Run) -> Launch:
    """Return the YAML file of a run, and the script that starts run_train.py with it.

    Raises:
        UnsupportedError: the model has experts.
    """
    if run.model.moe is not None:
        raise UnsupportedError(
            Problem(
                where=run.where,
                key="model.moe",
                found=f"{run.model.moe.num_experts} experts",
                rule=EXPERTS,
                fix="--tool megatron-lm or megatron-bridge, or a dense model",
            )
        )
    table = {
        "general": {"project": FILL_IN, "run": FILL_IN, "seed": FILL_IN},
        "model": _model(run),
        "parallelism": _parallelism(run),
        "tokens": _tokens(run),
        "optimizer": _optimizer(run),
        "tokenizer": {"tokenizer_name_or_path": FILL_IN},
        "checkpoints": {"checkpoint_interval": FILL_IN, "checkpoints_path": FILL_IN},
        # The trainer reads this section without asking whether it is there.
        "logging": {"log_level": "info", "iteration_step_info_interval": 1},
        "data_stages": [
            {
                "name": "training",
                "start_training_step": 1,
                "data": {"dataset": FILL_IN, "seed": FILL_IN, "num_loading_workers": 1},
            }
        ],
    }
    head = f"# nanotron: {run.model.name}, {run.layout}\n# Only you know what is {FILL_IN}.\n"
    text = head + yaml.safe_dump(table, sort_keys=False)
    start = Start(
        title=f"nanotron: {run.model.name}, {run.layout}",
        program=("run_train.py",),
        groups={"CONFIG_ARGS": [["--config-file", "config.yaml"]]},
        fill={},
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    script = LaunchFile(name="train.sh", text=train_script(run, start))
    return Launch(
        tool=Tool.NANOTRON,
        files=(LaunchFile(name="config.yaml", text=text), script),
        fill=tuple(_placeholders(table)),
    )


def _placeholders(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, given in table.items():
        value = dict(enumerate(given)) if isinstance(given, list) else given
        if isinstance(value, dict):
            found += _placeholders(value, f"{prefix}{name}.")
        elif value == FILL_IN:
            found.append(prefix + name)
    return found


def _model(run: Run) -> dict[str, Any]:
    model = run.model
    config: dict[str, Any] = {
        name: getattr(model, key) for name, key in MODEL.items() if getattr(model, key) is not None
    }
    # Llama's table has no attention biases and no window.
    kind = "is_llama_config"
    if model.attention_bias or model.sliding_window:
        kind = "is_qwen2_config"
        config["attention_bias"] = model.attention_bias
    return {
        "dtype": {dtype: name for name, dtype in DTYPES.items()}.get(run.job.precision, "none"),
        "make_vocab_size_divisible_by": run.job.make_vocab_size_divisible_by,
        "init_method": {"std": FILL_IN},
        "model_config": {
            kind: True,
            **config,
            "rope_theta": FILL_IN,
            "hidden_act": model.activation,
            "tie_word_embeddings": model.tie_word_embeddings,
        },
    }


def _parallelism(run: Run) -> dict[str, Any]:
    layout = run.layout
    engines = {name: text for text, name in ENGINES.items()}
    return {
        "dp": layout.dp,
        "tp": layout.tp,
        "pp": layout.pp,
        "context_parallel_size": layout.cp,
        "expert_parallel_size": layout.ep,
        "pp_engine": engines.get(layout.effective_schedule, layout.effective_schedule.value),
        "tp_mode": "REDUCE_SCATTER" if layout.sequence_parallel else "ALL_REDUCE",
        "tp_linear_async_communication": False,
        "recompute_layer": layout.recompute is Recompute.FULL,
    }


def _tokens(run: Run) -> dict[str, Any]:
    job, layout = run.job, run.layout
    return {
        "sequence_length": job.seq_length,
        "train_steps": FILL_IN if job.tokens is None else ceil(job.tokens / job.tokens_per_step),
        "micro_batch_size": layout.micro_batch_size,
        "batch_accumulation_per_replica": layout.micro_batches(job.global_batch_size),
    }


def _optimizer(run: Run) -> dict[str, Any]:
    names = {Optimizer.ADAM: "adamW", Optimizer.SGD: "sgd"}
    wide = with_dtypes(run.stack, run.job).numerics.gradient_bytes > BF16_BYTES
    return {
        "zero_stage": run.layout.zero_stage,
        "accumulate_grad_in_fp32": wide,
        "clip_grad": FILL_IN,
        "weight_decay": FILL_IN,
        "optimizer_factory": {
            "name": names.get(run.job.optimizer, run.job.optimizer.value),
            "adam_beta1": FILL_IN,
            "adam_beta2": FILL_IN,
            "adam_eps": FILL_IN,
            "torch_adam_is_fused": True,
        },
        # LRSchedulerArgs.__post_init__ refuses a warm-up that has no style.
        "learning_rate_scheduler": {
            "learning_rate": FILL_IN,
            "lr_warmup_steps": FILL_IN,
            "lr_warmup_style": "linear",
            "lr_decay_style": "cosine",
            "min_decay_lr": FILL_IN,
        },
    }


def recognise_nanotron(file: LaunchFile) -> bool:
    """Return whether a file is one of nanotron's."""
    return is_yaml(file) and "batch_accumulation_per_replica" in file.text


NANOTRON = ToolEntry(
    title="nanotron: its YAML file",
    version="nanotron 0.5",
    stacks=("nanotron",),
    write=write_nanotron,
    read=read_nanotron,
    recognise=recognise_nanotron,
    arguments=tuple(Argument(name=name, key=key) for name, key in SETTINGS.items()),
)
