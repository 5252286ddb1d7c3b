"""Small hand-made tables of measurements."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

STEP: Mapping[str, str] = {
    "id": "a",
    "source": "a table",
    "hardware": "NVIDIA A100 SXM",
    "gpu_mem_gb": "80",
    "gpus": "16",
    "gpus_per_node": "8",
    "inter_node_link": "8x 200 Gb/s InfiniBand per node",
    "framework": "Megatron-DeepSpeed",
    "model": "GPT small",
    "task": "pretrain",
    "layers": "4",
    "hidden": "1024",
    "ffn_hidden": "4096",
    "ffn_matrices": "2",
    "heads": "16",
    "kv_heads": "16",
    "vocab": "50257",
    "vocab_padded": "50304",
    "tied_embeddings": "True",
    "seq_len": "1024",
    "precision": "bf16",
    "global_batch": "32",
    "micro_batch": "2",
    "grad_accum": "2",
    "tp": "2",
    "pp": "1",
    "vpp": "1",
    "dp": "8",
    "cp": "1",
    "zero_stage": "0",
    "sequence_parallel": "False",
    "recompute": "none",
    "attention_kernel": "no flash",
    "optimizer": "Adam",
    "status": "ok",
    "step_time_s": "0.5",
}
"""A step row that says everything it needs to."""
MIXTURE: Mapping[str, str] = {
    **STEP,
    "framework": "Megatron-Bridge / Megatron-Core",
    "model": "a mixture",
    "attention_kernel": "flash",
    "vocab_padded": "50304",
    "ffn_matrices": "3",
    "experts": "8",
    "topk": "2",
    "moe_ffn_hidden": "512",
    "shared_experts": "1",
    "dense_layers": "1",
    "tp": "2",
    "dp": "8",
    "ep": "8",
    "zero_stage": "1",
    "sequence_parallel": "True",
}
"""A step row of a mixture of experts."""


def write_table(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """Write a CSV file whose columns are those of the first row."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def step_rows(*changes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return one step row for each set of changes to `STEP`; missing columns become blank."""
    columns = {key: "" for change in changes for key in change}
    return [{**columns, **STEP, **change} for change in changes]
