"""The precision of a run of Megatron-Bridge: a name, or an object where no name says it.

The precision also sets how wide gradients are reduced and kept, whatever the section `ddp` says of
it (`MixedPrecisionConfig.setup`): fp32 where a name begins with bf16, as in the recipes of the
library, and bf16 in NVIDIA's recipes for performance, which change the object. On a command line an
object is one that Hydra makes of a table; `null` before it takes out what the recipe has.

Source: Megatron-Bridge src/megatron/bridge/training/mixed_precision.py, recipes/common.py
(`_pretrain_common`), recipes/deepseek/deepseek_v3.py, scripts/performance/configs, and
training/utils/omegaconf_utils.py (`_apply_overrides`: a table with `_target_` is instantiated).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.launch.hydra_table import TARGET, parse_table, parse_value, spell_table
from planner.launch.records import BF16_BYTES, Run
from simulator.hardware.accelerator import Dtype
from simulator.parallel.numbers import with_dtypes
from simulator.workload.job import Recipe, TrainingJob

KEY = "mixed_precision"
WIDE = "grad_reduce_in_fp32"
_OBJECT = "megatron.bridge.training.mixed_precision.MixedPrecisionConfig"
_BF16: dict[str, Any] = {
    "bf16": True,
    "params_dtype": "torch.bfloat16",
    "pipeline_dtype": "torch.bfloat16",
    WIDE: True,
}
_DEFAULT = "bf16_mixed"
NAMED: Mapping[str, Mapping[str, Any]] = {
    _DEFAULT: _BF16,
    "fp16_mixed": {
        "fp16": True,
        "params_dtype": "torch.half",
        "pipeline_dtype": "torch.half",
        WIDE: False,
    },
    "bf16_with_fp8_delayed_scaling_mixed": {
        **_BF16,
        "fp8": "hybrid",
        "fp8_recipe": "delayed",
        "fp8_amax_history_len": 1024,
        "fp8_amax_compute_algo": "max",
        "fp8_param_gather": True,
    },
    "bf16_with_fp8_current_scaling_mixed": {
        **_BF16,
        "fp8": "hybrid",
        "fp8_recipe": "tensorwise",
        "first_last_layers_bf16": True,
        "num_layers_at_start_in_bf16": 1,
        "num_layers_at_end_in_bf16": 1,
        "fp8_param_gather": True,
    },
    "bf16_with_fp8_subchannel_scaling_mixed": {
        **_BF16,
        "fp8": "hybrid",
        "fp8_recipe": "blockwise",
        "fp8_param_gather": False,
    },
    "bf16_with_mxfp8_mixed": {
        **_BF16,
        "fp8": "e4m3",
        "fp8_recipe": "mxfp8",
        "fp8_param_gather": True,
        "reuse_grad_buf_for_mxfp8_param_ag": True,
    },
    "bf16_with_nvfp4_mixed": {**_BF16, "fp4": "e2m1", "fp4_recipe": "nvfp4"},
}
"""Name -> fields that are not the object's defaults."""
_NARROW_RECIPES = ("deepseek_v3",)
"""Beginnings of recipes of the library whose own precision reduces gradients in bf16."""
_MEANT = {"fp8": "fp8_format", "fp4": "fp4_format"}
"""Field -> Megatron-LM's argument, where they differ."""
_FOLLOWED = ("fp16", "bf16", "fp8", "fp8_recipe", "fp8_param_gather", "fp4", "fp4_recipe", WIDE)
_ENDS = "first_last_layers_bf16"
_WITHOUT_EFFECT = (
    "params_dtype",
    "pipeline_dtype",
    "autocast_dtype",
    "autocast_enabled",
    "fp8_margin",
    "fp8_amax_history_len",
    "fp8_amax_compute_algo",
    "fp8_wgrad",
    "fp8_param",
    "reuse_grad_buf_for_mxfp8_param_ag",
    "loss_scale",
    "initial_loss_scale",
    "min_loss_scale",
    "loss_scale_window",
    "hysteresis",
    "num_layers_at_start_in_bf16",
    "num_layers_at_end_in_bf16",
)
"""Fields that change no forecast, or only together with others that do."""
ENDS_IN_BF16 = "the first and the last layer compute in bf16; the forecast has fp8 in all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """What overrides say of the precision."""

    settings: Mapping[str, Any]
    """In Megatron-LM's arguments; what is not understood keeps its name."""
    notes: tuple[str, ...] = ()
    wrong: tuple[tuple[str, str], ...] = ()
    """Keys with the rule that they break."""


