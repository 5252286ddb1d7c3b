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
