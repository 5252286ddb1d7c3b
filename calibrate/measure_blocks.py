"""One transformer layer in plain PyTorch, as its `LayerSpec` says: norms, attention, MLP.

Eager kernels, nothing fused by hand. Norms stand before their block; where a model has them
elsewhere (OLMo 2), the same kernels run in another order. Head counts are read off the weights'
local shapes, so a module whose weights DTensor shards works on its own heads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from calibrate.model_shards import check_layer, check_reach, local_layer
from simulator.workload.layer import AttentionSpec, LayerSpec, MlpSpec, Norm, QkNorm

ROPE_BASE = 10_000.0
"""Of the rotary frequencies (Su et al. 2021, section 3.4.2); it does not change the time."""
_SANDWICH = 4
"""Norms of a layer that normalises what a block reads and what it writes (Gemma 2)."""

_gelu_tanh = partial(functional.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
    "relu2": lambda x: functional.relu(x).square(),
    "silu": functional.silu,
}
"""By the names that Hugging Face gives them."""


def build_layer(spec: LayerSpec, tp: int = 1) -> Layer:
    """Return one layer as one of `tp` ranks holds it, without the collectives between them.

    Raises:
        UnsupportedError: a mixture of experts, latent attention or another part that these
            modules do not have, or heads or widths that `tp` does not divide.
    """
    check_layer(spec, tuple(ACTIVATIONS))
    local = local_layer(spec, tp)
    layer = Layer(local)
    held = sum(p.numel() for p in layer.parameters())
    assert held == local.parameters, (held, local)
    return layer


def build_norm(norm: Norm, width: int, *, bias: bool) -> nn.Module:
    """Return a norm over the last dimension of `(..., width)`."""
    match norm:
        case Norm.RMSNORM:
            return nn.RMSNorm(width)
        case Norm.LAYERNORM:
            return nn.LayerNorm(width, bias=bias)
        case Norm.NONPARAMETRIC:
            return nn.LayerNorm(width, elementwise_affine=False)


class Layer(nn.Module):
    """Attention and MLP with their norms and residual sums; `(batch, seq, hidden)` both ways."""

    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        norms = iter(
            build_norm(spec.norm, spec.hidden_size, bias=spec.norm_bias) for _ in range(spec.norms)
        )
        sandwich = spec.norms == _SANDWICH
        self.parallel = spec.parallel
        self.attn = Attention(spec.attention) if isinstance(spec.attention, AttentionSpec) else None
        self.mlp = Mlp(spec.mlp) if isinstance(spec.mlp, MlpSpec) else None
        self.norm1 = next(norms, nn.Identity())
        self.post_norm1 = next(norms) if sandwich else nn.Identity()
        self.norm2 = next(norms, nn.Identity())
        self.post_norm2 = next(norms) if sandwich else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the hidden states behind this layer."""
        if self.parallel:
            return self._side_by_side(x)
        if self.attn is not None:
            x = x + self.post_norm1(self.attn(self.norm1(x)))
        if self.mlp is not None:
            norm = self.norm1 if self.attn is None else self.norm2
            x = x + self.post_norm2(self.mlp(norm(x)))
        return x

    def _side_by_side(self, x: Tensor) -> Tensor:
        assert self.attn is not None
        assert self.mlp is not None
        normed = self.norm1(x)
        second = normed if isinstance(self.norm2, nn.Identity) else self.norm2(x)
        total: Tensor = x + self.attn(normed) + self.mlp(second)
        return total


