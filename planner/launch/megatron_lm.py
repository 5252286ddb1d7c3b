"""Megatron-LM: a shell script with its arguments, read back with its rules.

Source: Megatron-LM megatron/training/arguments.py and examples/gpt3, examples/llama, core 0.16.
"""

from __future__ import annotations

from typing import Any

from planner.launch.flags import flag_words, launcher_size, parse_flags
from planner.launch.keys import Keys, overridden
from planner.launch.megatron_checks import UNSAID, refusals
from planner.launch.megatron_job import JOB_ARGUMENTS, job_settings
from planner.launch.megatron_job_read import read_job, read_stack
from planner.launch.megatron_keys import HARMLESS, NOTED
from planner.launch.megatron_layout import LAYOUT_ARGUMENTS, is_serial, layout_settings
from planner.launch.megatron_layout_read import read_layout
from planner.launch.megatron_model import MODEL_ARGUMENTS, model_settings
from planner.launch.megatron_model_read import read_model
from planner.launch.records import Argument, Draft, Given, Launch, LaunchFile, Run, Tool, ToolEntry
from planner.launch.script import Start, train_script
from planner.launch.shell_script import Command, read_script
from planner.launch.sizes import cluster_size
from planner.launch.tables import is_yaml, read_table
from simulator.errors import InputError, Problem, UnsupportedError
from simulator.workload.load import load_model
from simulator.workload.model import Position
from simulator.workload.stack import load_stack

_GROUP_SIZE = "microbatch_group_size_per_vp_stage"
_CHUNKS = "virtual_pipeline_model_parallel_size"
_RENAMED = {_GROUP_SIZE: "microbatch_group_size_per_virtual_pipeline_stage"}
_MARKS = ("num_layers", "tensor_model_parallel_size", "micro_batch_size")
"""Arguments by which a command is taken for one of Megatron-LM."""
_YAML = {
    "num_moe_experts": "num_experts",
    "fp8": "fp8_format",
    "fp4": "fp4_format",
    **{value: key for key, value in _RENAMED.items()},
}
"""Names in --yaml-cfg files that differ from those of the arguments."""
_HIDDEN = ("padded_vocab_size", "fp4_recipe", _CHUNKS)


def write_megatron(run: Run) -> Launch:
    """Return the script that trains `run` with Megatron-LM's pretrain_gpt.py."""
    layout, fill = layout_settings(run), _fill(run)
    chunks = layout.pop(_CHUNKS, None)
    if chunks:
        each = run.model.num_hidden_layers // (chunks * run.layout.pp)
        layout["num_layers_per_virtual_pipeline_stage"] = each
    job = job_settings(run)
    if job["train_iters"] is None:
        job["train_iters"] = "$TRAIN_ITERS"
    if job.get("moe_router_load_balancing_type") == "aux_loss":
        job["moe_aux_loss_coeff"] = "$MOE_AUX_LOSS_COEFF"
    fsdp = layout.get("use_megatron_fsdp", False)
    model = model_settings(run.model, run.job.seq_length)
    if run.model.position is Position.ROPE:
        model["rotary_base"] = "$ROTARY_BASE"
    _check(run, model | layout | job)
    groups = {
        "MODEL_ARGS": _flags(model),
        "PARALLEL_ARGS": _flags(layout | ({"ckpt_format": "fsdp_dtensor"} if fsdp else {})),
        "TRAINING_ARGS": _flags(job | {"lr": "$LR"}),
        "DATA_ARGS": _flags(
            {
                "tokenizer_type": "$TOKENIZER_TYPE",
                "tokenizer_model": "$TOKENIZER_MODEL",
                "data_path": "$DATA_PATH",
            }
        ),
    }
    start = Start(
        title=f"Megatron-LM: {run.model.name}, {run.layout}",
        program=("pretrain_gpt.py",),
        groups=groups,
        fill=fill,
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if is_serial(run) else {},
        comments=("Learning-rate schedule, initialisation and saving are Megatron-LM's defaults.",),
    )
    script = LaunchFile(name="train.sh", text=train_script(run, start))
    return Launch(tool=Tool.MEGATRON_LM, files=(script,), fill=tuple(fill))


