"""A transformer in plain PyTorch from its `ModelSpec`: embedding, layers, head; whole or a stage.

Module names are stable, so that plans for `parallelize_module`, FSDP2 and pipeline stages can
name them: `tok.tokens`, `layers.<n>.attn.{q,k,v,o}`, `layers.<n>.mlp.{gate,up,down}`,
`layers.<n>.norm1`, `layers.<n>.norm2`, `head.norm`, `head.output`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from calibrate.measure_blocks import build_layer, build_norm
from calibrate.model_shards import check_model
from simulator.errors import Problem, UnsupportedError
from simulator.workload.layer import LayerSpec
from simulator.workload.model import ModelSpec, Position

__all__ = ["Embedding", "Head", "TorchModel", "build_layer", "loss_of"]


class TorchModel(nn.Module):
    """The first `layers` layers of a model, or the stage of them from `start` up to `stop`.

    The first stage takes tokens `(batch, seq)`, others hidden states `(batch, seq, hidden)`; the
    last gives logits `(batch, seq, vocab)`, others hidden states. A tied output matrix is the
    embedding's own where one stage holds both, and a copy elsewhere.

    Raises:
        UnsupportedError: the model has a part that cannot be measured.
    """

    def __init__(
        self, spec: ModelSpec, layers: int | None = None, *, start: int = 0, stop: int | None = None
    ) -> None:
        super().__init__()
        check_model(spec)
        specs = _layers_of(spec, layers)
        stop = len(specs) if stop is None else stop
        assert 0 <= start <= stop <= len(specs), (start, stop, len(specs))
        self.tok = Embedding(spec) if start == 0 else None
        self.layers = nn.ModuleList(build_layer(layer) for layer in specs[start:stop])
        self.head = Head(spec) if stop == len(specs) else None
        self._tie(spec)
        if self.tok is not None and self.head is not None and len(specs) == spec.num_hidden_layers:
            held = sum(p.numel() for p in self.parameters())
            assert held == spec.parameters, (held, spec.parameters)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, or hidden states where the head is another stage's."""
        if self.tok is not None:
            x = self.tok(x)
        for layer in self.layers:
            x = layer(x)
        return x if self.head is None else self.head(x)

    def _tie(self, spec: ModelSpec) -> None:
        if spec.tie_word_embeddings and self.tok is not None and self.head is not None:
            self.head.output.weight = self.tok.tokens.weight


class Embedding(nn.Module):
    """Token embedding with learned positions and a norm where the model has them."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        width = spec.hidden_size
        self.tokens = nn.Embedding(spec.vocab_size, width)
        rows = spec.position_parameters // width
        self.positions = nn.Embedding(rows, width) if spec.position is Position.LEARNED else None
        own_norm = spec.embedding_norm
        self.norm = build_norm(spec.norm, width, bias=spec.norm_bias) if own_norm else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return hidden states `(batch, seq, hidden)` of tokens `(batch, seq)`."""
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        normed: Tensor = self.norm(x)
        return normed


class Head(nn.Module):
    """Final norm and output projection to logits."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        width, bias = spec.hidden_size, spec.norm_bias
        self.norm = build_norm(spec.norm, width, bias=bias) if spec.final_norm else nn.Identity()
        self.output = nn.Linear(width, spec.vocab_size, bias=spec.lm_head_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits `(batch, seq, vocab)` of hidden states `(batch, seq, hidden)`."""
        logits: Tensor = self.output(self.norm(x))
        return logits


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy in float32 of logits `(batch, seq, vocab)`."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def _layers_of(spec: ModelSpec, layers: int | None) -> tuple[LayerSpec, ...]:
    if layers is not None and not 1 <= layers <= spec.num_hidden_layers:
        rule = f"must be 1 to num_hidden_layers {spec.num_hidden_layers} of {spec.name}"
        raise UnsupportedError(Problem(key="layers", found=str(layers), rule=rule))
    return spec.layers()[:layers]
