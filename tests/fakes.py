"""Machines, stacks, models and jobs with round numbers, so that results can be checked by hand.

The machine does 100 TFLOP/s, moves 1 TB/s of memory and 100 GB/s over a scale-up link, 10 GB/s
over a NIC; nothing costs anything to start or to launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, TypeVar

from pydantic import BaseModel

from simulator.hardware.accelerator import Accelerator, Dtype
from simulator.hardware.cluster import Fabric, FabricKind, Host, Nic, Node, ScaleUp, ScaleUpKind
from simulator.hardware.collective_constants import (
    CollectiveConstants,
    HostCopyConstants,
    NetworkConstants,
    PairwiseConstants,
    RingConstants,
    SendRecvConstants,
)
from simulator.hardware.constants import FitRecord, FittedConstants, Origin
from simulator.hardware.kernel_constants import (
    AttentionConstants,
    GemmConstants,
    MemoryBoundConstants,
    MemoryClass,
)
from simulator.hardware.profile import Price, Profile, ProfileFile, Source
from simulator.units import GB, GIB, TERA
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec, Norm, Position
from simulator.workload.stack import Fit, Kernels, Memory, Numerics, Overlap, Stack
from simulator.workload.stack_choices import AttentionKernel, PartitionRule

PEAK = 100 * TERA
MEMORY_BANDWIDTH = 1e12
SCALE_UP = 100 * GB
NIC = 10 * GB
NEVER_BINDS = 1e30
"""An efficiency so high that the bytes of an operator cost nothing."""

Record = TypeVar("Record", bound=BaseModel)


def changed(record: Record, **changes: object) -> Record:
    """Return `record` with some fields replaced, checked again."""
    return type(record).model_validate({**dict(record), **changes})


def fake_gemm(**changes: object) -> GemmConstants:
    """A product takes its FLOP over the peak: one unit, tiles of one element."""
    plain = GemmConstants(
        tiles=((1, 1),),
        splits=(1,),
        efficiency=1.0,
        wave_quantisation=0.0,
        k_overhead=0.0,
        small_tile_penalty=0.0,
        split_start=0.0,
        k_latency=0.0,
        throttle=0.0,
        throttle_time=0.0,
        memory_efficiency=NEVER_BINDS,
        start=0.0,
    )
    return changed(plain, **changes)


def fake_attention(**changes: object) -> AttentionConstants:
    """Attention takes its FLOP over the peak, backward twice as long."""
    plain = AttentionConstants(
        query_tile=1,
        efficiency=1.0,
        softmax_flops=0.0,
        k_overhead=0.0,
        tail=0.0,
        memory_efficiency=NEVER_BINDS,
        start=0.0,
        backward_factor=2.0,
    )
    return changed(plain, **changes)


def fake_collectives(latency: float = 0.0) -> CollectiveConstants:
    """Collectives take their wire bytes over the bandwidth, and `latency` seconds a step."""
    ring = RingConstants(start=latency, step_latency=latency, efficiency=1.0)
    return CollectiveConstants(
        all_reduce=ring,
        all_gather=ring,
        reduce_scatter=ring,
        all_to_all=PairwiseConstants(start=latency, peer_latency=latency, efficiency=1.0),
        send_recv=SendRecvConstants(start=latency, efficiency=1.0),
        host_copy=HostCopyConstants(start=latency, efficiency=1.0),
        network=NetworkConstants(start=latency),
    )


def fake_constants(**changes: object) -> FittedConstants:
    """Constants of kernels and collectives that reach their nominal rates."""
    plain = FittedConstants(
        accelerator="fake",
        gemm={Dtype.BF16: fake_gemm(), Dtype.FP32: fake_gemm()},
        attention=fake_attention(),
        memory_bound=MemoryBoundConstants(start=0.0, efficiency=dict.fromkeys(MemoryClass, 1.0)),
        collectives=fake_collectives(),
        fit=(FitRecord(what="gemm", origin=Origin.NOMINAL, source="round numbers"),),
    )
    return changed(plain, **changes)


def fake_accelerator(**changes: object) -> Accelerator:
    """One compute unit of 100 TFLOP/s with 80 GiB at 1 TB/s."""
    plain = Accelerator(
        name="fake",
        peak={Dtype.BF16: PEAK, Dtype.FP32: PEAK},
        memory=80 * GIB,
        memory_bandwidth=MEMORY_BANDWIDTH,
        l2=0.0,
        compute_units=1,
        clock=1e9,
        power=500.0,
    )
    return changed(plain, **changes)


def fake_node(
    *, domain_size: int = 8, accelerators: int = 8, scale_up: float = SCALE_UP, nic: float = NIC
) -> Node:
    """A node in which each accelerator has one NIC; `nic` is its bytes/s."""
    return Node(
        accelerators=accelerators,
        scale_up=ScaleUp(
            kind=ScaleUpKind.NVSWITCH, bandwidth=scale_up, latency=0.0, domain_size=domain_size
        ),
        nic=Nic(per_node=accelerators, bandwidth=nic, efficiency=1.0, latency=0.0),
        host=Host(memory=1024 * GIB, pcie_bandwidth=50 * GB, power=1000.0),
    )


def fake_profile(
    *,
    accelerator: Accelerator | None = None,
    node: Node | None = None,
    constants: FittedConstants | None = None,
) -> Profile:
    """A machine of the parts given, and of round numbers where none are."""
    machine = ProfileFile(
        name="fake",
        title="A machine of round numbers",
        accelerator=accelerator or fake_accelerator(),
        node=node or fake_node(),
        fabric=Fabric(kind=FabricKind.FLAT, nodes_per_leaf=64),
        constants="fake.toml",
        price=Price(),
        source=(Source(what="all", reference="made up", read_on=date(2026, 1, 1)),),
    )
    return Profile(machine=machine, constants=constants or fake_constants(), sha256="0" * 64)


def fake_kernels(**changes: object) -> Kernels:
    """Flash attention, everything fused, nothing to launch."""
    plain = Kernels(
        attention=AttentionKernel.FLASH,
        logits_passes=8.0,
        logits_bytes=4.0,
        cpu_launch=0.0,
        cpu_collective=0.0,
    )
    return changed(plain, **changes)


def fake_overlap(**changes: object) -> Overlap:
    """Nothing overlaps but pipeline transfers."""
    plain = Overlap(
        gradient_reduce=False, parameter_gather=False, pipeline_send=True, tensor_backward=False
    )
    return changed(plain, **changes)


def fake_numerics(**changes: object) -> Numerics:
    """Mixed precision with Adam: 2 bytes of weight, 2 of gradient, 4 + 4 + 4 of states."""
    plain = Numerics(
        parameter_bytes=2.0,
        gradient_bytes=2.0,
        master_bytes=4.0,
        state_bytes=4.0,
        reduce_bytes=2.0,
        gather_bytes=2.0,
    )
    return changed(plain, **changes)


def fake_stack(
    *,
    kernels: Mapping[str, object] | None = None,
    overlap: Mapping[str, object] | None = None,
    numerics: Mapping[str, object] | None = None,
    **changes: object,
) -> Stack:
    """A stack that offers every ZeRO stage; each group takes the fields to change."""
    plain = Stack(
        name="fake",
        title="A stack of round numbers",
        kernels=fake_kernels(**(kernels or {})),
        overlap=fake_overlap(**(overlap or {})),
        numerics=fake_numerics(**(numerics or {})),
        memory=Memory(context=0.0, fragmentation=1.0),
        partition=PartitionRule.BALANCED,
        zero_stages=(0, 1, 2, 3),
        zero_stages_with_pipeline=(0, 1, 2, 3),
        fit=Fit(spread=0.1, spread_source="made up"),
        source="made up",
    )
    return changed(plain, **changes)


def tiny_model(**changes: Any) -> ModelSpec:
    """A GPT of 4 layers, 64 channels and 4 heads; MLP and head_dim follow the width."""
    hidden = changes.get("hidden_size", 64)
    heads = changes.get("num_attention_heads", 4)
    plain: dict[str, object] = {
        "name": "tiny",
        "num_hidden_layers": 4,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": hidden // heads,
        "intermediate_size": 4 * hidden,
        "vocab_size": 1024,
        "tie_word_embeddings": False,
        "gated_mlp": False,
        "activation": "gelu",
        "mlp_bias": True,
        "attention_bias": True,
        "attention_output_bias": True,
        "norm": Norm.LAYERNORM,
        "norm_bias": True,
        "position": Position.LEARNED,
        "max_position_embeddings": 32,
    }
    return ModelSpec.model_validate({**plain, **changes})


def tiny_job(**changes: object) -> TrainingJob:
    """Eight sequences of 32 tokens a step."""
    plain = TrainingJob(global_batch_size=8, seq_length=32)
    return changed(plain, **changes)


def gpt3_175b() -> ModelSpec:
    """GPT-3 of 96 layers as trained by Narayanan et al. 2021 (SC'21), table 1."""
    return tiny_model(
        name="gpt3-175b",
        num_hidden_layers=96,
        hidden_size=12288,
        num_attention_heads=96,
        vocab_size=51200,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
    )


def gpt_1t() -> ModelSpec:
    """The trillion-parameter GPT of Narayanan et al. 2021 (SC'21), table 1."""
    return tiny_model(
        name="gpt-1t",
        num_hidden_layers=128,
        hidden_size=25600,
        num_attention_heads=160,
        vocab_size=51200,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
    )
