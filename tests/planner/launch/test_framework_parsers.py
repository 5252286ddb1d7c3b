"""Launch files of the shipped examples, read by the frameworks' own parsers (`make frameworks`)."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from planner.launch import Launch, Tool, export
from planner.launch.comparing import plain_model
from planner.launch.hugging_face import config_of
from planner.launch.tables import dotted
from simulator.errors import InputError, UnsupportedError
from simulator.given_layout import scenario_layout
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import load_scenario
from simulator.workload.hf_config import parse_config
from simulator.workload.load import load_model, model_names
from simulator.workload.model import ModelSpec
from tests.planner.launch.runs import scenario_with

ROOT = Path(__file__).resolve().parents[3]
FILLED = {
    'lr = "FILL_IN"': "lr = 0.0003",
    'steps = "FILL_IN"': "steps = 10",
}
"""What only the user knows, with a value of its type."""


def read(framework: str, *paths: Path) -> list[Any]:
    """Return what a framework's own parser makes of files, or skip where it is not installed."""
    try:
        found = version(framework)
    except PackageNotFoundError:
        pytest.skip(f"needs {framework}: make frameworks")
    if framework == "torchtitan" and not found.startswith("0.2."):
        pytest.skip(f"torchtitan {found} reads no TOML files; 0.2 does")
    words = ["-m", "tests.planner.launch.framework_readers", framework, *map(str, paths)]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return list(json.loads(done.stdout.splitlines()[-1]))


def exported(tool: Tool) -> Iterator[tuple[str, Launch, int]]:
    """Yield name, launch and world size of each shipped example that a framework can run."""
    for path in sorted((ROOT / "examples").glob("*.toml")):
        scenario = load_scenario(path)
        if scenario.file.layout is None or scenario.mixed:
            continue
        try:
            yield path.stem, export(scenario, scenario_layout(scenario), tool), scenario.world_size
        except (UnsupportedError, InputError):
            continue


def more() -> Iterator[tuple[str, Launch, int]]:
    """Yield layouts that no shipped example has: eight bits, uneven stages, context parallelism."""
    fp8 = {"precision": "fp8", "recipe": "rowwise"}
    uneven = (9, 7, 8, 8)
    for name, job, layout in (
        ("fp8", fp8, ParallelLayout(tp=2, dp=8, sequence_parallel=True, zero_stage=3)),
        ("uneven", {}, ParallelLayout(pp=4, dp=4, zero_stage=3, layers_per_stage=uneven)),
        ("context", {}, ParallelLayout(cp=2, dp=8, zero_stage=3)),
        ("replicas", {}, ParallelLayout(dp=16)),
    ):
        scenario = scenario_with("llama3.1-8b", "torchtitan", 2, **job)
        yield name, export(scenario, layout, Tool.TORCHTITAN), scenario.world_size


def test_torchtitan_reads_every_key_of_its_files(tmp_path: Path) -> None:
    paths, written = [], []
    for name, launch, world_size in (*exported(Tool.TORCHTITAN), *more()):
        text = launch.files[0].text
        for old, new in FILLED.items():
            text = text.replace(old, new)
        paths.append(tmp_path / f"{name}.toml")
        paths[-1].write_text(text)
        paths[-1].with_suffix(".world").write_text(str(world_size))
        written.append(dotted(tomllib.loads(text)))
    assert len(paths) > len(list(more())), "no example was exported"
    for path, table, found in zip(paths, written, read("torchtitan", *paths), strict=True):
        assert {key: dotted(found)[key] for key in table} == table, path.name


def written_models() -> Iterator[ModelSpec]:
    """Yield the shipped models that one of the written architectures says."""
    for name in model_names():
        spec = load_model(name).spec
        try:
            config_of(spec, name)
        except UnsupportedError:
            continue
        yield spec


def test_transformers_reads_the_same_model_from_a_config(tmp_path: Path) -> None:
    models = {spec.name: (spec, config_of(spec, spec.name)) for spec in written_models()}
    for example, launch, _ in exported(Tool.DEEPSPEED):
        (text,) = (file.text for file in launch.files if file.name == "config.json")
        config = json.loads(text)
        models[example] = (parse_config(config, example).spec, config)
    for name, (_, config) in models.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    answers = read("transformers", *(tmp_path / name for name in models))
    for (name, (spec, _)), answer in zip(models.items(), answers, strict=True):
        assert plain_model(parse_config(answer, name).spec) == plain_model(spec), name
