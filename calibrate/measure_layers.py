"""Measures one part of a model by itself: a layer, an end of the model, or a layer's update.

Eager PyTorch, each kernel launched by the CPU, so that small parts show what launching costs.
Parameters, activations and gradients have the point's format; none of them is kept in float32
beside it. With `tp` the part is one rank's share, as DTensors on a mesh of `tp` ranks that this
one is alone on: what DTensor does on the CPU counts, collectives included; no byte goes to another
rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import loss_parallel

from calibrate.measure_context import Context
from calibrate.measure_device import Work, device_of
from calibrate.measure_loop import measure_runs
from calibrate.measure_model import Embedding, Head, build_layer, loss_of
from calibrate.measure_tensor_parallel import (
    lone_mesh,
    shard_embedding,
    shard_head,
    shard_layer,
)
from calibrate.measure_tensors import torch_dtype
from calibrate.measuring import Outcome
from calibrate.model_shards import check_model, whole_layer
from calibrate.points import LayerPart, LayerPoint
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.accelerator import Dtype
from simulator.parallel.chunks import local_vocab
from simulator.workload.layer import LayerSpec
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec

_DTYPES = (Dtype.FP32, Dtype.TF32, Dtype.BF16, Dtype.FP16)
"""Formats that whole modules run in; narrower ones only multiply."""


def measure_layer(point: LayerPoint, context: Context) -> Outcome:
    """Return the seconds of one pass over a part, or of one update of a layer's parameters.

    The part is the model's first layer, or its end. The backward pass yields the gradients of the
    parameters and of the input, as new tensors: they are not added to others.

    Raises:
        InputError: the model is unknown.
        TooLargeError: the part and what it keeps do not fit in memory.
        UnsupportedError: a part that these modules do not have, or one that `tp` does not divide.
    """
    _check(point)
    device = device_of(context.device)
    torch.set_float32_matmul_precision("high" if point.dtype is Dtype.TF32 else "highest")
    with device.active():
        work = work_of(point, device.torch_device)
        run = device.repeated([work], capture=False)
        return measure_runs(run, context.ranks, context.limits)


def work_of(point: LayerPoint, device: torch.device) -> Work:
    """Return what runs a part once: forward, backward alone, or the optimizer."""
    part = _PARTS[point.part](point, load_model(point.model).spec)
    part = part.to(device, torch_dtype(point.dtype))
    if point.part is LayerPart.OPTIMIZER:
        return _update(part)
    if point.tp == 1:
        return _backward(part) if point.backward else part.forward
    part.shard(part.module, lone_mesh(device, point.tp))
    with loss_parallel():
        work = _backward(part) if point.backward else part.forward
    return _with_cut_loss(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A module with an input, and what makes the output that gradients start from."""

    module: nn.Module
    shard: Callable[[Any, DeviceMesh], None]
    """Makes DTensors of its weights."""
    given: Tensor
    """Tokens `(batch, seq)` or hidden states `(batch, seq, hidden)`, which need gradients."""
    targets: Tensor | None = None
    """Tokens that the head is to predict; None: the output is the module's own."""

    @property
    def inputs(self) -> list[Tensor]:
        """What the backward pass finds gradients of."""
        first = [self.given] if self.given.requires_grad else []
        return [*first, *self.module.parameters()]

    def to(self, device: torch.device, dtype: torch.dtype) -> Part:
        """Return the part on a device; tokens stay whole numbers."""
        given = self.given.to(device)
        if given.is_floating_point():
            given = given.to(dtype).requires_grad_()
        targets = None if self.targets is None else self.targets.to(device)
        module = self.module.to(device, dtype)
        return replace(self, module=module, given=given, targets=targets)

    def forward(self) -> Tensor:
        """Return the output, with what its backward pass needs."""
        output: Tensor = self.module(self.given)
        if isinstance(output, AsyncCollectiveTensor):
            output.wait()  # The next part would; what wait() returns has no gradient.
        return output if self.targets is None else loss_of(output, self.targets)


def _backward(part: Part) -> Work:
    """Return the gradients of one forward pass that has been run already."""
    output, inputs = part.forward(), part.inputs
    gradient = torch.ones_like(output)
    return lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True)


def _with_cut_loss(work: Work) -> Work:
    """Return work that runs where the loss finds logits cut over the vocabulary."""

    def run() -> object:
        with loss_parallel():
            return work()

    return run


def _update(part: Part) -> Work:
    """Return one step of AdamW as PyTorch fuses it, on gradients that stay."""
    for parameter in part.module.parameters():
        parameter.grad = torch.randn_like(parameter)
    step: Work = torch.optim.AdamW(part.module.parameters(), fused=True).step
    return step


def _layer(point: LayerPoint, spec: ModelSpec) -> Part:
    layer, *_ = spec.layers()
    module = _before_the_cut(layer, point.tp)
    return Part(module=module, shard=shard_layer, given=_hidden(point, spec))


def _before_the_cut(spec: LayerSpec, tp: int) -> nn.Module:
    """Return a whole layer but for norms of queries and keys, which no rank cuts."""
    layer, share = build_layer(whole_layer(spec, tp)), build_layer(spec, tp)
    if layer.attn is not None and share.attn is not None:
        layer.attn.q_norm, layer.attn.k_norm = share.attn.q_norm, share.attn.k_norm
    return layer


def _share_of_layer(point: LayerPoint, spec: ModelSpec) -> Part:
    layer, *_ = spec.layers()
    return Part(module=build_layer(layer, point.tp), shard=shard_layer, given=_hidden(point, spec))


def _embedding(point: LayerPoint, spec: ModelSpec) -> Part:
    even = _with_even_vocab(point, spec)
    return Part(module=Embedding(even), shard=shard_embedding, given=_tokens(point, even))


def _head(point: LayerPoint, spec: ModelSpec) -> Part:
    even = _with_even_vocab(point, spec)
    module, targets = Head(even), _tokens(point, even)
    return Part(module=module, shard=shard_head, given=_hidden(point, spec), targets=targets)


_PARTS: dict[LayerPart, Callable[[LayerPoint, ModelSpec], Part]] = {
    LayerPart.LAYER: _layer,
    LayerPart.EMBEDDING: _embedding,
    LayerPart.HEAD: _head,
    LayerPart.OPTIMIZER: _share_of_layer,
}


def _with_even_vocab(point: LayerPoint, spec: ModelSpec) -> ModelSpec:
    """Return the model with a vocabulary of which each rank has as many rows."""
    check_model(spec)
    rows = point.tp * local_vocab(spec.vocab_size, 1, point.tp)
    return spec.model_copy(update={"vocab_size": rows})


def _hidden(point: LayerPoint, spec: ModelSpec) -> Tensor:
    return torch.randn(point.micro_batch, point.seq, spec.hidden_size)


def _tokens(point: LayerPoint, spec: ModelSpec) -> Tensor:
    return torch.randint(spec.vocab_size, (point.micro_batch, point.seq))


def _check(point: LayerPoint) -> None:
    problems: list[Problem] = []
    if point.dtype not in _DTYPES:
        fix = "use " + ", ".join(_DTYPES)
        rule = "no module runs in this format"
        problems.append(Problem(key="dtype", found=point.dtype, rule=rule, fix=fix))
    if point.backward and point.part is LayerPart.OPTIMIZER:
        rule = "an update has no backward pass"
        problems.append(Problem(key="backward", found="true", rule=rule, fix="use false"))
    if problems:
        raise UnsupportedError(*problems)
