"""How the layers of a model are cut into the chunks of virtual stages, and these into segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import ceil
from typing import NamedTuple

from simulator.parallel.cut import Cut, Saver
from simulator.parallel.layout import (
    Recompute,
)
from simulator.parallel.matrices import layer_adapters, narrow_weights
from simulator.parallel.segments import Chunk, Layers, LayerWork, Section, Segment
from simulator.workload.job import Part
from simulator.workload.layer import AttentionSpec, LayerSpec
from simulator.workload.layer_order import layer_order
from simulator.workload.model import ModelSpec

_Alike = tuple[tuple[bool, bool], tuple[int, ...]]
"""What chunks that are alike have in common: whether the model begins and ends there, and the kinds
of their layers."""


class Cutter:
    """Cuts one model into chunks; equal layers with their works, and equal chunks, are one object.

    So they are across the layouts of a search, which can then look up what they cost by identity.
    """

    def __init__(self, model: ModelSpec) -> None:
        self.model = model
        self.kinds, self.order = layer_order(model)
        self._works: dict[tuple[object, ...], LayerWork] = {}
        self._layers: dict[tuple[tuple[int, int], ...], Layers] = {}
        self._wholes: dict[tuple[tuple[int, ...], Saver], Layers] = {}
        self._modules: dict[Recompute, tuple[LayerWork, int]] = {}
        self._layers_held: dict[tuple[object, ...], _Held] = {}
        self._chunks: dict[tuple[tuple[int, ...], Cut], tuple[Chunk, ...]] = {}

    def chunks(self, counts: tuple[int, ...], cut: Cut) -> tuple[Chunk, ...]:
        """Return the chunks of `counts` layers in model order."""
        found = self._chunks.get((counts, cut))
        if found is None:
            found = self._chunks[counts, cut] = tuple(self._cut(counts, cut))
        return found

    def sections(self, counts: tuple[int, ...], saver: Saver) -> tuple[Section, ...]:
        """Return what the passes over the same chunks run; of equal chunks one object."""
        places = tuple(self._alike(counts))
        shared = {alike: self._section(*alike, saver) for alike in set(places)}
        return tuple(shared[alike] for alike in places)

    def _section(self, ends: tuple[bool, bool], kinds: tuple[int, ...], saver: Saver) -> Section:
        embedding, head = ends
        return Section(
            layers=self._whole(kinds, saver),
            embedding=embedding,
            head=head,
            mtp=self._mtp(saver) if head else None,
        )

    def _cut(self, counts: tuple[int, ...], cut: Cut) -> Iterator[Chunk]:
        shared: dict[_Alike, Chunk] = {}
        for alike in self._alike(counts):
            if alike not in shared:
                shared[alike] = self._chunk(*alike, cut)
            yield shared[alike]

    def _alike(self, counts: tuple[int, ...]) -> Iterator[_Alike]:
        """Yield for each chunk what is the same of those that are alike."""
        start, last = 0, len(counts) - 1
        for index, count in enumerate(counts):
            yield (index == 0, index == last), self.order[start : start + count]
            start += count

    def _chunk(self, ends: tuple[bool, bool], kinds: tuple[int, ...], cut: Cut) -> Chunk:
        whole = self._segment(self._whole(kinds, cut.saver), ends, cut)
        return Chunk(whole=whole, cut=partial(self._segments, whole, kinds, ends, cut))

    def _whole(self, kinds: tuple[int, ...], saver: Saver) -> Layers:
        """Return the works of a chunk, counted; the same whatever ranks divide them."""
        key = (kinds, saver)
        found = self._wholes.get(key)
        if found is None:
            found = self._wholes[key] = self._counted(self._works_of(kinds, saver))
        return found

    def _works_of(self, kinds: tuple[int, ...], saver: Saver) -> list[LayerWork]:
        count = len(kinds)
        return [self._work(kind, number, count, saver) for number, kind in enumerate(kinds)]

    def _segments(
        self, whole: Segment, kinds: tuple[int, ...], ends: tuple[bool, bool], cut: Cut
    ) -> tuple[Segment, ...]:
        works, count = self._works_of(kinds, cut.saver), len(kinds)
        if cut.first_bucket is not None:
            return self._bucketed(whole, works, ends, cut, cut.first_bucket)
        held = whole.trained + whole.trained_experts
        buckets = ceil(held / cut.bucket) if cut.bucket else count
        pieces = min(count, buckets)
        if pieces <= 1:
            return (whole,)
        bounds = [count * i // pieces for i in range(pieces + 1)]
        alike: dict[tuple[int, bool, bool], Segment] = {}
        segments = []
        for i in range(pieces):
            layers = self._counted(works[bounds[i] : bounds[i + 1]])
            first, last = ends[0] and i == 0, ends[1] and i == pieces - 1
            key = (id(layers), first, last)
            if key not in alike:
                alike[key] = self._segment(layers, (first, last), cut)
            segments.append(alike[key])
        return tuple(segments)

    def _bucketed(
        self,
        whole: Segment,
        works: list[LayerWork],
        ends: tuple[bool, bool],
        cut: Cut,
        first_bucket: float,
    ) -> tuple[Segment, ...]:
        """Return the buckets of a chunk, which are filled from the head backwards.

        Its parts are the embedding, each layer and the head. A bucket closes once it holds as
        many parameters as its limit, which is another for the one that is ready first.
        """
        parts: list[tuple[list[LayerWork], tuple[bool, bool]]] = [
            *([([], (True, False))] if ends[0] else []),
            *(([work], (False, False)) for work in works),
            *([([], (False, True))] if ends[1] else []),
        ]
        segments: list[Segment] = []
        layers: list[LayerWork] = []
        embedding = head = False
        for own, (is_first, is_last) in reversed(parts):
            layers, embedding, head = own + layers, embedding or is_first, head or is_last
            segment = self._segment(self._counted(layers), (embedding, head), cut)
            limit = cut.bucket if segments else first_bucket
            if segment.trained + segment.trained_experts >= limit:
                segments.append(segment)
                layers, embedding, head = [], False, False
        if layers or embedding or head:
            segments.append(self._segment(self._counted(layers), (embedding, head), cut))
        return tuple(reversed(segments)) if segments[1:] else (whole,)

    def _work(self, kind: int, number: int, count: int, saver: Saver) -> LayerWork:
        """Return what is done about the activations of a layer, `number` of a chunk's `count`."""
        full = saver.recompute is Recompute.FULL
        start = number - number % saver.unit
        layers, more = divmod(count, saver.offloaded) if saver.offloaded else (1, 0)
        recompute = Recompute.NONE if full and number >= saver.recomputed else saver.recompute
        unit, holds_input = min(saver.unit, count - start), number == start
        offload = number < saver.offloaded
        window = max(1, layers + (number < more)) if offload else 1
        key = (kind, recompute, unit, holds_input, offload, window)
        found = self._works.get(key)
        if found is None:
            found = self._works[key] = LayerWork(
                layer=self.kinds[kind],
                recompute=recompute,
                unit=unit,
                holds_input=holds_input,
                offload=offload,
                window=window,
            )
        return found

    def _counted(self, works: list[LayerWork]) -> Layers:
        """Return distinct works with how often each occurs."""
        distinct = {id(work): work for work in works}
        counts = Counter(map(id, works))
        key = tuple(counts.items())
        found = self._layers.get(key)
        if found is None:
            found = self._layers[key] = tuple((distinct[i], n) for i, n in key)
        return found

    def _mtp(self, saver: Saver) -> tuple[LayerWork, int] | None:
        """Return the layer of the multi-token-prediction modules, and how many there are."""
        modules = self.model.num_nextn_predict_layers
        if not modules:
            return None
        if saver.recompute not in self._modules:
            work = LayerWork(layer=self.model.mtp_layer(), recompute=saver.recompute)
            self._modules[saver.recompute] = work, modules
        return self._modules[saver.recompute]

    def _held(self, layer: LayerSpec, cut: Cut) -> _Held:
        key = (id(layer), cut.ranks, cut.lora, cut.frozen)
        found = self._layers_held.get(key)
        if found is None:
            found = self._layers_held[key] = _layer(layer, cut)
        return found

    def _segment(self, layers: Layers, ends: tuple[bool, bool], cut: Cut) -> Segment:
        embedding, head = ends
        mtp = self._mtp(cut.saver) if head else None
        parts = [self._held(work.layer, cut).times(n) for work, n in layers]
        if embedding:
            parts.append(_embedding(self.model, cut))
        if head:
            parts.append(_head(self.model, cut))
        if mtp is not None:
            parts += _prediction(self.model, mtp[0].layer, mtp[1], cut)
        held = _added(parts)
        return Segment(
            layers=layers,
            embedding=embedding,
            head=head,
            parameters=held.parameters,
            expert_parameters=held.experts / cut.expert_ranks,
            frozen=held.frozen,
            frozen_experts=held.experts / cut.expert_ranks if Part.EXPERTS in cut.frozen else 0.0,
            narrow=held.narrow,
            narrow_experts=held.narrow_experts,
            mtp=mtp,
        )


