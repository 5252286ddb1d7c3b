"""Models that torchtitan knows by name and flavor.

Source: torchtitan 0.3.0 models/*/__init__.py and config_registry.py; 0.2 for Llama 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.launch.comparing import plain_model, preset_of
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """One model of torchtitan's registry."""

    preset: str
    """The shipped model of the same shape."""
    name: str
    flavor: str
    config: str = ""
    """Of 0.3: the function of its config_registry; empty where there is none."""
    predicts: bool = True
    """Whether it has the preset's modules of multi-token prediction."""

    @property
    def spec(self) -> ModelSpec:
        """The model."""
        spec = load_model(self.preset).spec
        return spec if self.predicts else spec.model_copy(update={"num_nextn_predict_layers": 0})


FLAVORS = (
    Flavor(preset="llama3.2-1b", name="llama3", flavor="1B"),
    Flavor(preset="llama3.2-3b", name="llama3", flavor="3B"),
    Flavor(preset="llama3.1-8b", name="llama3", flavor="8B", config="llama3_8b"),
    Flavor(preset="llama3.1-70b", name="llama3", flavor="70B", config="llama3_70b"),
    Flavor(preset="llama3.1-405b", name="llama3", flavor="405B", config="llama3_405b"),
    Flavor(preset="qwen3-0.6b", name="qwen3", flavor="0.6B", config="qwen3_0_6b"),
    Flavor(preset="qwen3-1.7b", name="qwen3", flavor="1.7B", config="qwen3_1_7b"),
    Flavor(preset="qwen3-4b", name="qwen3", flavor="4B"),
    Flavor(preset="qwen3-8b", name="qwen3", flavor="8B"),
    Flavor(preset="qwen3-14b", name="qwen3", flavor="14B", config="qwen3_14b"),
    Flavor(preset="qwen3-32b", name="qwen3", flavor="32B", config="qwen3_32b"),
    Flavor(preset="qwen3-30b-a3b", name="qwen3", flavor="30B-A3B", config="qwen3_30b_a3b"),
    Flavor(preset="qwen3-235b-a22b", name="qwen3", flavor="235B-A22B"),
    Flavor(preset="deepseek-v2-lite", name="deepseek_v3", flavor="16B", config="deepseek_v3_16b"),
    Flavor(preset="deepseek-v2", name="deepseek_v3", flavor="236B"),
    Flavor(
        preset="deepseek-v3",
        name="deepseek_v3",
        flavor="671B",
        config="deepseek_v3_671b",
        predicts=False,
    ),
    Flavor(preset="gpt-oss-20b", name="gpt_oss", flavor="20b", config="gpt_oss_20b"),
    Flavor(preset="gpt-oss-120b", name="gpt_oss", flavor="120b", config="gpt_oss_120b"),
    Flavor(preset="llama4-scout", name="llama4", flavor="17bx16e"),
    Flavor(preset="llama4-maverick", name="llama4", flavor="17bx128e"),
)


def flavor_of(model: ModelSpec) -> Flavor | None:
    """Return the flavor of the same shape as `model`, None where there is none."""
    wanted = plain_model(model)
    preset = preset_of(model)
    near = [flavor for flavor in FLAVORS if preset is None or flavor.preset == preset]
    same = (flavor for flavor in near or FLAVORS if plain_model(flavor.spec) == wanted)
    return next(same, None)
