"""Tensor parallelism as DTensor does it: which module of a model is cut how.

What reads the residual stream is cut by columns, what writes to it by rows. Inputs become DTensors
once a block, so that the gradients of its projections are added before they are reduced; the
vocabulary is cut in embedding, output projection and loss. So does torchtitan.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

from calibrate.measure_model import Embedding, Head
from simulator.errors import Problem, UnsupportedError

_FAKE = "fake"
"""PyTorch's backend whose collectives return at once and move nothing."""
_FAKE_RANKS = 4096
"""More than any tensor-parallel group has; none but this one exists."""

_DEVIATION = 0.02
"""Of weights drawn anew, as GPT-2's are."""
_PROJECTIONS = (("attn", ("q", "k", "v"), "o"), ("mlp", ("gate", "up"), "down"))
"""Blocks of a layer with what reads the residual stream and what writes to it."""


def shard_layer(layer: nn.Module, mesh: DeviceMesh) -> None:
    """Cut the weights of one layer over `mesh`, in place."""
    plan: dict[str, Any] = {}
    for block, inputs, output in _PROJECTIONS:
        module = getattr(layer, block)
        if module is None:
            continue
        plan[block] = PrepareModuleInput(
            input_layouts=Replicate(), desired_input_layouts=Replicate()
        )
        present = [name for name in inputs if getattr(module, name, None) is not None]
        plan |= {f"{block}.{name}": ColwiseParallel() for name in present}
        plan[f"{block}.{output}"] = RowwiseParallel()
    _cut(layer, mesh, plan)


def shard_embedding(embedding: Embedding, mesh: DeviceMesh) -> None:
    """Cut the rows of the table over `mesh`, in place; each rank adds what the others look up."""
    _cut(embedding, mesh, {"tokens": RowwiseParallel(input_layouts=Replicate())})


def shard_head(head: Head, mesh: DeviceMesh) -> None:
    """Cut the output projection over `mesh`, in place; logits stay cut for `loss_parallel`."""
    output = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    _cut(head, mesh, {"output": output})


def lone_mesh(device: torch.device, tp: int) -> DeviceMesh:
    """Return a mesh of `tp` ranks on which this one computes by itself.

    DTensor does all that it does in a group: it cuts, copies, hands collectives over and waits for
    them. A mesh of one rank would leave its collectives out, whose dispatch is as long as that of
    several kernels. No byte moves, so that sums are of this rank's part alone.

    Raises:
        UnsupportedError: the ranks of this job do not come in groups of `tp`.
    """
    if not dist.is_initialized():
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group(_FAKE, store=FakeStore(), rank=0, world_size=_FAKE_RANKS)
    if dist.get_backend() == _FAKE:
        return DeviceMesh.from_group(dist.new_group(list(range(tp))), device.type)
    from torch.testing._internal.distributed import fake_pg  # noqa: F401 (it adds the backend)

    make_groups: Any = dist.new_subgroups_by_enumeration
    group, _ = make_groups(_groups_of(tp, dist.get_world_size()), backend=_FAKE)
    return DeviceMesh.from_group(group, device.type)


def _cut(module: nn.Module, mesh: DeviceMesh, plan: dict[str, Any]) -> None:
    """Cut each rank's own copy: all made theirs from one seed, so that none is sent.

    PyTorch before 2.7 always sends the first rank's, which on a lone mesh leaves memory as it was:
    the parts are then drawn anew.
    """
    if "src_data_rank" in signature(parallelize_module).parameters:
        parallelize_module(module, mesh, plan, src_data_rank=None)
        return
    parallelize_module(module, mesh, plan)
    with torch.no_grad():
        for parameter in module.parameters():
            local = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            local.normal_(std=_DEVIATION)


def _groups_of(tp: int, ranks: int) -> list[list[int]]:
    """Return all ranks of this job, `tp` neighbours a group."""
    if ranks % tp:
        rule = f"{ranks} ranks that measure at once do not divide into groups of {tp}"
        fix = 'set ranks = "one" in [layers], or leave this tp out'
        raise UnsupportedError(Problem(key="tp", found=str(tp), rule=rule, fix=fix))
    return [list(range(first, first + tp)) for first in range(0, ranks, tp)]
