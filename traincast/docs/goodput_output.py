"""The page of the JSON that `goodput --json` writes; tests hold the keys to it."""

from __future__ import annotations

from planner.goodput.shape import Cause
from traincast.docs.machine_output import HEAD
from traincast.docs.markdown import code, page, table
from traincast.docs.sources import attribute_docs

_Q = "table: `p10`, `p50`, `p90`"
GOODPUT = {
    **HEAD,
    "title": ("text", "what the scenario is called"),
    "scenario": ("text", "its file"),
    "layout": ("table", "as in a scenario ([layout.md](layout.md)), with its defaults"),
    "fits": ("boolean", "whether the layout fits in memory"),
    "run": ("table", "the run plan, below"),
    "provenance": ("table", "version, profile and its hash, stack, origin of each constant"),
}
RUN = {
    "steps": ("integer", "of the run"),
    "tokens": ("integer", "that they train"),
    "step_time_s": ("number", "the forecast step, seconds"),
    "accelerators": ("integer", "spares apart"),
    "ideal": ("table", "`days`, `accelerator_hours`, `cost` if nothing failed or was saved"),
    "days": (_Q, "wall time of the run"),
    "goodput": (_Q, "useful step time over wall time"),
    "accelerator_hours": (_Q, "spares included"),
    "cost": (f"{_Q}; or null", "null without a price"),
    "currency": ("text", "of `cost`"),
    "wall_shares": ("table: number by cause", "shares of the mean wall time; they add up to 1"),
    "checkpoint": (
        "table or null",
        "`mode`; `bytes` and its parts; seconds that training waits, until it is in storage, to "
        "read; `interval_steps`, `interval_s`, who chose it; how many are `kept`, in how many "
        "bytes",
    ),
    "failures": (
        "table or null",
        "`rates`; `mtbf_s` and `count`; times of a recovery; `levels` on which the run goes on; "
        "`first_order_goodput` in closed form; `intervals` and `spare_choices` that were compared; "
        "`best_spares`",
    ),
    "energy": ("table", "watts of a node, joules of machines and site, kilograms of CO2"),
    "data": ("table", "bytes a token and of the run, rates of reading"),
    "replications": ("integer", "runs that were simulated"),
    "samples": (
        "table",
        "of every simulated run, in order: `days`, `goodput`, `failures`, "
        "`accelerator_hours`, `cost` (null without a price)",
    ),
    "seed": ("integer", "of them"),
    "warnings": ("list of text", "what will not do"),
    "assumptions": ("list of text", "what was taken for granted"),
}


def goodput_page() -> str:
    """Return the page of `goodput --json`."""
    said = attribute_docs(Cause)
    causes = [[code(cause.value), said.get(cause.name, "")] for cause in Cause]
    header = ["key", "value", "meaning"]
    return page(
        "Output of `traincast goodput --json`",
        "Keys are never renamed or removed without a major version; new ones may be added, so "
        "ignore those that you do not know. Numbers are finite or null.",
        table(header, [[code(key), *words] for key, words in GOODPUT.items()]),
        "## run",
        table(header, [[code(key), *words] for key, words in RUN.items()]),
        "## Causes",
        table(["cause", "meaning"], causes),
    )
