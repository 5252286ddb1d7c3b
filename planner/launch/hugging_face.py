"""A model as a Hugging Face config.json, for frameworks that build it with transformers.

Each entry writes what one architecture can say; the first that is read back as the same model
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.launch.comparing import plain_model
from simulator.errors import InputError, Problem, UnsupportedError
from simulator.workload.hf_config import parse_config
from simulator.workload.model import ModelSpec

_COMMON = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "tie_word_embeddings",
)


def config_of(model: ModelSpec, where: str) -> dict[str, Any]:
    """Return the config.json of a model.

    Raises:
        UnsupportedError: none of the architectures that are written says it.
    """
    wanted = plain_model(model)
    for write in _WRITERS.values():
        config = {key: value for key, value in write(model).items() if value is not None}
        try:
            found = parse_config(config, where).spec
        except InputError:
            continue
        if plain_model(found) == wanted:
            return config
    raise UnsupportedError(
        Problem(
            where=where,
            key="model",
            found=model.name,
            rule=f"is none of the architectures {', '.join(_WRITERS)} of transformers",
            fix="--tool megatron-lm, which takes any sizes",
        )
    )


def _shared(model: ModelSpec, kind: str, architecture: str) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": kind,
        **{name: getattr(model, name) for name in _COMMON},
        "head_dim": None if model.mla else model.head_dim,
        "hidden_act": model.activation,
    }


def _llama(model: ModelSpec) -> dict[str, Any]:
    biases = {"attention_bias": model.attention_bias, "mlp_bias": model.mlp_bias}
    return _shared(model, "llama", "LlamaForCausalLM") | biases


def _qwen2(model: ModelSpec) -> dict[str, Any]:
    return _shared(model, "qwen2", "Qwen2ForCausalLM") | {"use_sliding_window": False}


def _qwen3(model: ModelSpec) -> dict[str, Any]:
    more = {"use_sliding_window": False, "attention_bias": model.attention_bias}
    return _shared(model, "qwen3", "Qwen3ForCausalLM") | more


def _mistral(model: ModelSpec) -> dict[str, Any]:
    return _shared(model, "mistral", "MistralForCausalLM") | {
        "sliding_window": model.sliding_window
    }


def _mixtral(model: ModelSpec) -> dict[str, Any]:
    experts = (
        {
            "num_local_experts": model.moe.num_experts,
            "num_experts_per_tok": model.moe.num_experts_per_tok,
            "intermediate_size": model.moe.moe_intermediate_size,
        }
        if model.moe
        else {}
    )
    return _shared(model, "mixtral", "MixtralForCausalLM") | {"sliding_window": None} | experts


def _gpt2(model: ModelSpec) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": model.hidden_size,
        "n_layer": model.num_hidden_layers,
        "n_head": model.num_attention_heads,
        "n_inner": model.intermediate_size,
        "n_positions": model.learned_positions or model.max_position_embeddings,
        "vocab_size": model.vocab_size,
        "activation_function": model.activation,
        "tie_word_embeddings": model.tie_word_embeddings,
    }


_WRITERS: Mapping[str, Callable[[ModelSpec], dict[str, Any]]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "gpt2": _gpt2,
}
