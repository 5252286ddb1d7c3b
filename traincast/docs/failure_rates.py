"""The page of the shipped failure rates."""

from __future__ import annotations

from planner.goodput.rates import Per, ReliabilityFile, load_rates, rate_names
from reports.quantities import number
from traincast.docs.markdown import code, page, table

_PER = {
    Per.ACCELERATOR: "accelerators",
    Per.NODE: "nodes",
    Per.NIC: "NICs",
    Per.LEAF: "leaf switches",
    Per.JOB: "jobs",
}
_THOUSAND = 1000.0


def rates_page() -> str:
    """Return the page of the shipped failure rates, with their sources."""
    return page(
        "Shipped failure rates",
        "What stands in `hardware_profiles/reliability/`, for `run.failures.rates` of a scenario. "
        "The keys are explained in [reliability.md](reliability.md), what becomes of the numbers "
        "in [goodput.md](../background/goodput.md).",
        *(_section(load_rates(name)) for name in rate_names()),
    )


def _section(file: ReliabilityFile) -> str:
    header = ["kind", "events", "in days x things", "a thousand days of one", "loses the node"]
    rows = [
        [
            kind.name,
            str(kind.events),
            f"{kind.exposure_days:,.0f} of {_PER[kind.per]}",
            number(_THOUSAND * kind.events / kind.exposure_days, 3),
            "yes" if kind.loses_node else "no",
        ]
        for kind in file.kind
    ]
    times = ", ".join(f"{name.replace('_', ' ')} {value:g} s" for name, value in file.recovery)
    sources = [f"* {source.what}: {source.reference}" for source in file.source]
    return "\n\n".join(
        [f"## {code(file.name)}", f"{file.title}. {times}.", table(header, rows), *sources]
    )