def precision_words(run: Run) -> list[str]:
    """Return the overrides that give a run its precision."""
    name = _nearest(run.job)
    if name not in NAMED:
        return [f"{KEY}={name}"]
    fields = dict(NAMED[name]) | {WIDE: is_wide(run)}
    if run.job.precision is Dtype.FP8:
        fields["fp8_param_gather"] = run.job.fp8_parameters
        if "reuse_grad_buf_for_mxfp8_param_ag" in fields:
            fields["reuse_grad_buf_for_mxfp8_param_ag"] = run.job.fp8_parameters
    if fields == NAMED[name]:
        return [f"{KEY}={name}"]
    return [f"{KEY}=null", f"{KEY}={spell_table({TARGET: _OBJECT, **fields})}"]


def is_wide(run: Run) -> bool:
    """Return whether a run reduces gradients in fp32."""
    return with_dtypes(run.stack, run.job).numerics.gradient_bytes > BF16_BYTES


def ends_in_bf16(job: TrainingJob) -> bool:
    """Return whether the precision of a job leaves the first and the last layer in bf16."""
    return bool(NAMED.get(_nearest(job), {}).get(_ENDS))


def read_precision(values: Mapping[str, Any], recipe: str) -> Precision:
    """Return what overrides, taken out of all `values`, say of the precision of a recipe."""
    text = str(values.get(KEY) or values.get("precision_config") or "").strip("'\"")
    own = {n.partition(".")[2]: v for n, v in values.items() if n.startswith(f"{KEY}.")}
    notes: list[str] = []
    wrong: list[tuple[str, str]] = []
    name = text.replace("-", "_")
    if text.startswith("{"):
        fields = parse_table(text)
    elif text and name not in NAMED:
        return Precision(settings={KEY: text})
    else:
        fields = dict(NAMED[name or _DEFAULT])
        if text and own:
            rule = f"a name such as {text} has no fields, and Hydra refuses to set one"
            wrong += [(f"{KEY}.{key}", rule) for key in own]
        if not text:
            fields[WIDE] = not recipe.startswith(_NARROW_RECIPES)
            notes.append(f"{KEY} is not overridden: taken as {_width(fields)}, as in the library")
    fields |= {key: parse_value(str(value)) for key, value in own.items()}
    asked = values.get(WIDE)
    if asked is not None and parse_value(str(asked).lower()) != fields.get(WIDE, True):
        notes.append(f"ddp.{WIDE}={asked} has no effect: {KEY} makes it {_width(fields)}")
    if fields.get(_ENDS):
        notes.append(ENDS_IN_BF16)
    return Precision(settings=dict(_arguments(fields)), notes=tuple(notes), wrong=tuple(wrong))


def _arguments(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if name in _FOLLOWED and name != WIDE:
            yield _MEANT.get(name, name), value
        elif name not in (*_FOLLOWED, *_WITHOUT_EFFECT, _ENDS, TARGET):
            yield f"{KEY}.{name}", value
    wide = fields.get(WIDE, True)
    if fields.get("fp16"):
        yield "accumulate_allreduce_grads_in_fp32", wide
    else:
        yield "grad_reduce_in_bf16", not wide


def _width(fields: Mapping[str, Any]) -> str:
    return "gradients in fp32" if fields.get(WIDE, True) else "gradients in 16 bits"


def _nearest(job: TrainingJob) -> str:
    """Return the name of a precision; that of a scaling which has none says it all the same."""
    if job.precision is Dtype.FP4:
        return "bf16_with_nvfp4_mixed"
    if job.precision is not Dtype.FP8:
        return f"{job.precision}_mixed"
    recipe = job.effective_recipe or Recipe.DELAYED
    for name, fields in NAMED.items():
        if fields.get("fp8_recipe") == recipe.value:
            return name
    return f"bf16_with_fp8_{recipe}_mixed"
