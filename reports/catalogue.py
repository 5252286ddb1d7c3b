"""Profiles and models as plain values for lists and pages; sizes in bytes, rates in bytes/s."""

from __future__ import annotations

from typing import Any

from reports.catalogue_models import attention, experts
from simulator.hardware.profile import Profile
from simulator.workload.model import ImportedModel, ModelSpec


def profile_row(profile: Profile) -> dict[str, Any]:
    """Return what a list of machines shows of one."""
    node, gpu = profile.node, profile.accelerator
    nic = node.nic
    return {
        "name": profile.name,
        "title": profile.machine.title,
        "accelerator": gpu.name,
        "accelerators_per_node": node.accelerators,
        "memory_bytes": gpu.memory,
        "memory_bandwidth": gpu.memory_bandwidth,
        "dense_peak_flops_per_second": {str(kind): rate for kind, rate in gpu.peak.items()},
        "scale_up": {
            "kind": str(node.scale_up.kind),
            "bandwidth": node.scale_up.bandwidth,
            "domain_size": node.scale_up.domain_size,
        },
        "nic": None if nic is None else {"per_node": nic.per_node, "bandwidth": nic.bandwidth},
        "price_per_accelerator_hour": profile.machine.price.per_accelerator_hour,
        "calibration": profile.constants.calibration,
        "nominal": profile.constants.nominal_blocks(),
    }


def profile_record(profile: Profile) -> dict[str, Any]:
    """Return what a page on one machine shows: its row, its sources, how its constants came by."""
    machine, host = profile.machine, profile.node.host
    return {
        **profile_row(profile),
        "aliases": list(machine.aliases),
        "fabric": {
            "kind": str(machine.fabric.kind),
            "nodes_per_leaf": machine.fabric.nodes_per_leaf,
            "oversubscription": machine.fabric.oversubscription,
        },
        "host_memory_bytes": host.memory,
        "power_w": profile.accelerator.power,
        "currency": machine.price.currency,
        "sha256": profile.sha256,
        "constants": profile.constants.origins(),
        "sources": [
            {"what": each.what, "reference": each.reference, "read_on": each.read_on.isoformat()}
            for each in machine.source
        ],
    }


def model_row(spec: ModelSpec) -> dict[str, Any]:
    """Return what a list of models shows of one."""
    return {
        "name": spec.name,
        "parameters": spec.parameters,
        "active_parameters": spec.active_parameters,
        "experts": experts(spec),
        "attention": attention(spec),
        "num_hidden_layers": spec.num_hidden_layers,
        "hidden_size": spec.hidden_size,
        "intermediate_size": spec.intermediate_size,
        "num_attention_heads": spec.num_attention_heads,
        "num_key_value_heads": spec.num_key_value_heads,
        "vocab_size": spec.vocab_size,
        "source": spec.source,
    }


def model_record(model: ImportedModel) -> dict[str, Any]:
    """Return what a page on one model shows: its fields, its parameters by part, and notes."""
    spec = model.spec
    layers = sum(layer.parameters * count for layer, count in spec.layer_groups().items())
    return {
        "name": spec.name,
        "parameters": {
            "total": spec.parameters,
            "layers": layers,
            "embedding": spec.embedding_parameters,
            "final_norm": spec.final_norm_parameters,
            "head": spec.head_parameters,
        },
        "active_parameters": spec.active_parameters,
        "mtp_parameters": spec.mtp_parameters,
        "experts": experts(spec),
        "attention": attention(spec),
        "distinct_layers": len(spec.layer_groups()),
        "spec": spec.model_dump(mode="json", exclude_defaults=True),
        "notes": list(model.notes),
    }