class _Held(NamedTuple):
    """Parameters of one rank, as `Segment` has them; `experts` before they are spread."""

    parameters: float = 0.0
    experts: float = 0.0
    frozen: float = 0.0
    narrow: float = 0.0
    narrow_experts: float = 0.0

    def times(self, number: int) -> _Held:
        """Return the parameters of `number` parts that are alike."""
        return _Held(*(number * value for value in self))


def _added(parts: list[_Held]) -> _Held:
    return _Held(*map(sum, zip(_Held(), *parts, strict=True)))


def _layer(layer: LayerSpec, cut: Cut) -> _Held:
    adapters = layer_adapters(layer, cut.ranks, cut.lora)
    return _Held(
        parameters=layer_parameters(layer, cut.tp) + adapters,
        experts=layer.expert_parameters,
        frozen=_frozen_parameters(layer, cut),
        narrow=narrow_weights(layer, cut.ranks),
        narrow_experts=narrow_weights(layer, cut.ranks, routed=True),
    )


def _embedding(model: ModelSpec, cut: Cut) -> _Held:
    """Return the table, and what the embedding has besides (positions)."""
    own = model.embedding_parameters - model.vocab_size * model.hidden_size
    parameters = float(cut.vocab) * model.hidden_size + own
    return _Held(parameters=parameters, frozen=parameters * (Part.EMBEDDING in cut.frozen))


