"""Tensor parallelism as DTensor does it: which module of a model is cut how.

What reads the residual stream is cut by columns, what writes to it by rows. Inputs become DTensors
once a block, so that the gradients of its projections are added before they are reduced; the
vocabulary is cut in embedding, output projection and loss. So does torchtitan.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

from calibrate.measure_model import Embedding, Head

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
    parallelize_module(layer, mesh, plan)


def shard_embedding(embedding: Embedding, mesh: DeviceMesh) -> None:
    """Cut the rows of the table over `mesh`, in place; each rank adds what the others look up."""
    parallelize_module(embedding, mesh, {"tokens": RowwiseParallel(input_layouts=Replicate())})


def shard_head(head: Head, mesh: DeviceMesh) -> None:
    """Cut the output projection over `mesh`, in place; logits stay cut for `loss_parallel`."""
    output = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    parallelize_module(head, mesh, {"output": output})


def one_rank_mesh(device: torch.device) -> DeviceMesh:
    """Return a mesh of this rank alone: DTensor does all that it does but reach another rank.

    Where nothing has been set up yet, a process group of one rank is.
    """
    if not dist.is_initialized():
        from torch._C._distributed_c10d import HashStore

        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    if dist.get_world_size() == 1:
        return init_device_mesh(device.type, (1,))
    ranks = [[rank] for rank in range(dist.get_world_size())]
    make_groups: Any = dist.new_subgroups_by_enumeration
    group, _ = make_groups(ranks)
    return DeviceMesh.from_group(group, device.type)
