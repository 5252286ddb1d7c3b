"""Measures what a layer's parameters cost beside its passes: FSDP2, DDP's buckets, the update.

The layer's own arithmetic is left out: its passes hand their input on, and gradients that hold
nothing. What is left is what a framework does for each parameter: copies into and out of the
buffers of its collectives, and the CPU's way there. Other ranks are those of a lone mesh, so that
no byte leaves this one. Weights are cold, as they are when a step comes to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed.device_mesh import DeviceMesh
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from calibrate.measure_context import Context
from calibrate.measure_device import Work, device_of
from calibrate.measure_loop import measure_runs
from calibrate.measure_model import build_layer
from calibrate.measure_tensor_parallel import lone_grid, shard_layer
from calibrate.measure_tensors import torch_dtype
from calibrate.measuring import Outcome
from calibrate.model_shards import whole_layer
from calibrate.points import Upkeep, UpkeepPoint
from simulator.workload.load import load_model

_STATES = 4
"""Tensors of a parameter's size in training: weight, gradient and two moments of Adam."""


def measure_upkeep(point: UpkeepPoint, context: Context) -> Outcome:
    """Return the seconds of one kind of work on the parameters of the model's first layer.

    Raises:
        InputError: the model is unknown.
        TooLargeError: the layer does not fit in memory.
        UnsupportedError: a part that these modules do not have, or one that `tp` does not divide.
    """
    device = device_of(context.device)
    spec = load_model(point.model).spec
    layer, *_ = spec.layers()
    size = _STATES * layer.parameters / point.tp * torch_dtype(point.dtype).itemsize
    with device.active():
        grid = lone_grid(device.torch_device, dp=point.dp, tp=point.tp)
        layers = [_layer(point, device.torch_device, grid) for _ in range(device.copies(size))]
        works = [_MAKERS[point.work](layer, grid) for layer in layers]
        return measure_runs(device.repeated(works, capture=False), context.ranks, context.limits)


class Carrier(nn.Module):
    """Hands its input on; its backward pass yields gradients that hold nothing."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`."""
        carried: Tensor = _Carry.apply(x, *self.layer.parameters())  # type: ignore[no-untyped-call]
        return carried


class _Carry(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.save_for_backward(*parameters)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (*gradients, *(torch.empty_like(p) for p in ctx.saved_tensors))


def gather(layer: nn.Module, grid: DeviceMesh) -> Work:
    """Return one gather of a layer's parameters, which are let go of again."""
    model, given = _sharded(layer, grid), _input_of(layer)

    def run() -> None:
        with torch.no_grad():
            model(given)

    return run


def gathers_and_reduction(layer: nn.Module, grid: DeviceMesh) -> Work:
    """Return a gather in front of either pass, and the reduction of the gradients."""
    return _both_passes(_sharded(layer, grid))


def buckets(layer: nn.Module, grid: DeviceMesh) -> Work:
    """Return what DDP does with the gradients: into a bucket, scaled on the way, and back."""
    model = DistributedDataParallel(Carrier(layer), process_group=grid.get_group("dp"))
    # Behind a lambda: DDP compares annotations with types, and here they are texts.
    model.register_comm_hook(None, lambda _, bucket: _as_it_is(bucket))
    return _both_passes(model)


def update(layer: nn.Module, grid: DeviceMesh) -> Work:
    """Return one step of AdamW, as PyTorch fuses it, on the rank's share of the parameters."""
    model = _sharded(layer, grid) if grid["dp"].size() > 1 else layer
    kinds: dict[object, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
        kinds.setdefault(getattr(parameter, "device_mesh", None), []).append(parameter)
    optimizers = [torch.optim.AdamW(alike, fused=True) for alike in kinds.values()]

    def run() -> None:
        for optimizer in optimizers:
            optimizer.step()

    return run


_MAKERS: dict[Upkeep, Callable[[nn.Module, DeviceMesh], Work]] = {
    Upkeep.GATHER: gather,
    Upkeep.SHARDED: gathers_and_reduction,
    Upkeep.BUCKETS: buckets,
    Upkeep.UPDATE: update,
}


def _as_it_is(bucket: Any) -> Future[Tensor]:
    """Return a bucket at once: DDP takes no result of a backend that moves nothing."""
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future


def _both_passes(model: nn.Module) -> Work:
    given = _input_of(model).requires_grad_()

    def run() -> None:
        torch.autograd.backward(model(given).sum())
        for parameter in model.parameters():
            parameter.grad = None

    return run


def _input_of(model: nn.Module) -> Tensor:
    return torch.zeros(1, device=next(model.parameters()).device)


def _layer(point: UpkeepPoint, device: torch.device, grid: DeviceMesh) -> nn.Module:
    """Return the layer as one of `tp` ranks holds it."""
    spec, *_ = load_model(point.model).spec.layers()
    layer = build_layer(whole_layer(spec, point.tp)).to(device, torch_dtype(point.dtype))
    if point.tp > 1:
        shard_layer(layer, grid["tp"])
    return layer


def _sharded(layer: nn.Module, grid: DeviceMesh) -> nn.Module:
    """Return a model of one unit: below its root, so that a pass lets go of what it gathered."""
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(Carrier(layer))
    fully_shard(model[0], mesh=grid["dp"])
    fully_shard(model, mesh=grid["dp"])
    return model
