"""Passes over parts of a model that were timed by themselves, as a forecast looks them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from calibrate.fit_kernels import as_written
from calibrate.points import LayerPart, LayerPoint
from calibrate.predict_steps import model_of
from calibrate.records import Record
from simulator.hardware.software_constants import MeasuredPart, MeasuredPass
from simulator.workload.attention_blocks import AttentionSpec
from simulator.workload.mlp_blocks import MlpSpec
from simulator.workload.model import ModelSpec


def measured_passes(records: Iterable[Record]) -> Iterator[MeasuredPass]:
    """Yield each part of which both passes were measured, by as many ranks at once as there are.

    The more ranks of a host are busy, the more is it as in training. Repeats count as their median.
    """
    found: dict[LayerPoint, dict[bool, dict[int, list[float]]]] = {}
    for record in records:
        point = record.point
        if isinstance(point, LayerPoint) and record.seconds is not None:
            part = point.model_copy(update={"backward": False, "ranks": 1})
            times = found.setdefault(part, {}).setdefault(point.backward, {})
            times.setdefault(point.ranks, []).append(record.seconds)
    for point, passes in found.items():
        if len(passes) > 1 and point.part is not LayerPart.OPTIMIZER:
            forward, backward = (median(passes[way][max(passes[way])]) for way in (False, True))
            measured = _measured_pass(point, forward=forward, backward=backward)
            if measured is not None:
                yield measured


def _measured_pass(point: LayerPoint, *, forward: float, backward: float) -> MeasuredPass | None:
    """Return the times of a part; None for a layer of a kind that forecasts do not match."""
    model = model_of(point.model, None)
    sizes: dict[str, Any] | None = {"width": model.vocab_size}
    if point.part is LayerPart.LAYER:
        sizes = layer_sizes(model)
    if sizes is None:
        return None
    return MeasuredPass(
        part=MeasuredPart(point.part.value),
        hidden_size=model.hidden_size,
        micro_batch=point.micro_batch,
        seq=point.seq,
        tp=point.tp,
        precision=point.dtype,
        forward=as_written(forward),
        backward=as_written(backward),
        **sizes,
    )


def layer_sizes(model: ModelSpec) -> dict[str, Any] | None:
    """Return by what forecasts know a model's first layer; None for a kind that they do not."""
    layer = model.layers()[0]
    attention, mlp = layer.attention, layer.mlp
    if not isinstance(attention, AttentionSpec) or not isinstance(mlp, MlpSpec):
        return None
    return {
        "width": mlp.intermediate_size,
        "heads": attention.num_attention_heads,
        "kv_heads": attention.num_key_value_heads,
        "gated": mlp.gated,
    }
