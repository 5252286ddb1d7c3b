"""What an option says counts, and is said where the files say otherwise."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from planner.launch.importing import import_files
from planner.launch.records import ImportOptions, LaunchFile
from simulator.errors import InputError
from tests.traincast.test_examples import EXAMPLES

_MEGATRON, _TITAN = "megatron-gpt-1.3b.sh", "torchtitan-llama3-8b.toml"
_BRIDGE = "bridge.sh"
_BRIDGE_TEXT = (
    "N=8\nuv run torchrun --nnodes 1 --nproc_per_node $N run_recipe.py --recipe "
    "llama3_8b_pretrain_config model.tensor_model_parallel_size=2 "
    "model.pipeline_model_parallel_size=1 model.context_parallel_size=1 "
    "train.micro_batch_size=1 train.global_batch_size=8 model.seq_length=8192\n"
)
CASES: dict[str, tuple[str, dict[str, Any], str, tuple[str, ...], object]] = {
    "seq-length": (
        _MEGATRON,
        {"seq_length": 1024},
        "--seq-length 1024 counts, although {} says --seq-length 2048",
        ("job", "seq_length"),
        1024,
    ),
    "nodes": (
        _MEGATRON,
        {"nodes": 8},
        "--nodes 8 counts, although {} says 4 nodes",
        ("cluster", "nodes"),
        8,
    ),
    "argument": (
        _MEGATRON,
        {"variables": {"--micro-batch-size": "2"}},
        "--set 2 counts, although {} says --micro-batch-size 4",
        ("layout", "micro_batch_size"),
        2,
    ),
    "variable": (
        _MEGATRON,
        {"variables": {"TP": "4"}},
        "--set TP=4 counts, although {} says TP=2 (line 6)",
        ("layout", "tp"),
        4,
    ),
    "model": (
        _MEGATRON,
        {"model": "gpt2"},
        "--model gpt2 counts, although {} says a model of its own",
        ("model",),
        "gpt2",
    ),
    "bridge model": (
        _BRIDGE,
        {"model": "llama2-7b"},
        "--model llama2-7b counts, although {} says --recipe llama3_8b_pretrain_config",
        ("model",),
        "llama2-7b",
    ),
    "bridge key": (
        _BRIDGE,
        {"variables": {"seq_length": "4096"}},
        "--set 4096 counts, although {} says model.seq_length=8192",
        ("job", "seq_length"),
        4096,
    ),
    "titan seq-length": (
        _TITAN,
        {"seq_length": 4096, "nodes": 1},
        "--seq-length 4096 counts, although {} says training.seq_len 8192",
        ("job", "seq_length"),
        4096,
    ),
    "ignore": (
        _MEGATRON,
        {"ignore": frozenset({"--micro-batch-size"})},
        "--ignore --micro-batch-size is without effect: the forecast follows it",
        ("layout", "micro_batch_size"),
        4,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_option_counts_and_is_noted_where_a_file_says_otherwise(case: str) -> None:
    name, options, note, path, expected = CASES[case]
    text = _BRIDGE_TEXT
    if name != _BRIDGE:
        text = (EXAMPLES / "launch" / name).read_text("utf-8")
    file = LaunchFile(name=name, text=text)
    found = import_files([file], ImportOptions(cluster="dgx-h100", **options))
    value: Any = tomllib.loads(found.scenario)
    for key in path:
        value = value[key]
    assert (note.format(name) in found.notes, value) == (True, expected), found.notes


def test_a_key_whose_value_is_lost_names_the_variable_and_its_line() -> None:
    text = (EXAMPLES / "launch" / _MEGATRON).read_text("utf-8").replace("TP=2", "TP=$(choose)")
    file = LaunchFile(name=_MEGATRON, text=text)
    said = "--tensor-model-parallel-size: uses $TP, which line 6 sets to what only a run"
    with pytest.raises(InputError, match=re.escape(said)):
        import_files([file], ImportOptions(cluster="dgx-h100"))


def test_an_option_that_says_what_the_file_says_is_no_note() -> None:
    file = LaunchFile(name=_MEGATRON, text=(EXAMPLES / "launch" / _MEGATRON).read_text("utf-8"))
    same = {"TP": "2", "num-layers": "24"}
    options = ImportOptions(cluster="dgx-h100", nodes=4, seq_length=2048, variables=same)
    plain = import_files([file], ImportOptions(cluster="dgx-h100"))
    assert import_files([file], options).notes == plain.notes
