"""What a row recomputes or keeps on the host, from the words of its `recompute` column."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calibrate.validation.cells import Row
from calibrate.validation.practices import recomputed_modules
from simulator.parallel.layout import Recompute, RecomputeModule

_OFFLOADED = re.compile(r"[;,]?\s*(?:cpu )?activation offload(?:ing)?\s*(?:of )?(\d+) layers", re.I)
_UNSET = re.compile(r"(\w*GRANULARITY|ACG)=(null|none)\b.*", re.I)
_SET = re.compile(r"(\w*GRANULARITY|ACG)=", re.I)
_NONE = re.compile(r"none|false|off|no", re.I)
_FULL = re.compile(r"full(\s*\((uniform, )?1 layer\)|\s*\(all layers\)|\s*\(every layer\))?", re.I)
_BLOCKS = re.compile(r"full\s*[(:,]\s*block,?\s*(\d+) layers?\)?", re.I)
_SELECTIVE = re.compile(r"selective(?:\s*[:(]\s*(?P<modules>.*?)\)?)?", re.I)
_REMAT = re.compile(r"custom remat: save_dot_except_mlp.*", re.I)
"""MaxText keeps all products but those of the MLP."""
_JOINTS = re.compile(r"\s*(?:\+|,|;|\band\b)\s*")
_MODULES = {
    "core_attn": RecomputeModule.CORE_ATTENTION,
    "attention": RecomputeModule.CORE_ATTENTION,
    "layernorm": RecomputeModule.LAYERNORM,
    "norm": RecomputeModule.LAYERNORM,
    "rmsnorm": RecomputeModule.LAYERNORM,
    "moe_act": RecomputeModule.MOE_ACTIVATION,
    "act": RecomputeModule.MOE_ACTIVATION,
    "mla_up_proj": RecomputeModule.MLA_UP_PROJECTION,
    "mla_up_projections": RecomputeModule.MLA_UP_PROJECTION,
    "shared_expert": RecomputeModule.SHARED_EXPERTS,
    "shared_experts": RecomputeModule.SHARED_EXPERTS,
    "mlp": RecomputeModule.MLP,
    "moe": RecomputeModule.MOE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Savers:
    """The parts of a layout that save memory."""

    recompute: Recompute = Recompute.NONE
    modules: tuple[RecomputeModule, ...] = ()
    layers: int | None = None
    """Of each virtual stage, with full recomputation of some layers."""
    offload_layers: int = 0
    """Of each virtual stage."""
    optimizer_offload: float = 0.0
    """Share of the optimizer that lives on the host."""


def savers_of(row: Row) -> Savers:
    """Return what a row recomputes and offloads.

    >>> savers = savers_of(Row({"recompute": "selective: layernorm+moe_act"}))
    >>> [str(module) for module in savers.modules]
    ['layernorm', 'moe_act']
    >>> savers_of(Row({"recompute": "none; CPU activation offload 40 layers"})).offload_layers
    40
    """
    host = 1.0 if re.search(r"offload", row.text("optimizer"), re.I) else 0.0
    text = row.text("recompute")
    if not text:
        return _unsaid(row, host)
    offloaded = _OFFLOADED.search(text)
    text = _OFFLOADED.sub("", text).strip()
    layers = int(offloaded[1]) if offloaded else 0
    text = "none" if _UNSET.fullmatch(text) else _SET.sub("", text)
    recompute, modules, blocks = _recompute(row, text)
    return Savers(
        recompute=recompute,
        modules=modules,
        layers=blocks,
        offload_layers=layers,
        optimizer_offload=host,
    )


def _unsaid(row: Row, optimizer_offload: float) -> Savers:
    modules = recomputed_modules(row)
    kind = Recompute.SELECTIVE if modules else Recompute.NONE
    row.assume(f"recompute = {kind}" + "".join(f" {module}" for module in modules))
    return Savers(recompute=kind, modules=modules, optimizer_offload=optimizer_offload)


def _recompute(row: Row, text: str) -> tuple[Recompute, tuple[RecomputeModule, ...], int | None]:
    if _NONE.fullmatch(text):
        return Recompute.NONE, (), None
    if _REMAT.fullmatch(text):
        return Recompute.SELECTIVE, (RecomputeModule.MLP,), None
    if match := _BLOCKS.fullmatch(text):
        return Recompute.FULL, (), int(match[1])
    if _FULL.fullmatch(text):
        return Recompute.FULL, (), None
    if match := _SELECTIVE.fullmatch(text):
        return Recompute.SELECTIVE, _modules(row, match["modules"] or ""), None
    raise row.bad("recompute", "none, full or selective with Megatron-LM's modules")


def _modules(row: Row, text: str) -> tuple[RecomputeModule, ...]:
    """Return the modules that a text names; none is the attention core alone."""
    words = [re.sub(r"[ -]", "_", word.strip().lower()) for word in _JOINTS.split(text)]
    found = [word for word in words if word]
    if any(word not in _MODULES for word in found):
        raise row.bad("recompute", "a list of " + ", ".join(_MODULES))
    modules = tuple(dict.fromkeys(_MODULES[word] for word in found))
    return () if modules == (RecomputeModule.CORE_ATTENTION,) else modules
