"""How wide gradients of a Megatron-Bridge run are: what is written, and what is read."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from planner.launch import LaunchFile, Tool, export, import_files
from planner.launch.shell_script import read_script
from simulator.errors import InputError
from simulator.parallel.layout import ParallelLayout, Recompute, RecomputeModule
from tests.planner.launch.runs import scenario_with
from tests.planner.launch.test_other_tools import BRIDGE, OPTIONS

WIDE = {"gradient": "fp32", "reduce": "fp32"}
NARROW = "mixed_precision=null"


def overrides_of(layout: ParallelLayout, **job: Any) -> list[str]:
    """Return the overrides of an exported Llama 3.1 8B."""
    scenario = scenario_with("llama3.1-8b", "megatron-bridge", 2, **job)
    launch = export(scenario, layout, Tool.MEGATRON_BRIDGE)
    words = read_script(launch.files[0].text, "train.sh", {}).commands[-1].arguments
    return [word for word in words if "=" in word and not word.startswith("-")]


def words_of(**job: Any) -> list[str]:
    """Return those of the precision."""
    words = overrides_of(ParallelLayout(dp=16), **job)
    return [word for word in words if word.startswith("mixed_precision")]


def read(precision: str, recipe: str = "qwen3_30b_a3b_pretrain_config") -> tuple[Any, str]:
    """Return formats that a script says otherwise than the stack, and its head of notes."""
    text = BRIDGE.replace("mixed_precision=bf16_with_fp8_current_scaling_mixed", precision)
    text = text.replace("qwen3_30b_a3b_pretrain_config", recipe)
    assert text != BRIDGE
    options = replace(OPTIONS, nodes=None)
    scenario = import_files([LaunchFile(name="train.sh", text=text)], options).scenario
    return tomllib.loads(scenario)["job"].get("dtypes"), scenario


def test_a_name_is_written_where_it_has_the_gradients_of_the_job() -> None:
    assert words_of(dtypes={"gradient": "fp32", "reduce": "fp32"}) == ["mixed_precision=bf16_mixed"]


def test_narrow_gradients_are_written_as_an_object_since_a_name_would_widen_them() -> None:
    assert words_of() == [
        NARROW,
        "mixed_precision={_target_:megatron.bridge.training.mixed_precision.MixedPrecisionConfig,"
        "bf16:true,params_dtype:{_target_:torch.bfloat16,_call_:false},"
        "pipeline_dtype:{_target_:torch.bfloat16,_call_:false},grad_reduce_in_fp32:false}",
    ]


def test_parameters_in_fp8_that_no_name_has_are_written() -> None:
    job = {"precision": "fp8", "recipe": "tensorwise", "fp8_parameters": False, "dtypes": WIDE}
    assert "fp8_param_gather:false" in words_of(**job)[1]


def test_hydra_itself_reads_what_is_written() -> None:
    loader = pytest.importorskip(
        "hydra._internal.config_loader_impl", reason="needs Hydra: make frameworks"
    )
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser")
    omegaconf = pytest.importorskip("omegaconf").OmegaConf
    uneven = ParallelLayout(
        pp=2,
        dp=8,
        layers_per_stage=(14, 18),
        recompute=Recompute.SELECTIVE,
        recompute_modules=(RecomputeModule.LAYERNORM,),
    )
    words = [word for word in overrides_of(uneven) if "$" not in word]
    assert len(parser.OverridesParser.create().parse_overrides(words)) == len(words)
    for recipe in ("bf16_mixed", {"bf16": True, "grad_reduce_in_fp32": True}):
        config = omegaconf.create({"mixed_precision": recipe})
        omegaconf.set_struct(config, True)
        overrides = parser.OverridesParser.create().parse_overrides(words_of())
        loader.ConfigLoaderImpl._apply_overrides_to_config(overrides, config)
        found = omegaconf.to_container(config)["mixed_precision"]
        assert found["grad_reduce_in_fp32"] is False
        assert found["params_dtype"] == {"_target_": "torch.bfloat16", "_call_": False}


def test_a_name_has_gradients_in_fp32_whatever_ddp_says() -> None:
    dtypes, text = read("mixed_precision=bf16_mixed ddp.grad_reduce_in_fp32=false")
    assert dtypes == WIDE
    assert "ddp.grad_reduce_in_fp32=false has no effect" in text


@pytest.mark.parametrize(
    "precision",
    [
        f"{NARROW} 'mixed_precision={{bf16: true, grad_reduce_in_fp32: false}}'",
        "mixed_precision.grad_reduce_in_fp32=false",
    ],
)
def test_an_object_has_the_gradients_that_it_says(precision: str) -> None:
    assert read(precision)[0] is None


def test_without_a_precision_it_is_that_of_the_recipe_in_the_library() -> None:
    assert read("")[0] == WIDE
    assert read("", "deepseek_v3_pretrain_config")[0] is None


def test_a_field_of_a_name_is_refused_as_hydra_does() -> None:
    with pytest.raises(InputError, match="Hydra refuses to set one"):
        read("mixed_precision=bf16_mixed mixed_precision.grad_reduce_in_fp32=false")


def test_a_field_that_is_not_modelled_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"mixed_precision\.fp8_dot_product_attention: is not"):
        read("mixed_precision.fp8_dot_product_attention=true")
