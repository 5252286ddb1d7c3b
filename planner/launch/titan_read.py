"""Reads what a torchtitan TOML file or command line says of a run."""

from __future__ import annotations

from typing import Any

from planner.launch.flags import launcher_size, parse_flags
from planner.launch.keys import Keys, overridden
from planner.launch.records import Draft, Given
from planner.launch.shell_script import read_script
from planner.launch.sizes import cluster_size
from planner.launch.tables import dotted, read_table
from planner.launch.titan_flavors import FLAVORS, Flavor
from planner.launch.titan_keys import HARMLESS, LEFTOVER, NOTED, OLD_NAMES
from planner.launch.titan_layout import read_layout
from simulator.workload.job import Optimizer, Recipe

_CHUNKS = 8
"""Of async tensor parallelism; examples/stacks/torchtitan-async-tp.toml."""
_SCALINGS = {recipe.value: recipe for recipe in (Recipe.TENSORWISE, Recipe.ROWWISE)}


def read_titan(given: Given) -> Draft:
    """Return what a torchtitan TOML file, or a 0.3 command line, says."""
    values, sizes, where, notes = _values(given)
    keys = Keys(values, where, ignore=given.options.ignore)
    keys.notes += notes
    for name, value in given.options.variables.items():
        if "." in name:
            keys.override(_renamed(name), value, "--set")
    if given.options.seq_length is not None:
        keys.override("training.seq_len", given.options.seq_length, "--seq-length")
    nodes, gpus = cluster_size(given, *sizes, keys)
    model = _model(keys, given)
    layout = read_layout(keys, model, nodes * gpus)
    job = _job(keys, layout)
    layout.pop("accumulation", None)
    changes: dict[str, Any] = {}
    if keys.flag("compile.enable_async_tensor_parallel") and layout["tp"] > 1:
        changes["overlap.tensor_chunks"] = _CHUNKS
        keys.notes.append(f"async tensor parallelism in {_CHUNKS} chunks is assumed")
    if not keys.flag("compile.enable"):
        keys.notes.append("compile is off, and the stack torchtitan is compiled: a step is slower")
    keys.settle(HARMLESS, NOTED)
    keys.close()
    return Draft(
        model=model,
        job=job,
        layout=layout,
        stack=given.options.stack or "torchtitan",
        stack_changes=changes,
        nodes=nodes,
        gpus_per_node=gpus,
        read=tuple(keys.read),
        unused=tuple(keys.unused),
        notes=tuple(keys.notes),
    )


def _values(
    given: Given,
) -> tuple[dict[str, Any], tuple[int | None, int | None], str, tuple[str, ...]]:
    """Return dotted keys, nodes and accelerators a node, the file they stand in, and notes."""
    notes: tuple[str, ...] = ()
    values: dict[str, Any] = {}
    sizes: tuple[int | None, int | None] = (None, None)
    where = given.files[0].name
    for file in given.files:
        if file.name.endswith(".toml"):
            values |= dotted(read_table(file))
            where = file.name
            continue
        script = read_script(file.text, file.name, given.options.variables)
        for command in script.commands:
            sizes, notes = launcher_size(command.launcher), command.notes
            values |= _switches(command.arguments)
    values = {_renamed(name): value for name, value in values.items()}
    for name in ("job.config_file", "job.config-file"):
        values.pop(name, None)
    return values, sizes, where, notes


def _renamed(name: str) -> str:
    return OLD_NAMES.get(name, name)


def _switches(words: tuple[str, ...]) -> dict[str, Any]:
    """Return flags of a command line, `--a.no-b` as false, `activation_checkpoint:full` as mode."""
    policies = [word for word in words if word.startswith("activation") and ":" in word]
    flags = parse_flags([word for word in words if word not in policies])
    found: dict[str, Any] = {}
    for name, value in flags.items():
        *tables, key = name.split(".")
        if value is True and key.startswith("no_"):
            found[".".join([*tables, key.removeprefix("no_")])] = False
        else:
            found[name] = value
    if policies:
        found["activation_checkpoint.mode"] = policies[-1].partition(":")[2]
    return found


