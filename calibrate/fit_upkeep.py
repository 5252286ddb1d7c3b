"""What a layer's parameters were timed to cost beside its passes, as a forecast looks it up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from calibrate.fit_kernels import as_written
from calibrate.fit_passes import layer_sizes
from calibrate.model_shards import local_layer
from calibrate.points import Upkeep, UpkeepPoint
from calibrate.predict_steps import model_of
from calibrate.records import Record
from simulator.hardware.software_constants import MeasuredUpkeep

_GATHERS = 2
"""Of a unit that FSDP2 gathers for either pass."""


def measured_upkeep(records: Iterable[Record]) -> Iterator[MeasuredUpkeep]:
    """Yield what was measured of each layer, by as many ranks at once as there are.

    Repeats count as their median. A reduction is what both passes take together beyond their
    gathers.
    """
    found: dict[UpkeepPoint, dict[Upkeep, dict[int, list[float]]]] = {}
    for record in records:
        point = record.point
        if isinstance(point, UpkeepPoint) and record.seconds is not None:
            layer = point.model_copy(update={"work": Upkeep.UPDATE, "ranks": 1})
            times = found.setdefault(layer, {}).setdefault(point.work, {})
            times.setdefault(point.ranks, []).append(record.seconds)
    for layer, works in found.items():
        seconds = {work: median(times[max(times)]) for work, times in works.items()}
        if both := works.get(Upkeep.GATHER, {}).keys() & works.get(Upkeep.SHARDED, {}).keys():
            # One is taken from the other: they have to be of the same number of ranks.
            for work in (Upkeep.GATHER, Upkeep.SHARDED):
                seconds[work] = median(works[work][max(both)])
        else:
            seconds.pop(Upkeep.SHARDED, None)
        measured = _measured(layer, seconds)
        if measured is not None:
            yield measured


def _measured(point: UpkeepPoint, seconds: dict[Upkeep, float]) -> MeasuredUpkeep | None:
    """Return the times of a layer; None for one of a kind that forecasts do not match."""
    model = model_of(point.model, None)
    sizes = layer_sizes(model)
    if sizes is None:
        return None
    times = _times(seconds)
    return MeasuredUpkeep(
        hidden_size=model.hidden_size,
        tp=point.tp,
        dp=point.dp,
        precision=point.dtype,
        parameters=local_layer(model.layers()[0], point.tp).parameters,
        **sizes,
        **times,
    )


def _times(seconds: Mapping[Upkeep, float]) -> dict[str, Any]:
    """Return the fields of a record that were measured."""
    gather, both = seconds.get(Upkeep.GATHER), seconds.get(Upkeep.SHARDED)
    times: dict[str, float | None] = {
        "gather": gather,
        "reduce": None,
        "buckets": seconds.get(Upkeep.BUCKETS),
        "update": seconds.get(Upkeep.UPDATE),
    }
    if gather is not None and both is not None:
        times["reduce"] = max(0.0, both - _GATHERS * gather)
    return {name: as_written(value) for name, value in times.items() if value is not None}
