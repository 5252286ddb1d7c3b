"""Every framework: what is written is read back as the same run, and no key is lost in silence."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.launch import Imported, ImportOptions, LaunchFile, Tool, export, import_files
from planner.launch.comparing import differences
from planner.launch.records import Launch, Run
from planner.launch.registry import TOOLS
from simulator.errors import InputError
from simulator.files import parse_record
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario, ScenarioFile, resolve_scenario
from tests.planner.launch.runs import SPACES, runs, scenario_of

OPTIONS = ImportOptions(cluster="dgx-h100")
EVERY = pytest.mark.parametrize("tool", list(Tool))


def test_every_tool_is_registered() -> None:
    assert set(TOOLS) == set(Tool) == set(SPACES)


def run_of(scenario: Scenario, layout: ParallelLayout) -> Run:
    return Run(
        model=scenario.model.spec,
        job=scenario.file.job,
        layout=layout,
        stack=scenario.stack,
        nodes=scenario.file.cluster.nodes,
        gpus_per_node=8,
    )


def read_in(imported: Imported, folder: Path) -> Scenario:
    """Return the scenario of an import, with the files that it names."""
    for file in imported.files:
        (folder / file.name).write_text(file.text)
    table = parse_record(ScenarioFile, tomllib.loads(imported.scenario), "imported.toml")
    return resolve_scenario(table, "imported.toml", folder)


def files_of(launch: Launch) -> tuple[LaunchFile, ...]:
    """Return the files to read: of torchtitan one of its two ways."""
    return launch.files[:1] if launch.tool is Tool.TORCHTITAN else launch.files


@EVERY
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(data=st.data())
def test_what_is_written_is_read_as_the_same_run(
    tool: Tool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = data.draw(runs(tool))
    scenario, layout = drawn.scenario, drawn.layout
    launch = export(scenario, layout, tool)
    options = replace(OPTIONS, nodes=scenario.file.cluster.nodes)
    imported = import_files(files_of(launch), options)
    back = read_in(imported, tmp_path_factory.mktemp("imported"))
    assert imported.tool is tool
    assert back.file.layout is not None
    assert list(differences(run_of(scenario, layout), run_of(back, back.file.layout))) == []


@pytest.fixture(scope="module")
def launches() -> dict[Tool, Launch]:
    """One launch of every tool: data parallel over two nodes."""
    found = {}
    for tool, space in SPACES.items():
        job = {"tokens": 64 * 2048 * 100, "make_vocab_size_divisible_by": 1}
        scenario = scenario_of(space, 2, **job)
        layout = ParallelLayout(dp=16, zero_stage=space.zero[-1])
        found[tool] = export(scenario, layout, tool)
    return found


@EVERY
def test_a_launch_says_what_only_the_user_knows(tool: Tool, launches: dict[Tool, Launch]) -> None:
    texts = "".join(file.text for file in launches[tool].files)
    assert launches[tool].fill
    assert all(name.rsplit(".", maxsplit=1)[-1] in texts for name in launches[tool].fill)
    assert "FILL_IN" in texts


@EVERY
def test_a_file_is_taken_for_its_own_tool(tool: Tool, launches: dict[Tool, Launch]) -> None:
    first = launches[tool].files[0]
    assert [other for other, entry in TOOLS.items() if entry.recognise(first)] == [tool]


UNKNOWN = {
    Tool.MEGATRON_LM: ("--num-layers", "--sparse-everything 3 --num-layers"),
    Tool.MEGATRON_BRIDGE: ("    train.", "    model.sparse_everything=3\n    train."),
    Tool.TORCHTITAN: ("[training]", "[training]\nsparse_everything = 3"),
    Tool.DEEPSPEED: ('{\n  "train_batch_size"', '{"sparse_everything": 3, "train_batch_size"'),
    Tool.NANOTRON: ("tokens:", "tokens:\n  sparse_everything: 3"),
}


@EVERY
def test_an_unknown_key_is_refused_by_name_unless_vouched_for(
    tool: Tool, launches: dict[Tool, Launch]
) -> None:
    old, new = UNKNOWN[tool]
    files = tuple(
        replace(file, text=file.text.replace(old, new, 1)) for file in files_of(launches[tool])
    )
    with pytest.raises(InputError) as caught:
        import_files(files, OPTIONS if tool is Tool.MEGATRON_LM else replace(OPTIONS, nodes=2))
    (problem,) = caught.value.problems
    assert "sparse" in problem.key
    assert "could change compute or memory" in problem.rule
    vouched = replace(OPTIONS, nodes=2, ignore=frozenset({problem.key}))
    assert problem.key in import_files(files, vouched).unused


@EVERY
def test_no_machine_is_guessed(tool: Tool, launches: dict[Tool, Launch]) -> None:
    with pytest.raises(InputError, match="--cluster PROFILE"):
        import_files(files_of(launches[tool]), ImportOptions())


@EVERY
def test_a_cluster_that_the_layout_does_not_fit_is_refused(
    tool: Tool, launches: dict[Tool, Launch]
) -> None:
    # Where dp is what is left, as in Megatron-LM, the batch of 64 does not divide by 24.
    with pytest.raises(InputError, match=r"24|64|16"):
        import_files(files_of(launches[tool]), replace(OPTIONS, nodes=3))


@EVERY
def test_every_row_of_the_reference_names_a_key_of_a_scenario(tool: Tool) -> None:
    for argument in TOOLS[tool].arguments:
        assert argument.name
        table = argument.key.partition(".")[0]
        assert table in ("model", "job", "layout", "stack", "")
    names = [argument.name for argument in TOOLS[tool].arguments]
    assert len(names) == len(set(names))
