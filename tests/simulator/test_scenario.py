"""Scenario files: what they name is found beside them, and every error is reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import DEFAULT_TOP, load_scenario

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
SCENARIO = """
model = "llama3-8b"
[cluster]
profile = "dgx-h100"
nodes = 2
[job]
global_batch_size = 16
seq_length = 4096
[layout]
tp = 8
dp = 2
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def problems_of(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        load_scenario(written(tmp_path, text))
    return [(problem.where, problem.key) for problem in caught.value.problems]


def test_a_scenario_brings_model_stack_and_machine(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, SCENARIO))
    names = (scenario.model.spec.name, scenario.stack.name, scenario.profile.name)
    assert names == ("llama3-8b", "megatron-core", "dgx-h100")


def test_world_size_is_all_accelerators_of_all_nodes(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, SCENARIO)).world_size == 16


def test_a_scenario_without_title_is_called_after_model_and_size(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, SCENARIO))
    assert scenario.title == "llama3-8b on 16 accelerators"


def test_a_scenario_without_search_searches_all_and_returns_ten(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, SCENARIO)).file.search.top == DEFAULT_TOP


def test_all_names_that_lead_nowhere_are_reported_at_once(tmp_path: Path) -> None:
    text = SCENARIO.replace("llama3-8b", "llama3-8c").replace("dgx-h100", "dgx-h101")
    text = text.replace("seq_length", 'stack = "megatron-cor"\nseq_length')
    with pytest.raises(InputError) as caught:
        load_scenario(written(tmp_path, text))
    assert [(p.key, p.found, p.fix) for p in caught.value.problems] == [
        ("model", "'llama3-8c'", "did you mean 'llama3-8b'?"),
        ("job.stack", "'megatron-cor'", "did you mean 'megatron-core'?"),
        ("cluster.profile", "'dgx-h101'", "did you mean 'dgx-h100'?"),
    ]


def test_all_wrong_keys_of_a_scenario_are_reported_at_once(tmp_path: Path) -> None:
    text = SCENARIO.replace("nodes = 2", "nodes = 0").replace("tp = 8", "tp = -1\nzero = 3")
    where = str(tmp_path / "run.toml")
    assert problems_of(tmp_path, text) == [
        (where, "cluster.nodes"),
        (where, "layout.tp"),
        (where, "layout.zero"),
    ]


def test_files_are_found_relative_to_the_scenario(tmp_path: Path) -> None:
    text = SCENARIO.replace("llama3-8b", "mine.toml")
    assert problems_of(tmp_path, text) == [(str(tmp_path / "mine.toml"), "")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads_and_its_layout_is_legal(path: Path) -> None:
    scenario = load_scenario(path)
    layout = scenario.file.layout or ParallelLayout(dp=scenario.world_size)
    if "dp" not in layout.model_fields_set:
        filled = scenario.world_size // (layout.tp * layout.cp * layout.pp)
        layout = layout.model_copy(update={"dp": filled})
    Forecaster.of(scenario).check(layout)