def _check(run: Run, settings: dict[str, Any]) -> None:
    """Raise `UnsupportedError` with all that Megatron-LM itself would refuse."""
    problems = [
        Problem(where=run.where, key=_spelt(name), rule=f"Megatron-LM: {rule}")
        for name, rule in refusals(settings)
    ]
    if problems:
        raise UnsupportedError(*problems)


def _flags(settings: dict[str, Any]) -> list[list[str]]:
    return [flag_words(_RENAMED.get(name, name), value) for name, value in settings.items()]


def _fill(run: Run) -> dict[str, str]:
    fill = {
        "DATA_PATH": "prefix of the tokenised data",
        "TOKENIZER_TYPE": f"of the data, with {run.model.vocab_size} tokens",
        "TOKENIZER_MODEL": "its file or name",
        "LR": "learning rate",
    }
    if run.model.position is Position.ROPE:
        fill["ROTARY_BASE"] = "rope_theta of the model; Megatron-LM's default is 10000"
    if run.job.tokens is None:
        fill["TRAIN_ITERS"] = "steps; the scenario has no job.tokens"
    if run.model.moe is not None and run.job.moe.aux_loss:
        fill["MOE_AUX_LOSS_COEFF"] = "weight of the load-balancing loss"
    return fill


def read_megatron(given: Given) -> Draft:
    """Return what a Megatron-LM script, a list of arguments or a --yaml-cfg file says."""
    values, command = _values(given)
    where = given.files[0].name
    used = {name: v for name, v in values.items() if not name.isupper()}
    keys = Keys(used, where, spell=_spelt, ignore=given.options.ignore)
    override_keys(keys, given)
    keys.notes += command.notes
    keys.lost = command.lost
    nodes, gpus = cluster_size(given, *launcher_size(command.launcher), keys)
    return draft_of(keys, given, nodes, gpus, stack=given.options.stack or "megatron-core")


def draft_of(keys: Keys, given: Given, nodes: int, gpus: int, *, stack: str) -> Draft:
    """Return what Megatron's arguments say, all of them read, sorted or refused."""
    software, own = load_stack(stack), set(keys.values)
    model, padded, layers = _model(keys, given)
    layout = read_layout(keys, layers, nodes * gpus)
    if layout["zero_stage"] not in software.zero_stages and given.options.stack is None:
        stack, software = "megatron-bridge", load_stack("megatron-bridge")
    job = read_job(keys, software, layout)
    if padded:
        job["make_vocab_size_divisible_by"] = 1
    changes = read_stack(keys, software, layout)
    if job.get("moe", {}).get("overlap") and layout.get("pp", 1) > 1:
        # Source: core/pipeline_parallel/schedules.py, get_pp_rank_microbatches.
        layout["extra_warm_up"] = 1
    for name, rule in refusals(keys.values):
        keys.complain(name, f"Megatron-LM itself refuses it: {rule}")
    keys.read += [name for name in keys.values if name not in own]
    keys.settle(HARMLESS, NOTED)
    keys.close()
    return Draft(
        model=model,
        job=job,
        layout=layout,
        stack=stack,
        stack_changes=changes,
        nodes=nodes,
        gpus_per_node=gpus,
        read=tuple(keys.spell(name) for name in keys.read if name in own),
        unused=tuple(map(keys.spell, keys.unused)),
        notes=tuple(keys.notes),
    )


def override_keys(keys: Keys, given: Given) -> None:
    """Let the options have the last word on Megatron's arguments."""
    for name, value in given.options.variables.items():
        if not name.isupper():
            keys.override(name.lstrip("-").replace("-", "_"), value, "--set")
    if given.options.seq_length is not None:
        keys.override("seq_length", str(given.options.seq_length), "--seq-length")


