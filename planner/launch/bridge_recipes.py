"""Recipes of Megatron-Bridge, and the shipped models that they train.

Source: Megatron-Bridge src/megatron/bridge/recipes/{llama,qwen,deepseek,gpt,gpt_oss,glm,gemma,
kimi}/__init__.py.
"""

from __future__ import annotations

import re

RECIPES = {
    "llama2-7b": "llama2_7b",
    "llama3-8b": "llama3_8b",
    "llama3-70b": "llama3_70b",
    "llama3.1-8b": "llama31_8b",
    "llama3.1-70b": "llama31_70b",
    "llama3.1-405b": "llama31_405b",
    "llama3.2-1b": "llama32_1b",
    "llama3.2-3b": "llama32_3b",
    "qwen2.5-0.5b": "qwen25_500m",
    "qwen2.5-1.5b": "qwen25_1p5b",
    "qwen2.5-7b": "qwen25_7b",
    "qwen2.5-14b": "qwen25_14b",
    "qwen2.5-32b": "qwen25_32b",
    "qwen2.5-72b": "qwen25_72b",
    "qwen3-0.6b": "qwen3_600m",
    "qwen3-1.7b": "qwen3_1p7b",
    "qwen3-4b": "qwen3_4b",
    "qwen3-8b": "qwen3_8b",
    "qwen3-14b": "qwen3_14b",
    "qwen3-32b": "qwen3_32b",
    "qwen3-30b-a3b": "qwen3_30b_a3b",
    "qwen3-235b-a22b": "qwen3_235b_a22b",
    "deepseek-v2-lite": "deepseek_v2_lite",
    "deepseek-v2": "deepseek_v2",
    "deepseek-v3": "deepseek_v3",
    "gpt-oss-20b": "gpt_oss_20b",
    "gpt-oss-120b": "gpt_oss_120b",
    "gpt3-175b": "gpt3_175b",
    "glm-4.5-air": "glm45_air_106b",
    "gemma2-2b": "gemma2_2b",
    "gemma2-9b": "gemma2_9b",
    "gemma2-27b": "gemma2_27b",
    "gemma3-1b": "gemma3_1b",
    "kimi-k2": "kimi_k2",
}
"""Shipped model -> stem of its recipes' names."""
_MODE = re.compile(r"(.+?)_(?:\d+k_|low_precision_)?pretrain(?:_.*)?_config(?:_\w+)?")


def recipe_of(preset: str) -> str | None:
    """Return the pre-training recipe of a shipped model, None where there is none.

    >>> recipe_of("qwen3-8b")
    'qwen3_8b_pretrain_config'
    """
    stem = RECIPES.get(preset)
    return stem and f"{stem}_pretrain_config"


def preset_of_recipe(recipe: str) -> str | None:
    """Return the shipped model that a pre-training recipe trains, None where there is none.

    >>> preset_of_recipe("llama3_8b_64k_pretrain_config")
    'llama3-8b'
    """
    found = _MODE.fullmatch(recipe)
    stem = found[1] if found else recipe
    return next((preset for preset, name in RECIPES.items() if name == stem), None)