def _head(model: ModelSpec, cut: Cut) -> _Held:
    """Return the final norm and the output table, unless the embedding's serves for it."""
    table = 0.0 if cut.shares_table else float(cut.vocab) * model.hidden_size
    output = table + cut.vocab * model.lm_head_bias
    frozen = output * (Part.HEAD in cut.frozen)
    frozen += model.final_norm_parameters * (cut.lora is not None)
    return _Held(parameters=model.final_norm_parameters + output, frozen=frozen)


def _prediction(model: ModelSpec, layer: LayerSpec, modules: int, cut: Cut) -> list[_Held]:
    """Return the modules of multi-token prediction, and the embedding table that they may need."""
    projection, norms = model.mtp_projection_parameters / cut.tp, model.mtp_norm_parameters
    frozen = projection * (Part.MLP in cut.frozen) + norms * (cut.lora is not None)
    joint = _Held(parameters=projection + norms, frozen=frozen, narrow=projection)
    table = cut.mtp_table * float(cut.vocab) * model.hidden_size
    shared = _Held(parameters=table, frozen=table * (Part.EMBEDDING in cut.frozen))
    return [_layer(layer, cut).times(modules), joint.times(modules), shared]


def _frozen_parameters(layer: LayerSpec, cut: Cut) -> float:
    """Return the parameters of a layer that are not trained, adapters and experts apart.

    Beside adapters all are frozen; a frozen part is a block, not the norm in front of it.
    """
    whole = layer_parameters(layer, cut.tp)
    if cut.lora is not None or not cut.frozen:
        return whole if cut.lora is not None else 0.0
    attention = None if Part.ATTENTION in cut.frozen else layer.attention
    mlp = None if Part.MLP in cut.frozen else layer.mlp
    return whole - layer_parameters(replace(layer, attention=attention, mlp=mlp), cut.tp)


def mtp_parameters(model: ModelSpec, tp: int) -> float:
    """Return the parameters of a multi-token-prediction module on one of `tp` ranks.

    Routed experts apart, and without the embedding and the head that it shares. The projection is
    column parallel.
    """
    own = model.mtp_projection_parameters / tp + model.mtp_norm_parameters
    return layer_parameters(model.mtp_layer(), tp) + own


def local_vocab(vocab_size: int, divisible_by: int, tp: int) -> int:
    """Return the vocabulary rows of one tp rank after padding.

    >>> local_vocab(50257, 128, 8)
    6400
    """
    multiple = divisible_by * tp
    return ceil(vocab_size / multiple) * multiple // tp


def layer_parameters(layer: LayerSpec, tp: int) -> float:
    """Return the parameters of one layer on one of `tp` ranks, routed experts apart.

    Key-value heads are replicated where there are fewer of them than tp.
    """
    parameters = layer.sharded_parameters / tp + layer.replicated_parameters
    match layer.attention:
        case AttentionSpec() as attention if attention.num_key_value_heads < tp:
            kept = 1 / attention.num_key_value_heads - 1 / tp
            return parameters + attention.key_value_parameters * kept
        case _:
            return parameters
