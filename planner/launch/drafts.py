"""From what launch files say to a checked run, and to the text of a scenario with its files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit

from planner.launch.comparing import DESCRIPTION, preset_of
from planner.launch.records import Draft, LaunchFile, Run
from simulator.files import parse_record
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import TrainingJob
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.model_file import parse_model
from simulator.workload.stack import STACK_FOLDER, Stack, load_stack


def run_of(draft: Draft, where: str, name: str = "imported") -> Run:
    """Return the run of a draft, its records checked.

    Raises:
        InputError: with everything that is wrong in it.
    """
    return Run(
        model=_model(draft, where, name),
        job=parse_record(TrainingJob, draft.job, where),
        layout=parse_record(ParallelLayout, draft.layout, where),
        stack=_stack(draft, where),
        nodes=draft.nodes,
        gpus_per_node=draft.gpus_per_node,
        where=where,
    )


def _model(draft: Draft, where: str, name: str) -> ModelSpec:
    if isinstance(draft.model, str):
        return load_model(draft.model).spec
    return parse_model({"name": name, **draft.model}, where)


def _stack(draft: Draft, where: str) -> Stack:
    if not draft.stack_changes:
        return load_stack(draft.stack)
    return parse_record(Stack, tomllib.loads(_stack_text(draft, draft.stack)), where)


def scenario_files(
    draft: Draft, run: Run, cluster: str, stem: str
) -> tuple[str, tuple[LaunchFile, ...]]:
    """Return the text of a scenario, and the files that go beside it: its model, its stack."""
    files: list[LaunchFile] = []
    model = draft.model if isinstance(draft.model, str) else preset_of(run.model)
    if model is None:
        model = f"{stem}-model.toml"
        files.append(LaunchFile(name=model, text=_model_text(run.model)))
    stack = draft.stack
    if draft.stack_changes:
        stack = f"{stem}-stack.toml"
        text = _stack_text(draft, stack.removesuffix(".toml"))
        files.append(LaunchFile(name=stack, text=text))
    table = {
        "title": f"{run.model.name}, {run.layout}",
        "model": model,
        "cluster": {"profile": cluster, "nodes": draft.nodes},
        "job": {**_shown(run.job), "stack": stack},
        "layout": _shown(run.layout) | {"dp": run.layout.dp},
    }
    return _toml(table), tuple(files)


def _shown(record: TrainingJob | ParallelLayout) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude_defaults=True)


def _model_text(model: ModelSpec) -> str:
    fields = model.model_dump(mode="json", exclude_defaults=True)
    if model.mla is not None:
        # Latent attention gives both; model files leave them out.
        del fields["head_dim"], fields["num_key_value_heads"]
    return _toml({name: value for name, value in fields.items() if name not in DESCRIPTION[2:]})


def _stack_text(draft: Draft, name: str) -> str:
    """Return a shipped stack with the keys that a run does otherwise, its fit left as it is."""
    document = tomlkit.parse((STACK_FOLDER / f"{draft.stack}.toml").read_text("utf-8"))
    for key, value in draft.stack_changes.items():
        table, _, field = key.partition(".")
        document[table][field] = value
    changed = ", ".join(f"{key} = {value}" for key, value in draft.stack_changes.items())
    document["name"] = name
    document["title"] = f"{draft.stack}, as launch files say: {changed}"
    return tomlkit.dumps(document)


def _toml(table: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    nested = {key: value for key, value in table.items() if isinstance(value, dict)}
    return tomlkit.dumps({**plain, **nested})
