"""Small files of every kind that users write, and ways to spoil them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import tomlkit

from simulator.hardware.profile import PROFILE_FOLDER
from simulator.workload.stack import STACK_FOLDER

Document = dict[str, Any]
HUGE = 10**30
SPARSE_BYTES = 100 * 2**20

SCENARIO: Document = {
    "model": "gpt2",
    "cluster": {"profile": "lan-workstations", "nodes": 2},
    "job": {
        "global_batch_size": 4,
        "seq_length": 256,
        "precision": "bf16",
        "tokens": 10**9,
        "stack": "megatron-core",
    },
    "layout": {"dp": 2, "micro_batch_size": 1},
    "search": {"top": 2, "micro_batch_size": [1], "recompute": ["none"]},
}
CONFIG: Document = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
MODEL: Document = {
    "name": "small",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "gated_mlp": True,
    "activation": "silu",
    "norm": "rmsnorm",
    "position": "rope",
    "max_position_embeddings": 512,
}
ROW: dict[str, object] = {
    "id": "one",
    "source": "made up",
    "hardware": "NVIDIA H100 SXM",
    "gpu_mem_gb": 80,
    "gpus": 8,
    "gpus_per_node": 8,
    "framework": "Megatron-Core",
    "model": "Llama 3 8B",
    "layers": 32,
    "hidden": 4096,
    "ffn_hidden": 14336,
    "ffn_matrices": 3,
    "heads": 32,
    "kv_heads": 8,
    "vocab": 128256,
    "seq_len": 8192,
    "precision": "bf16",
    "global_batch": 128,
    "micro_batch": 1,
    "tp": 2,
    "pp": 1,
    "dp": 4,
    "cp": 1,
    "zero_stage": 1,
    "recompute": "none",
    "status": "ok",
    "step_time_s": 10.0,
}


def profile_document() -> Document:
    """Return a shipped profile whose constants are named by their full path."""
    document = tomlkit.parse((PROFILE_FOLDER / "lan-workstations.toml").read_text()).unwrap()
    return {**document, "constants": str(PROFILE_FOLDER / document["constants"])}


def stack_document() -> Document:
    """Return a shipped stack."""
    return tomlkit.parse((STACK_FOLDER / "megatron-core.toml").read_text()).unwrap()


def with_value(document: Document, path: str, value: object) -> Document:
    """Return a copy in which the key at a dotted path has another value; None removes it."""
    changed = deepcopy(document)
    *folders, key = path.split(".")
    table = changed
    for folder in folders:
        table = table.setdefault(folder, {})
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
    return changed


def paths(document: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted paths of all keys of a document."""
    found = []
    for key, value in document.items():
        found.append(prefix + key)
        if isinstance(value, dict):
            found += paths(value, f"{prefix}{key}.")
    return found


def toml_text(document: Document) -> str:
    """Return a document as TOML."""
    return tomlkit.dumps(document)


def csv_text(row: Mapping[str, object]) -> str:
    """Return a table of one row."""
    return ",".join(row) + "\n" + ",".join(str(value) for value in row.values()) + "\n"


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE_BYTES)


