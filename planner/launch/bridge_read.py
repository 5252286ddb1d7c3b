"""Reads a recipe of Megatron-Bridge and its overrides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planner.launch.bridge_keys import (
    CONFIGS,
    NEEDED,
    OTHERS,
    RECIPE_ONLY,
    SHORT,
    STACK,
    spelt,
)
from planner.launch.bridge_precision import KEY, WIDE, read_precision
from planner.launch.bridge_recipes import preset_of_recipe
from planner.launch.flags import launcher_size, parse_flags
from planner.launch.keys import Keys, overridden
from planner.launch.megatron_job_read import read_job, read_stack
from planner.launch.megatron_keys import HARMLESS, NOTED
from planner.launch.megatron_layout_read import read_layout
from planner.launch.records import Draft, Given
from planner.launch.shell_script import Command, read_script
from planner.launch.sizes import cluster_size
from simulator.errors import InputError, Problem
from simulator.workload.load import load_model
from simulator.workload.stack import Stack, load_stack


def read_bridge(given: Given) -> Draft:
    """Return what a recipe and its overrides say; what only the recipe knows is asked for."""
    command = _command(given)
    where = given.files[0].name
    flags = parse_flags([word for word in command.arguments if not _is_override(word)])
    words = [word for word in command.arguments if _is_override(word)]
    written = _values(flags, words)
    chosen = {n: value for n, value in given.options.variables.items() if not n.isupper()}
    values = written | chosen
    precision = read_precision(values, str(flags.get("recipe") or ""))
    rest = {name: value for name, value in values.items() if not _is_precision(name)}
    keys = Keys({**precision.settings, **rest}, where, spell=spelt, ignore=given.options.ignore)
    keys.lost = command.lost
    keys.notes += [*command.notes, *_overridden(written, chosen, where), *precision.notes]
    for name, rule in precision.wrong:
        keys.complain(name, rule)
    if given.options.seq_length is not None:
        keys.override("seq_length", str(given.options.seq_length), "--seq-length")
    model = _model(keys, flags, given)
    for name in NEEDED:
        if not keys.given(name):
            rule = "is the recipe's own value, which is not known here"
            keys.complain(name, rule, fix=f"add {spelt(name)}=N to the overrides")
    for name in OTHERS:
        if name not in keys.values:
            keys.notes.append(f"{spelt(name)} is not overridden: taken as off, whatever the recipe")
    nodes, gpus = cluster_size(given, *_size(flags, command), keys)
    own = set(keys.values)
    spec = load_model(model).spec
    if spec.moe is not None:
        keys.values["num_experts"] = spec.moe.num_experts
    stack = load_stack(given.options.stack or STACK)
    layout = read_layout(keys, spec.num_hidden_layers, nodes * gpus)
    job = read_job(keys, stack, layout)
    for name, value in _usual(stack).items():
        keys.values.setdefault(name, value)
    changes = read_stack(keys, stack, layout)
    keys.read += [name for name in keys.values if name not in own]
    keys.settle(re.compile(f"{HARMLESS.pattern}|{RECIPE_ONLY.pattern}", re.VERBOSE), NOTED)
    keys.close()
    return Draft(
        model=model,
        job=job,
        layout=layout,
        stack=stack.name,
        stack_changes=changes,
        nodes=nodes,
        gpus_per_node=gpus,
        read=tuple(spelt(name) for name in keys.read if name in own),
        unused=tuple(map(spelt, keys.unused)),
        notes=tuple(keys.notes),
    )


def _overridden(written: Mapping[str, Any], chosen: Mapping[str, str], where: str) -> Iterator[str]:
    """Yield a note for each override of the files that an option says otherwise."""
    for name, value in chosen.items():
        before = written.get(name)
        if before is not None and str(before) != value:
            yield overridden("--set", value, where, f"{spelt(name)}={before}")


def _usual(stack: Stack) -> dict[str, Any]:
    """Return what a recipe does where no override says otherwise: what its stack does."""
    return {
        "overlap_grad_reduce": stack.overlap.gradient_reduce,
        "overlap_param_gather": stack.overlap.parameter_gather,
        "tp_comm_overlap": stack.overlap.tensor_fraction > 0,
        "cross_entropy_loss_fusion": stack.kernels.fused_loss,
        "moe_grouped_gemm": stack.kernels.grouped_gemm,
        "moe_permute_fusion": stack.kernels.fused_permute,
        "moe_shared_expert_overlap": stack.overlap.shared_expert,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
    }


def _is_override(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def _command(given: Given) -> Command:
    for file in given.files:
        script = read_script(file.text, file.name, given.options.variables)
        commands = [c for c in script.commands if any(map(_is_override, c.arguments))]
        if commands:
            return commands[-1]
    rule = "no command with a recipe and KEY=VALUE overrides stands in it"
    fix = "a script with run_recipe.py --recipe NAME model.tensor_model_parallel_size=8 ..."
    raise InputError(Problem(where=given.files[0].name, rule=rule, fix=fix))


def _size(flags: Mapping[str, Any], command: Command) -> tuple[int | None, int | None]:
    found = launcher_size(command.launcher)
    own = [str(flags.get(name, "")) for name in ("nodes", "gpus_per_node")]
    return (
        found[0] or (int(own[0]) if own[0].isdigit() else None),
        found[1] or (int(own[1]) if own[1].isdigit() else None),
    )


def _values(flags: Mapping[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Return settings by Megatron's names, whatever their section."""
    values = {SHORT.get(name, name): value for name, value in flags.items()}
    for word in words:
        key, _, text = word.lstrip("+").partition("=")
        section, _, name = key.rpartition(".")
        known = section in ("model", "train", "ddp", "optimizer", "comm_overlap")
        value = None if text in ("null", "None") else text
        if text.startswith("["):
            value = [part.strip(" '\"") for part in text.strip("[]").split(",")]  # type: ignore[assignment]
        plain = name if known else key
        values[CONFIGS.get(plain, plain)] = value
    values.setdefault("seq_length", values.get("dataset.sequence_length"))
    return values


def _is_precision(name: str) -> bool:
    """Return whether `read_precision` has read a key."""
    return name in (KEY, "precision_config", WIDE) or name.startswith(f"{KEY}.")


def _model(keys: Keys, flags: Mapping[str, Any], given: Given) -> str:
    recipe = str(flags.get("recipe") or flags.get("model") or "")
    preset = preset_of_recipe(recipe)
    if given.options.model is not None:
        if preset not in (None, given.options.model):
            note = overridden("--model", given.options.model, keys.where, f"--recipe {recipe}")
            keys.notes.append(note)
        return given.options.model
    if preset is None:
        rule = "no shipped model belongs to this recipe"
        keys.complain("recipe", rule, found=recipe, fix="--model NAME or FILE")
    return preset or "llama3.1-8b"