def _model(keys: Keys, given: Given) -> tuple[dict[str, Any] | str, bool, int]:
    """Return the model, whether its vocabulary is padded already, and its layers."""
    named, described = given.options.model, keys.given("num_layers")
    problems = list(keys.problems)
    model, padded = read_model(keys)
    if named is None:
        return model, padded, model["num_hidden_layers"]
    keys.problems[:] = problems
    if described:
        keys.notes.append(overridden("--model", named, keys.where, "a model of its own"))
    spec = load_model(named).spec
    keys.values["num_experts"] = spec.moe.num_experts if spec.moe is not None else None
    return named, False, spec.num_hidden_layers


def _values(given: Given) -> tuple[dict[str, Any], Command]:
    """Return the arguments of the files, and the command that they stand in."""
    values: dict[str, Any] = {}
    last = Command(launcher=(), program="", arguments=())
    for file in given.files:
        if is_yaml(file):
            values |= _from_yaml(file)
            continue
        script = read_script(file.text, file.name, given.options.variables)
        commands = [c for c in script.commands if _is_megatron(parse_flags(c.arguments))]
        if commands:
            last = commands[-1]
            values |= parse_flags(last.arguments)
        else:
            values |= _bare(file)
    return {_YAML.get(name, name): value for name, value in values.items()}, last


def _is_megatron(flags: dict[str, Any]) -> bool:
    return any(mark in flags for mark in _MARKS)


def _bare(file: LaunchFile) -> dict[str, Any]:
    """Return the arguments of a file that has them alone, without a command."""
    words = [w for line in file.text.splitlines() for w in line.split("#")[0].split() if w != "\\"]
    flags = parse_flags(words)
    if not _is_megatron(flags):
        rule = "no command with Megatron-LM's arguments stands in it"
        fix = (
            "a script with `torchrun ... pretrain_gpt.py --num-layers ...`, or the arguments alone"
        )
        raise InputError(Problem(where=file.name, rule=rule, fix=fix))
    return flags


def _from_yaml(file: LaunchFile) -> dict[str, Any]:
    """Return the arguments of a --yaml-cfg file, whose sections have no meaning of their own."""
    table = read_table(file)
    values: dict[str, Any] = {}
    for name, value in table.items():
        values |= value if isinstance(value, dict) else {name: value}
    if values.pop("add_bias_linear", True) is False:
        values["disable_bias_linear"] = True
    activation = values.pop("activation_func", None)
    if activation is not None:
        values |= {"swiglu": activation == "swiglu", "squared_relu": activation == "squared_relu"}
    return values


def _spelt(name: str) -> str:
    """Return an argument as it stands on a command line.

    >>> _spelt("num_layers")
    '--num-layers'
    """
    return "--" + _RENAMED.get(name, name).replace("_", "-")


def recognise_megatron(file: LaunchFile) -> bool:
    """Return whether a file has Megatron-LM's arguments, and does not start DeepSpeed."""
    if is_yaml(file):
        return "tensor_model_parallel_size" in file.text and "num_layers" in file.text
    return "--num-layers" in file.text and "--deepspeed" not in file.text


MEGATRON_LM = ToolEntry(
    title="Megatron-LM: a script with the arguments of pretrain_gpt.py",
    version="Megatron-Core 0.16",
    stacks=("megatron-core", "megatron-bridge"),
    write=write_megatron,
    read=read_megatron,
    recognise=recognise_megatron,
    unsaid=UNSAID,
    arguments=tuple(
        Argument(name=_spelt(argument.name), key=argument.key, note=argument.note)
        for argument in (*MODEL_ARGUMENTS, *LAYOUT_ARGUMENTS, *JOB_ARGUMENTS)
        if argument.name not in _HIDDEN
    ),
)