SPOILED: dict[str, Callable[[Path, str], object]] = {
    "missing": lambda path, text: None,
    "empty": lambda path, text: path.write_text(""),
    "blank lines": lambda path, text: path.write_text("\n\n  \n"),
    "directory": lambda path, text: path.mkdir(),
    "fifo": lambda path, text: os.mkfifo(path),
    "sparse 100 MB": lambda path, text: _sparse(path),
    "long line": lambda path, text: path.write_text("a" * 2**20),
    "binary": lambda path, text: path.write_bytes(bytes(range(256)) * 4),
    "zero bytes": lambda path, text: path.write_bytes(b"\0" * 100),
    "latin-1": lambda path, text: path.write_bytes("café = 1".encode("latin-1")),
    "utf-16": lambda path, text: path.write_text(text, encoding="utf-16"),
    "half": lambda path, text: path.write_text(text[: len(text) // 2]),
    "twice": lambda path, text: path.write_text(text + text),
    "deep lists": lambda path, text: path.write_text("a = " + "[" * 5000),
    "deep objects": lambda path, text: path.write_text('{"a":' * 5000),
    "deep keys": lambda path, text: path.write_text(".".join("a" * 3000) + " = 1"),
    "scalar": lambda path, text: path.write_text("3"),
    "json list": lambda path, text: path.write_text("[1, 2, 3]"),
    "json null": lambda path, text: path.write_text("null"),
    "html": lambda path, text: path.write_text("<!DOCTYPE html><html></html>"),
    "lfs pointer": lambda path, text: path.write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    ),
    "huge integer": lambda path, text: path.write_text("a = " + "9" * 5000),
    "surrogate": lambda path, text: path.write_text('a = "\\ud800"'),
}
"""Each writes a file that is not what it should be."""

HARMLESS: dict[str, Callable[[Path, str], object]] = {
    "crlf": lambda path, text: path.write_bytes(text.replace("\n", "\r\n").encode()),
    "byte order mark": lambda path, text: path.write_text(text, encoding="utf-8-sig"),
    "no last newline": lambda path, text: path.write_text(text.rstrip()),
    "blank lines after": lambda path, text: path.write_text(text + "\n\n"),
}
"""Each writes a good file in an unusual way."""


def json_text(document: Document) -> str:
    """Return a document as JSON."""
    return json.dumps(document)


MIXTURE: Document = {
    **SCENARIO,
    "model": "mixtral-8x7b",
    "cluster": {"profile": "dgx-h100", "nodes": 1},
    "layout": {"pp": 2, "dp": 4, "ep": 4, "zero_stage": 1, "micro_batch_size": 1},
}
"""A scenario whose layout spreads experts."""

CONTRADICTIONS: list[tuple[Document, dict[str, Any], list[str]]] = [
    (SCENARIO, {"layout.ep": 2}, ["layout.ep: a dense model has no experts (found 2)"]),
    (SCENARIO, {"layout.etp": 2}, ["layout.etp: a dense model has no experts"]),
    (SCENARIO, {"job.moe": {"two_step": True}}, ["job.moe: ", "two_step = true"]),
    (MIXTURE, {"layout.ep": 3}, ["experts must divide by ep", "fix: ep of 1, 2, 4, 8"]),
    (MIXTURE, {"job.moe": {"capacity_factor": 0}}, ["job.moe.capacity_factor: ", "(found 0)"]),
    (
        MIXTURE,
        {"job.moe": {"capacity_factor": 1.5, "load_imbalance": 1.5}},
        ["job.moe.load_imbalance: ", "fix: 1, or no capacity_factor"],
    ),
    (SCENARIO, {"job.lora": {"rank": 8}, "job.freeze": ["mlp"]}, ["job.freeze: beside adapters"]),
    (SCENARIO, {"job.lora": {"rank": 4096}}, ["job.lora.rank: ", "fix: at most 768"]),
    (
        SCENARIO,
        {"job.lora": {"rank": 8, "targets": ["qkv"]}},
        ["job.lora.targets.0: ", "did you mean 'linear_qkv'?"],
    ),
    (SCENARIO, {"job.freeze": ["mlp", "mlp"]}, ["job.freeze: names a part more than once"]),
    (SCENARIO, {"job.optimizer": "adamw"}, ["job.optimizer: ", "did you mean 'adam'?"]),
    (
        SCENARIO,
        {"job.powersgd_rank": 8, "layout.zero_stage": 1},
        ["job.powersgd_rank: ", "(found 8, zero_stage 1, all-reduce)"],
    ),
    (SCENARIO, {"job.recipe": "delayed"}, ["job.recipe: bf16 is scaled by no recipe"]),
    (SCENARIO, {"job.document_length": 512}, ["job.document_length: ", "fix: at most 256"]),
    (SCENARIO, {"layout.cp_comm_type": "a2a"}, ["layout.cp_comm_type: cp = 1 exchanges nothing"]),
    (SCENARIO, {"layout.cp": 2, "layout.dp": 1, "layout.cp_inner": 2}, ["layout.cp_inner: "]),
    (
        SCENARIO,
        {"layout.recompute": "selective", "layout.recompute_modules": ["moe_act"]},
        ["layout.recompute_modules: gpt2 has none", "core_attn, layernorm, mlp"],
    ),
    (
        SCENARIO,
        {"layout.offload_layers": 12, "layout.recompute": "full"},
        ["at most 11", "does not combine it with recomputation"],
    ),
    (SCENARIO, {"layout.schedule": "zbv"}, ["layout.schedule: ", "did you mean 'zb-v'?"]),
    (SCENARIO, {"layout.schedule": "csv"}, ["layout.schedule", "megatron-core"]),
]
"""Keys that a layout of the command `simulate` contradicts, and what is said about each."""

SEARCHES: list[tuple[Document, dict[str, Any], list[str]]] = [
    (SCENARIO, {"ep": [2, 4]}, ["search.ep: a dense model has no experts (found 2, 4)"]),
    (SCENARIO, {"etp": [1]}, ["search.etp: a dense model has no experts"]),
    (MIXTURE, {"ep": [3, 5]}, ["search.ep: the 8 experts", "of 1, 2, 4, 8"]),
    (SCENARIO, {"cp_comm_type": ["a2a"]}, ["search.cp_comm_type: cp = 1 exchanges nothing"]),
    (SCENARIO, {"cp": [4], "cp_comm_type": ["p2p"], "cp_inner": [2]}, ["search.cp_inner: only"]),
    (SCENARIO, {"cp": [4], "cp_inner": [3, 4]}, ["search.cp_inner: must divide cp (4)"]),
    (
        SCENARIO,
        {"recompute": ["none"], "recompute_modules": [["mlp"]], "recompute_num_layers": [2]},
        ["search.recompute_modules: ", "search.recompute_num_layers: "],
    ),
    (
        SCENARIO,
        {"recompute_num_layers": ["every"]},
        ["search.recompute_num_layers.0: input should be a valid integer, or should be 'all'"],
    ),
    (SCENARIO, {"schedule": ["csv"]}, ["search.schedule: a schedule from a file is simulated"]),
    (SCENARIO, {"schedule": ["1f1b"], "microbatch_group_size": [4]}, ["only the interleaved"]),
    (SCENARIO, {"pp": [1], "microbatch_group_size": [4]}, ["interleaved schedule needs pp > 1"]),
    (SCENARIO, {"offload_layers": [-1]}, ["search.offload_layers.0: "]),
    (SCENARIO, {"optimizer_offload": [2]}, ["search.optimizer_offload.0: "]),
    (SCENARIO, {"ept": [2]}, ["search.ept: unknown key", "did you mean 'ep'?"]),
]
"""Search tables that contradict themselves or the model, and what is said about each."""

BAD_SCHEDULES: list[tuple[str, list[str]]] = [
    ("", ["rows: must be one row a rank: pp = 2 (found 0)", "fix: 2 rows"]),
    ("0F0,0B0\n", ["rows: must be one row a rank: pp = 2 (found 1)"]),
    ("0F0,foo\n1F\n", ["row 1, column 2: ", "(found foo)", "row 2, column 1: "]),
    ("0F\u0663\n1F0\n", ["row 1, column 1: "]),
    ("0SEND_F0\n1F0\n", ["communication is derived from the passes"]),
    ("9F0\n1F0\n", ["places are 0 to pp x vpp - 1 = 1"]),
    ("0B0,0F0\n1F0,1B0\n", ["waits for ever"]),
    ("0F0,0B0,0F0\n1F0,1B0\n", ["0F0 2 times"]),
    ("0F0," * 100_000, ["row 1: a rank runs at most 3 passes", "(found 100000 passes)"]),
    ("0F0\n" * 100_000, ["rows: must be one row a rank: pp = 2 (found 100000)"]),
]
"""Schedule files for two stages and one micro-batch, and what is said about each."""
