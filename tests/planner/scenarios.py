"""Scenarios on a made-up machine of round numbers, apart from every shipped profile."""

from __future__ import annotations

from datetime import date

from simulator.api import Forecaster
from simulator.files import parse_record
from simulator.hardware.constants import FittedConstants
from simulator.hardware.kernel_constants import MemoryClass
from simulator.hardware.profile import Profile, ProfileFile
from simulator.scenario import ClusterFile, Scenario, ScenarioFile, SearchFile
from simulator.workload.job import TrainingJob
from simulator.workload.model import ImportedModel, ModelSpec
from simulator.workload.stack import Stack, load_stack

_RING = {"start": "10 us", "step_latency": "1 us", "efficiency": 0.75, "chunk_cost": 0.5}
_CONSTANTS = {
    "accelerator": "round",
    "gemm": {
        "bf16": {
            "tiles": [[256, 128], [128, 128], [64, 64]],
            "splits": [1, 2, 4],
            "efficiency": 0.8,
            "wave_quantisation": 0.5,
            "k_overhead": 256,
            "small_tile_penalty": 0.2,
            "split_start": "3 us",
            "k_latency": "1 ns",
            "throttle": 0.1,
            "throttle_time": "1 ms",
            "memory_efficiency": 0.8,
            "start": "5 us",
        }
    },
    "attention": {
        "query_tile": 128,
        "efficiency": 0.6,
        "softmax_flops": 100,
        "k_overhead": 128,
        "tail": 0.5,
        "memory_efficiency": 0.8,
        "start": "5 us",
        "backward_factor": 2.5,
    },
    "memory_bound": {
        "start": "5 us",
        "efficiency": {kind.value: 0.8 for kind in MemoryClass},
    },
    "collectives": {
        "all_reduce": _RING,
        "all_gather": _RING,
        "reduce_scatter": _RING,
        "all_to_all": {"start": "10 us", "peer_latency": "1 us", "efficiency": 0.75},
        "send_recv": {"start": "10 us", "efficiency": 0.75},
        "host_copy": {"start": "10 us", "efficiency": 0.75},
        "network": {},
    },
    "fit": [{"what": "everything", "origin": "nominal", "source": "round numbers"}],
}


def machine(
    *, memory: str = "80 GiB", nic_gbps: float = 200, price: float | None = None
) -> Profile:
    """Return 8 accelerators a node of 300 TFLOP/s, 2 TB/s of memory and 300 GB/s links."""
    file = {
        "name": "round",
        "title": "round numbers",
        "constants": "none",
        "accelerator": {
            "name": "round",
            "peak": {"bf16": "300 TFLOP/s"},
            "memory": memory,
            "memory_bandwidth": "2 TB/s",
            "l2": "40 MiB",
            "compute_units": 100,
            "clock": "1 GHz",
            "power": "400 W",
        },
        "node": {
            "accelerators": 8,
            "scale_up": {
                "kind": "nvswitch",
                "bandwidth": "300 GB/s",
                "latency": "1 us",
                "domain_size": 8,
            },
            "nic": {
                "per_node": 8,
                "bandwidth": f"{nic_gbps} Gbps",
                "efficiency": 0.9,
                "latency": "5 us",
            },
            "host": {
                "memory": "1024 GiB",
                "pcie_bandwidth": "25 GB/s",
                "memory_bandwidth": "400 GB/s",
                "power": "3000 W",
            },
        },
        "fabric": {"kind": "rail-optimised", "nodes_per_leaf": 16},
        "price": {} if price is None else {"per_accelerator_hour": price},
        "source": [
            {"what": "all", "reference": "made up", "read_on": date(2000, 1, 1).isoformat()}
        ],
    }
    return Profile(
        machine=parse_record(ProfileFile, file, "machine"),
        constants=parse_record(FittedConstants, _CONSTANTS, "constants"),
        sha256="0" * 64,
    )


def gpt(layers: int = 8, hidden_size: int = 1024, **changes: object) -> ModelSpec:
    """Return a GPT with heads of 128 (64 where hidden_size is 512 or less)."""
    head = 64 if hidden_size <= 512 else 128
    data = {
        "name": "gpt",
        "num_hidden_layers": layers,
        "hidden_size": hidden_size,
        "num_attention_heads": hidden_size // head,
        "num_key_value_heads": hidden_size // head,
        "head_dim": head,
        "intermediate_size": 4 * hidden_size,
        "vocab_size": 51200,
        "tie_word_embeddings": True,
        "gated_mlp": False,
        "activation": "gelu",
        "norm": "layernorm",
        "position": "learned",
        "max_position_embeddings": 2048,
        **changes,
    }
    return parse_record(ModelSpec, data, "model")


def gpt3_175b() -> ModelSpec:
    """Return GPT-3 of 175 billion parameters (Brown et al. 2020, table 2.1)."""
    return gpt(96, 12288, num_attention_heads=96, num_key_value_heads=96)


def llama3_405b() -> ModelSpec:
    """Return Llama 3.1 of 405 billion parameters (Dubey et al. 2024, table 3)."""
    return gpt(
        126,
        16384,
        num_key_value_heads=8,
        intermediate_size=53248,
        vocab_size=128256,
        tie_word_embeddings=False,
        gated_mlp=True,
        activation="silu",
        norm="rmsnorm",
        position="rope",
        max_position_embeddings=8192,
    )


def mixtral(layers: int = 4, hidden_size: int = 512, **changes: object) -> ModelSpec:
    """Return a mixture of 8 experts, of which each token takes 2."""
    experts = {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 2 * hidden_size,
    }
    return gpt(
        layers,
        hidden_size,
        tie_word_embeddings=False,
        gated_mlp=True,
        activation="silu",
        norm="rmsnorm",
        position="rope",
        **{"moe": experts, **changes},
    )


def scenario(
    model: ModelSpec,
    *,
    nodes: int = 1,
    job: TrainingJob | None = None,
    stack: Stack | str = "megatron-core",
    profile: Profile | None = None,
    search: SearchFile | None = None,
) -> Scenario:
    """Return a scenario of `model` on `nodes` nodes of the made-up machine."""
    job = job or TrainingJob(global_batch_size=32, seq_length=1024)
    file = ScenarioFile(
        model="given",
        cluster=ClusterFile(profile="given", nodes=nodes),
        job=job,
        search=search or SearchFile(),
    )
    return Scenario(
        file=file,
        where="scenario.toml",
        model=ImportedModel(spec=model),
        stack=load_stack(stack) if isinstance(stack, str) else stack,
        profile=profile or machine(),
    )


def forecaster(given: Scenario) -> Forecaster:
    """Return the forecaster of a scenario."""
    return Forecaster.of(given)