class Attention(nn.Module):
    """Causal attention with grouped heads through `scaled_dot_product_attention`."""

    def __init__(self, spec: AttentionSpec) -> None:
        super().__init__()
        hidden, queries, keys = spec.hidden_size, spec.query_width, spec.key_value_width
        self.spec, self.head_dim = spec, spec.head_dim
        self.q = nn.Linear(hidden, queries, bias=spec.qkv_bias)
        self.k = nn.Linear(hidden, keys, bias=spec.qkv_bias)
        self.v = nn.Linear(hidden, keys, bias=spec.qkv_bias)
        self.o = nn.Linear(queries, hidden, bias=spec.output_bias)
        self.q_norm = _QueryKeyNorm(spec.qk_norm, spec.head_dim, queries)
        self.k_norm = _QueryKeyNorm(spec.qk_norm, spec.head_dim, keys)
        self._table: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return the output projection's result, the local heads' share of it."""
        check_reach(self.spec, x.shape[1])
        q, k, v = self.q_norm(self.q(x)), self.k_norm(self.k(x)), self._heads(self.v(x))
        q, k = self._heads(q), self._heads(k)
        if self.spec.rope:
            table = self._rope_table(q)
            q, k = _rotate(q, table), _rotate(k, table)
        grouped = q.shape[1] != k.shape[1]
        more: dict[str, Any] = (
            {"enable_gqa": True} if grouped else {}
        )  # torch 2.4 has no such argument
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, **more)
        out: Tensor = self.o(mixed.transpose(1, 2).flatten(2))
        return out

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)

    def _rope_table(self, q: Tensor) -> Tensor:
        """Return cosines and sines, `(2, seq, head_dim)`, made once a sequence length."""
        table, seq = self._table, q.shape[2]
        if table is None or (table.shape[1], table.dtype, table.device) != (seq, q.dtype, q.device):
            steps = torch.arange(0, self.head_dim, 2, device=q.device) / self.head_dim
            angles = torch.outer(torch.arange(seq, device=q.device), ROPE_BASE**-steps)
            angles = torch.cat((angles, angles), dim=-1)
            self._table = table = torch.stack((angles.cos(), angles.sin())).to(q.dtype)
        return table


class Mlp(nn.Module):
    """Up and down projections, gated or not."""

    def __init__(self, spec: MlpSpec) -> None:
        super().__init__()
        hidden, width = spec.hidden_size, spec.intermediate_size
        self.activation = ACTIVATIONS[spec.activation]
        self.gate = nn.Linear(hidden, width, bias=spec.bias) if spec.gated else None
        self.up = nn.Linear(hidden, width, bias=spec.bias)
        self.down = nn.Linear(width, hidden, bias=spec.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the down projection's result, the local channels' share of it."""
        if self.gate is None:
            inner = self.activation(self.up(x))
        else:
            inner = self.activation(self.gate(x)) * self.up(x)
        out: Tensor = self.down(inner)
        return out


class _QueryKeyNorm(nn.Module):
    """The norm of queries or keys, `(batch, seq, heads * head_dim)` both ways."""

    def __init__(self, kind: QkNorm, head_dim: int, width: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.by_head = kind in (QkNorm.PER_HEAD, QkNorm.NONPARAMETRIC)
        makers: dict[QkNorm, Callable[[], nn.Module]] = {
            QkNorm.NONE: nn.Identity,
            QkNorm.PER_HEAD: partial(nn.RMSNorm, head_dim),
            QkNorm.FULL_WIDTH: partial(nn.RMSNorm, width),
            QkNorm.NONPARAMETRIC: partial(nn.RMSNorm, head_dim, elementwise_affine=False),
        }
        self.norm = makers[kind]()

    def forward(self, x: Tensor) -> Tensor:
        """Return normalised channels, over a head's or all of them."""
        heads = x.view(*x.shape[:-1], -1, self.head_dim) if self.by_head else x
        normed: Tensor = self.norm(heads)
        return normed.view(x.shape)


def _rotate(x: Tensor, table: Tensor) -> Tensor:
    """Return `(batch, heads, seq, head_dim)` turned by its positions, as `rotate_half` does."""
    left, right = x.chunk(2, dim=-1)
    return x * table[0] + torch.cat((-right, left), dim=-1) * table[1]