def _model(keys: Keys, given: Given) -> str | dict[str, Any]:
    if given.options.model is not None:
        own = [keys.take(name) for name in ("model.name", "model.flavor", "module", "config")]
        if any(own):
            says = " ".join(str(word) for word in own if word)
            keys.notes.append(overridden("--model", given.options.model, keys.where, says))
        return given.options.model
    name, flavor = keys.take("model.name"), keys.take("model.flavor")
    module, config = keys.take("module"), keys.take("config")
    found = [
        entry
        for entry in FLAVORS
        if (entry.name, entry.flavor) == (name, flavor)
        or (config and (entry.name, entry.config) == (module, config))
    ]
    if not found:
        text = f"{name or module} {flavor or config}"
        rule = "this model of torchtitan has no counterpart among the shipped ones"
        keys.complain("model.flavor", rule, found=text, fix="--model NAME or FILE")
        return FLAVORS[0].preset
    return _described(found[0])


def _described(flavor: Flavor) -> str | dict[str, Any]:
    if flavor.predicts:
        return flavor.preset
    fields = flavor.spec.model_dump(mode="json", exclude_none=True)
    fields["name"] = f"torchtitan-{flavor.name}-{flavor.flavor}".lower()
    return fields


def _job(keys: Keys, layout: dict[str, Any]) -> dict[str, Any]:
    local = layout.get("accumulation", layout["micro_batch_size"])
    batch = keys.whole("training.global_batch_size", LEFTOVER, least=LEFTOVER)
    if batch == LEFTOVER:
        batch = local * layout["dp"]
    if layout["pp"] > 1 and batch != local * layout["dp"]:
        rule = (
            f"is not dp {layout['dp']} x local_batch_size {local}: the pipeline would empty "
            "between accumulations, which is not modelled"
        )
        keys.wrong("training.global_batch_size", rule, f"local_batch_size {batch // layout['dp']}")
    length = keys.whole("training.seq_len", 2048)
    steps = keys.values.get("training.steps")
    found: dict[str, Any] = {
        "global_batch_size": batch,
        "seq_length": length,
        # torchtitan does not pad the vocabulary.
        "make_vocab_size_divisible_by": 1,
        **_numbers(keys),
    }
    if isinstance(steps, int) or (isinstance(steps, str) and steps.isdigit()):
        found["tokens"] = keys.whole("training.steps") * batch * length
    return found


def _numbers(keys: Keys) -> dict[str, Any]:
    optimizer = keys.word(
        "optimizer.name", {"AdamW": Optimizer.ADAM, "Adam": Optimizer.ADAM}, Optimizer.ADAM
    )
    if str(keys.take("training.dtype") or "float32") != "float32":
        rule = (
            "parameters, states and gradients that are all in 16 bits, and reduced in float32, are "
            "not modelled"
        )
        keys.wrong("training.dtype", rule, '"float32"; mixed_precision_param sets what computes')
    narrow = keys.word(
        "training.mixed_precision_param", {"bfloat16": True, "float32": False}, default=True
    )
    if keys.flag("training.enable_cpu_offload"):
        rule = "parameters on the host are not modelled for torchtitan"
        keys.wrong("training.enable_cpu_offload", rule, "false")
    found: dict[str, Any] = {
        "optimizer": optimizer.value,
        "precision": "bf16" if narrow else "fp32",
    }
    converters = keys.values.get("model.converters") or []
    keys.take("model.converters")
    keys.take("quantize.linear.mx.recipe_name")
    scaling = keys.word("quantize.linear.float8.recipe_name", _SCALINGS, Recipe.TENSORWISE)
    gathers = keys.flag("quantize.linear.float8.enable_fsdp_float8_all_gather")
    for name in converters if isinstance(converters, list) else [converters]:
        if name in ("float8", "quantize.linear.float8"):
            found |= {"precision": "fp8", "recipe": scaling.value, "fp8_parameters": gathers}
        elif name in ("mx", "quantize.linear.mx"):
            found |= {"precision": "fp8", "recipe": Recipe.MXFP8.value}
        else:
            keys.wrong("model.converters", f"{name!r} is not modelled", "float8 or mx")
    return found
