"""Pages that list what is shipped: machines, models and software stacks, with their sources."""

from __future__ import annotations

from reports.catalogue_models import attention, experts
from simulator.hardware.constants import FittedConstants, Origin
from simulator.hardware.profile import Profile, load_profile, profile_names
from simulator.units import GB, GIB, TERA
from simulator.workload.load import load_model, model_names
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack, load_stack, stack_names
from traincast.docs.markdown import code, page, table

_BILLION = 1e9


def profiles_page() -> str:
    """Return the page of the shipped machines."""
    profiles = [load_profile(name) for name in profile_names()]
    header = ["profile", "accelerator", "dense peak", "memory", "node", "scale-up", "network"]
    return page(
        "Shipped machines",
        "What stands in `hardware_profiles/`. Links are per accelerator and direction; `network` "
        "is what a node's cards give together, before their efficiency. The keys are explained "
        "in [profile.md](profile.md).",
        table([*header, "constants"], [_profile_row(profile) for profile in profiles]),
        "`constants` says which blocks of the cost model were fitted to measurements; the others "
        "are assumptions taken from similar machines, and every result that uses them says so.",
        "## Where the numbers come from",
        *(_profile_sources(profile) for profile in profiles),
        "## How the constants were come by",
        *_constants_sections(profiles),
    )


def models_page() -> str:
    """Return the page of the shipped models."""
    specs = [(name, load_model(name).spec) for name in model_names()]
    header = ["model", "parameters", "active", "experts", "attention"]
    header += ["layers", "hidden", "heads (kv)", "MLP", "vocabulary"]
    return page(
        "Shipped models",
        "What stands in `simulator/workload/models/`. `traincast` also reads a Hugging Face "
        "`config.json`, or your own file with the keys in [model.md](model.md).",
        table([*header, "source"], [_model_row(name, spec) for name, spec in specs]),
    )


def stacks_page() -> str:
    """Return the page of the shipped software stacks."""
    stacks = [load_stack(name) for name in stack_names()]
    header = ["stack", "attention", "partition", "ZeRO", "gradients", "reduced in", "interval"]
    return page(
        "Shipped stacks",
        "What stands in `simulator/workload/stacks/`: what a training framework does with the "
        "same model on the same machine. The keys are explained in [stack.md](stack.md). "
        "`interval` is the relative half-width of the 80 % interval of a step time.",
        table(header, [_stack_row(stack) for stack in stacks]),
        *(_stack_section(stack) for stack in stacks),
    )


def _profile_row(profile: Profile) -> list[str]:
    gpu, node = profile.accelerator, profile.node
    dtype, peak = next(iter(gpu.peak.items()))
    nic = node.nic
    network = "none"
    if nic is not None:
        network = f"{nic.per_node} x {nic.bandwidth / GB:.4g} GB/s"
    return [
        code(profile.name),
        gpu.name,
        f"{peak / TERA:.4g} TFLOP/s {dtype}",
        f"{gpu.memory / GIB:.4g} GiB, {gpu.memory_bandwidth / GB:.4g} GB/s",
        f"{node.accelerators}",
        f"{node.scale_up.kind}, {node.scale_up.bandwidth / GB:.4g} GB/s, "
        f"{node.scale_up.domain_size} a domain",
        network,
        _fitted_words(profile.constants),
    ]


def _fitted_words(constants: FittedConstants) -> str:
    fitted = [record.what for record in constants.fit if record.origin is not Origin.NOMINAL]
    return ", ".join(fitted) or "nominal"


def _profile_sources(profile: Profile) -> str:
    machine = profile.machine
    lines = [f"* {source.what}: {source.reference}" for source in machine.source]
    aliases = ", ".join(map(code, machine.aliases))
    called = [f"In measured tables also called {aliases}."] if aliases else []
    return "\n\n".join([f"### {machine.name}", f"{machine.title}.", *called, "\n".join(lines)])


def _constants_sections(profiles: list[Profile]) -> list[str]:
    used: dict[str, list[str]] = {}
    constants: dict[str, FittedConstants] = {}
    for profile in profiles:
        file = profile.machine.constants
        used.setdefault(file, []).append(code(profile.name))
        constants[file] = profile.constants
    header = ["block", "origin", "points", "held out", "median error", "p90", "source"]
    return [
        f"### {file}\n\nUsed by {', '.join(names)}.\n\n" + table(header, _fit_rows(constants[file]))
        for file, names in sorted(used.items())
    ]


def _fit_rows(constants: FittedConstants) -> list[list[str]]:
    return [
        [
            record.what,
            record.origin,
            str(record.points or ""),
            str(record.held_out_points or ""),
            share(record.held_out_median_error),
            share(record.held_out_p90_error),
            record.source,
        ]
        for record in constants.fit
    ]


def share(value: float | None) -> str:
    """Return a fraction in percent, or nothing."""
    return "" if value is None else f"{100 * value:.1f} %"


def _model_row(name: str, spec: ModelSpec) -> list[str]:
    return [
        code(name),
        f"{spec.parameters / _BILLION:.4g} B",
        f"{spec.active_parameters / _BILLION:.4g} B" if spec.moe else "",
        experts(spec),
        attention(spec),
        str(spec.num_hidden_layers),
        str(spec.hidden_size),
        f"{spec.num_attention_heads} ({spec.num_key_value_heads})",
        f"{spec.intermediate_size}{' gated' if spec.gated_mlp else ''}",
        str(spec.vocab_size),
        spec.source,
    ]


def _stack_row(stack: Stack) -> list[str]:
    both = ", ".join(map(str, stack.zero_stages_with_pipeline))
    return [
        code(stack.name),
        stack.kernels.attention,
        stack.partition,
        f"{', '.join(map(str, stack.zero_stages))} (with pp: {both})",
        f"{stack.numerics.gradient_bytes:g} bytes",
        f"{stack.numerics.reduce_bytes:g} bytes",
        f"{100 * stack.fit.spread:g} %",
    ]


def _stack_section(stack: Stack) -> str:
    overlap, fit = stack.overlap, stack.fit
    hidden = [name for name in type(overlap).model_fields if getattr(overlap, name) is True]
    scales = [f"{name} {value:g}" for name, value in sorted(fit.scale.items())]
    lines = [
        f"{stack.title}.",
        f"* source: {stack.source}",
        f"* in measured tables: {', '.join(stack.frameworks) or 'not looked for'}",
        f"* overlaps: {', '.join(hidden) or 'nothing'}",
        f"* measured over modelled compute time: {', '.join(scales) or '1 (nothing fitted)'}",
        f"* fitted: {', '.join(map(code, fit.free)) or 'nothing'}",
        f"* rows that fitted it: {', '.join(map(code, fit.rows)) or 'none'}",
        f"* interval: {fit.spread_source}",
    ]
    return f"## {stack.name}\n\n{lines[0]}\n\n" + "\n".join(lines[1:])
