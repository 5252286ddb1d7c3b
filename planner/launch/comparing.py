"""What two descriptions of a run differ in, where it would change a forecast."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil
from typing import Any

from planner.launch.records import Run
from simulator.errors import InputError
from simulator.parallel.layout import Recompute, RecomputeModule, ScheduleName
from simulator.parallel.numbers import with_dtypes
from simulator.parallel.partition import head_cost, partition_layers
from simulator.workload.load import load_model, model_names
from simulator.workload.model import ModelSpec

PADDED = "job.padded vocabulary"
"""A difference that not every tool can be told away."""
DESCRIPTION = ("name", "source", "published_parameters", "published_active_parameters")
"""Of a model: they change no forecast."""


def differences(run: Run, other: Run) -> Iterator[tuple[str, Any, Any]]:
    """Yield key, value of `run` and value of `other` wherever they mean different things."""
    for table, one, two in (
        ("model", plain_model(run.model), plain_model(other.model)),
        ("job", plain_job(run), plain_job(other)),
        ("layout", plain_layout(run), plain_layout(other)),
    ):
        for key in one:
            if one[key] != two[key]:
                yield f"{table}.{key}", one[key], two[key]


def plain_model(model: ModelSpec) -> dict[str, Any]:
    """Return a model's fields without its names; all kinds of GELU are one."""
    fields = {key: value for key, value in model.model_dump().items() if key not in DESCRIPTION}
    if model.activation.startswith("gelu"):
        fields["activation"] = "gelu"
    if model.learned_positions is None and fields["position"] == "learned":
        fields["learned_positions"] = model.max_position_embeddings
    # Where positions are not learned it has no parameters and costs nothing.
    del fields["max_position_embeddings"]
    return fields


def plain_job(run: Run) -> dict[str, Any]:
    """Return a job's fields with their effect in the place of their spelling.

    Tokens are steps, padding is the padded vocabulary, formats are bytes. What no launch file says
    is left out: the stack's name, the mean document and how evenly tokens find their experts.
    """
    job = run.job
    fields = job.model_dump(exclude={"stack", "tokens", "document_length", "dtypes"})
    routing = fields.pop("moe")
    fields["steps"] = None if job.tokens is None else ceil(job.tokens / job.tokens_per_step)
    fields["recipe"] = job.effective_recipe
    multiple = fields.pop("make_vocab_size_divisible_by") * run.layout.tp
    fields["padded vocabulary"] = ceil(run.model.vocab_size / multiple) * multiple
    numerics = with_dtypes(run.stack, job).numerics
    return {
        **fields,
        "dtypes.gradient (bytes)": numerics.gradient_bytes,
        "dtypes.reduce (bytes)": numerics.reduce_bytes,
        "dtypes.master": job.dtypes.master,
        "dtypes.state": job.dtypes.state,
        **{f"moe.{key}": value for key, value in routing.items() if key != "load_imbalance"},
    }


def plain_layout(run: Run) -> dict[str, Any]:
    """Return a layout's fields with its defaults filled in, those without effect left out."""
    layout = run.layout
    fields = layout.model_dump()
    fields["schedule"] = layout.effective_schedule
    if layout.pp == 1 and layout.vpp == 1 and layout.schedule_file is None:
        fields["schedule"] = ScheduleName.ONE_F_ONE_B
    fields["etp"] = layout.expert_tp
    fields["sequence_parallel"] = layout.sequence_parallel and layout.tp > 1
    fields["microbatch_group_size"] = layout.microbatch_group_size or layout.pp
    fields["shard_size"] = layout.shard_ranks if layout.zero_stage else None
    if layout.recompute_modules == (RecomputeModule.CORE_ATTENTION,):
        fields["recompute_modules"] = ()
    if layout.recompute is Recompute.FULL and layout.recompute_num_layers is not None:
        fields["recompute_method"] = layout.recompute_method or "block"
    fields["layers_per_stage"] = split_of(run)
    return fields


def split_of(run: Run) -> tuple[int, ...] | None:
    """Return the layers of each virtual stage; None where the stack's rule cannot spread them."""
    layers, rule = run.model.num_hidden_layers, run.stack.partition
    try:
        return partition_layers(run.layout, layers, rule, head_cost(run.model))
    except InputError:
        return None


def preset_of(model: ModelSpec) -> str | None:
    """Return the shipped model that is the same, by its own name first; None where none is."""
    wanted = plain_model(model)
    same = [name for name, fields in _shipped().items() if fields == wanted]
    return model.name if model.name in same else min(same, default=None)


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    return {name: plain_model(load_model(name).spec) for name in model_names()}
