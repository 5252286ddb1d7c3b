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
    """Return a mesh of `tp` ranks on which this one computes by itself; see `lone_grid`."""
    return lone_grid(device, dp=1, tp=tp)["tp"]


def lone_grid(device: torch.device, *, dp: int, tp: int) -> DeviceMesh:
    """Return a mesh "dp" x "tp" on which this rank computes by itself.

    DTensor and FSDP2 do all that they do in a group: they cut, copy, hand collectives over and wait
    for them. A mesh of one rank would leave their collectives out, whose dispatch is as long as
    that of several kernels. No byte moves, so that sums are of this rank's part alone.

    Raises:
        UnsupportedError: the ranks of this job do not come in groups of dp x tp.
    """
    if not dist.is_initialized():
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group(_FAKE, store=FakeStore(), rank=0, world_size=_FAKE_RANKS)
    block = dp * tp
    if dist.get_backend() == _FAKE:
        _check_room(block)
        groups = [dist.new_group(list(range(0, block, tp))), dist.new_group(list(range(tp)))]
        first = 0
    else:
        from torch.testing._internal.distributed import fake_pg  # noqa: F401 (it adds the backend)

        blocks = _blocks_of(block, dist.get_world_size())
        first = dist.get_rank() // block * block
        across = [[*ranks[place::tp]] for ranks in blocks for place in range(tp)]
        along = [[*ranks[place : place + tp]] for ranks in blocks for place in range(0, block, tp)]
        groups = [_own_of(across), _own_of(along)]
    mesh = torch.arange(first, first + block).view(dp, tp)
    return DeviceMesh.from_group(groups, device.type, mesh=mesh, mesh_dim_names=("dp", "tp"))


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


def _own_of(groups: list[list[int]]) -> Any:
    """Return the group of this rank among some whose collectives return at once."""
    make_groups: Any = dist.new_subgroups_by_enumeration
    group, _ = make_groups(groups, backend=_FAKE)
    return group


def _check_room(block: int) -> None:
    if block > _FAKE_RANKS:
        rule = f"dp x tp = {block} is more than the {_FAKE_RANKS} ranks that can be made up"
        fix = "leave this tp or dp out"
        raise UnsupportedError(Problem(key="tp", found=str(block), rule=rule, fix=fix))


def _blocks_of(block: int, ranks: int) -> list[range]:
    """Return all ranks of this job, `block` neighbours at a time."""
    if ranks % block:
        rule = f"{ranks} ranks that measure at once do not divide into groups of {block}"
        fix = 'set ranks = "one" in [layers], or leave this tp or dp out'
        raise UnsupportedError(Problem(key="tp", found=str(block), rule=rule, fix=fix))
    return [range(first, first + block) for first in range(0, ranks, block)]
