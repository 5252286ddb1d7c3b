"""Reads files with the frameworks' own parsers, in a process of its own: python -m ... NAME FILE...

Writes a JSON list: what each file says, in the framework's words.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def read_torchtitan(paths: list[str]) -> list[Any]:
    """Return torchtitan 0.2's JobConfig of each TOML file, its types and degrees checked.

    The package imports Triton's kernels at once, and its parser none of them: only that is loaded.
    """
    spec = find_spec("torchtitan")
    assert spec is not None
    package = ModuleType("torchtitan")
    package.__path__ = list(spec.submodule_search_locations or ())
    sys.modules["torchtitan"] = package
    from pydantic import TypeAdapter
    from torchtitan.config.job_config import JobConfig
    from torchtitan.config.manager import ConfigManager
    from torchtitan.distributed.parallel_dims import ParallelDims

    found = []
    for path in paths:
        config = ConfigManager().parse_args(["--job.config_file", path])
        TypeAdapter(JobConfig).validate_python(asdict(config))
        degrees = config.parallelism
        sizes = {
            "dp_replicate": degrees.data_parallel_replicate_degree,
            "dp_shard": degrees.data_parallel_shard_degree,
            "cp": degrees.context_parallel_degree,
            "tp": degrees.tensor_parallel_degree,
            "pp": degrees.pipeline_parallel_degree,
            "ep": degrees.expert_parallel_degree,
            "etp": degrees.expert_tensor_parallel_degree,
        }
        ParallelDims(**sizes, world_size=int(Path(path).with_suffix(".world").read_text()))
        found.append(asdict(config))
    return found


def read_transformers(paths: list[str]) -> list[Any]:
    """Return transformers' configuration of each folder with a config.json; PyTorch is hidden."""
    sys.modules["torch"] = None  # type: ignore[assignment]
    from transformers import AutoConfig

    return [AutoConfig.from_pretrained(path).to_dict() for path in paths]


if __name__ == "__main__":
    readers = {"torchtitan": read_torchtitan, "transformers": read_transformers}
    sys.stdout.write(json.dumps(readers[sys.argv[1]](sys.argv[2:]), default=str) + "\n")
