"""A model spread over ranks as PyTorch does it: DDP, FSDP2, DTensor tensor parallel, pipelining.

Nothing here is our own: a layout is put into torch's words, and what torch has no word for is
refused. Ranks are in Megatron's order: tp fastest, then dp, then pp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn.parallel import DistributedDataParallel

from calibrate.measure_context import Context
from calibrate.measure_model import TorchModel, loss_of
from calibrate.measure_tensor_parallel import shard_embedding, shard_head, shard_layer
from calibrate.points import StepPoint
from calibrate.predict_steps import model_of
from calibrate.step_support import check_step, stage_bounds
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ZERO_PARAMETERS, ScheduleName
from simulator.units import MIB
from simulator.workload.model import ModelSpec

_AXES = ("pp", "dp", "tp")
_DTYPES = {Dtype.FP32: torch.float32, Dtype.BF16: torch.bfloat16, Dtype.FP16: torch.float16}
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The parts of the model that this rank holds, wrapped for its data and tensor ranks."""

    point: StepPoint
    spec: ModelSpec
    mesh: DeviceMesh | None
    """Of `_AXES`; None for one rank."""
    stages: tuple[nn.Module, ...]
    """One a virtual stage of this rank, in model order."""
    device: torch.device

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What the optimizer of this rank updates."""
        return [p for stage in self.stages for p in stage.parameters()]


def spread_model(point: StepPoint, context: Context) -> Spread:
    """Return the model of a point on this rank.

    Raises:
        UnsupportedError: the layout or the model cannot be measured.
    """
    spec = model_of(point.model, point.layers)
    check_step(point, spec, context.world.size // point.ranks)
    layout = point.layout
    mesh = None
    if layout.world_size > 1:
        shape = (layout.pp, layout.dp, layout.tp)
        mesh = init_device_mesh(context.device.type, shape, mesh_dim_names=_AXES)
    torch.manual_seed(_SEED)
    own = mesh.get_local_rank("pp") if mesh is not None else 0
    bounds = stage_bounds(point, spec)[own :: layout.pp]
    stages = tuple(_stage(point, spec, bound, mesh, context.device) for bound in bounds)
    return Spread(point=point, spec=spec, mesh=mesh, stages=stages, device=context.device)


def run_step(spread: Spread) -> Callable[[], None]:
    """Return a function that runs one training step: all micro-batches, then the optimizer."""
    optimizers = _optimizers(spread.parameters)
    passes = _pipelined(spread) if spread.point.layout.pp > 1 else _accumulated(spread)
    around = loss_parallel if spread.point.layout.tp > 1 else nullcontext

    def step() -> None:
        with around():
            passes()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


def _optimizers(parameters: list[nn.Parameter]) -> list[torch.optim.Optimizer]:
    """Return one for each kind of parameter: a fused update takes no mixture of meshes."""
    kinds: dict[object, list[nn.Parameter]] = {}
    for parameter in parameters:
        mesh = parameter.device_mesh if isinstance(parameter, DTensor) else None
        kinds.setdefault(mesh, []).append(parameter)
    return [torch.optim.AdamW(alike, fused=True) for alike in kinds.values()]


def _stage(
    point: StepPoint,
    spec: ModelSpec,
    bound: tuple[int, int],
    mesh: DeviceMesh | None,
    device: torch.device,
) -> nn.Module:
    model = TorchModel(spec, start=bound[0], stop=bound[1])
    model = model.to(device=device, dtype=_DTYPES[point.job.precision])
    layout = point.layout
    if layout.tp > 1:
        assert mesh is not None
        _tensor_parallel(model, mesh["tp"])
    if layout.dp == 1:
        return model
    assert mesh is not None
    if layout.zero_stage == ZERO_PARAMETERS:
        for unit in (model.tok, *model.layers, model.head):
            if unit is not None:
                fully_shard(unit, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
        return model
    bucket = None if point.bucket_bytes is None else point.bucket_bytes / MIB
    return DistributedDataParallel(model, process_group=mesh.get_group("dp"), bucket_cap_mb=bucket)


def _tensor_parallel(model: TorchModel, mesh: DeviceMesh) -> None:
    for layer in model.layers:
        shard_layer(layer, mesh)
    if model.tok is not None:
        shard_embedding(model.tok, mesh)
    if model.head is not None:
        shard_head(model.head, mesh)


def _accumulated(spread: Spread) -> Callable[[], None]:
    """Return the passes over all micro-batches of a replica, one after another."""
    point, model = spread.point, spread.stages[0]
    count = point.layout.micro_batches(point.job.global_batch_size)
    batches = [_batch(spread, point.layout.micro_batch_size) for _ in range(count)]

    def passes() -> None:
        for number, (tokens, targets) in enumerate(batches):
            with _reduced_by(model, last=number == count - 1):
                torch.autograd.backward(loss_of(model(tokens), targets) / count)

    return passes


def _reduced_by(model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
    """DDP reduces gradients with the last micro-batch only; FSDP2 with each."""
    if isinstance(model, DistributedDataParallel) and not last:
        return _no_sync(model)
    return nullcontext()


@contextmanager
def _no_sync(model: DistributedDataParallel) -> Iterator[None]:
    with model.no_sync():
        yield


def _pipelined(spread: Spread) -> Callable[[], None]:
    from torch.distributed.pipelining import PipelineStage

    point, mesh = spread.point, spread.mesh
    assert mesh is not None
    layout, group, own = point.layout, mesh.get_group("pp"), mesh.get_local_rank("pp")
    count = layout.micro_batches(point.job.global_batch_size)
    stages = [
        PipelineStage(
            module, own + number * layout.pp, layout.virtual_stages, spread.device, group=group
        )
        for number, module in enumerate(spread.stages)
    ]
    schedule = _schedule(point, stages, count)
    tokens, targets = _batch(spread, layout.micro_batch_size * count)
    first, last = own == 0, own == layout.pp - 1

    def passes() -> None:
        with ExitStack() as stack:
            # A forward pass of DDP expects its gradients to be reduced; the schedule asks for that
            # itself, with the last micro-batch alone.
            for module in spread.stages:
                stack.enter_context(_reduced_by(module, last=False))
            schedule.step(*([tokens] if first else []), **({"target": targets} if last else {}))

    return passes


def _schedule(point: StepPoint, stages: list[Any], micro_batches: int) -> Any:
    from torch.distributed import pipelining

    match point.layout.effective_schedule:
        case ScheduleName.GPIPE:
            return pipelining.ScheduleGPipe(stages[0], micro_batches, loss_fn=loss_of)
        case ScheduleName.ONE_F_ONE_B:
            return pipelining.Schedule1F1B(stages[0], micro_batches, loss_fn=loss_of)
        case ScheduleName.INTERLEAVED:
            return pipelining.ScheduleInterleaved1F1B(stages, micro_batches, loss_fn=loss_of)
        case ScheduleName.LOOPED_BFS:
            return pipelining.ScheduleLoopedBFS(stages, micro_batches, loss_fn=loss_of)
        case other:
            raise AssertionError(f"check_step lets {other} pass")


def _batch(spread: Spread, sequences: int) -> tuple[Tensor, Tensor]:
    """Return made-up tokens and targets, `(sequences, seq)`; the same on all tensor ranks."""
    rank = 0 if spread.mesh is None else spread.mesh.get_local_rank("dp")
    maker = torch.Generator().manual_seed(_SEED + rank)
    shape = (sequences, spread.point.job.seq_length)
    draw = partial(torch.randint, spread.spec.vocab_size, shape, generator=maker)
    return draw().to(spread.device), draw().to(spread.device)
