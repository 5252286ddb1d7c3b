"""Pages of the JSON that `validate --json` and `plan --json` write; tests hold the keys to it."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum

from calibrate.validation.records import Feasibility, Quantity, Regret, Statistics, Status
from planner.result import Chance, Drawn, RunTotals, Searched
from planner.worthwhile import Threshold
from simulator.parallel.checks import Reason
from simulator.results import Category
from traincast.docs.markdown import code, page, prose, table
from traincast.docs.sources import attribute_docs

_HEADER = ["key", "value", "meaning"]

HEAD = {
    "kind": ("text", "what the file holds ([results.md](results.md))"),
    "format": ("integer", "raised when a key changes its meaning or goes"),
}
ROW = {
    "id": ("text", "the row's `id`; its number, from 0, where it has none"),
    "status": ("`predicted` `skipped`", "whether the row was predicted"),
    "reason": ("text", "why it was skipped; empty where it was not"),
    "quantity": (
        " ".join(code(q.value) for q in Quantity if q is not Quantity.PEAK_MEMORY),
        "what was measured",
    ),
    "unit": ("text", "of `measured`, `predicted`, `low` and `high`: `s`"),
    "measured": ("number or null", "null where the row does not say"),
    "predicted": ("number or null", "null where the row was skipped"),
    "signed_error": ("number or null", "predicted / measured - 1"),
    "low": ("number or null", "lower end of the 80 % interval"),
    "high": ("number or null", "upper end of the 80 % interval"),
    "peak_memory_bytes": ("number or null", "predicted, reserved, of the fullest rank; steps only"),
    "measured_peak_memory_bytes": ("number or null", "as the row reports it, reserved"),
    "feasible": (
        "true, false or null",
        "whether `plan` would take it to fit: at most 94 % of the device; steps only",
    ),
    "assumed": ("list of text", "what the row does not say and was assumed"),
    "labels": ("table of text", "what the row is grouped by, `profile` and `stack` for example"),
    "source": ("text", "where the row says that it is from"),
}
GROUP = {
    "name": ("text", "one line for tables; `all` for all rows"),
    "by": ("table of text", "what the rows have in common; empty for all rows"),
    "quantity": ("text", "as in rows, or `peak_memory` for reported memory"),
    "unit": ("text", "`s`, or `B` for memory"),
    "rows": ("integer", "rows of the group"),
    "predicted": ("integer", "of those, predicted"),
    "skipped": ("integer", "of those, not predicted"),
    "compared": ("integer", "with both a measurement and a forecast"),
    "statistics": ("table or null", "errors of the compared rows; null where there are none"),
    "slow": ("integer", "measured more than twice slower than forecast"),
    "slow_share": ("number or null", "`slow` / `compared`"),
    "without_slow": ("table or null", "`statistics` without the slow rows"),
    "rank_correlation": ("number or null", "Spearman, between measured and forecast"),
    "regret": ("table or null", "what choosing by the forecast would have cost; steps only"),
    "feasibility": ("table or null", "rows by whether they ran and are forecast to fit"),
}
PLAN = {
    **HEAD,
    "title": ("text", "what the scenario is called"),
    "scenario": ("text", "its file"),
    "model": ("table", "`name`, `parameters`, and `notes` of what its reader assumed"),
    "cluster": (
        "table",
        "`profile`, `accelerator`, `nodes`, `accelerators`; and `parts`, of each the same: one, or "
        "several in a mixed cluster",
    ),
    "job": ("table", "as in a scenario ([job.md](job.md)), with its defaults"),
    "dense_peak_flops_per_second": (
        "number",
        "of one accelerator, in a mixed cluster the mean: what MFU divides by",
    ),
    "mfu_convention": ("text", "what MFU counts"),
    "world_size": ("integer", "accelerators"),
    "layouts": ("list", "the layouts found, best first; empty where nothing fits"),
    "searched": ("table", "how many layouts each part of the search saw"),
    "rejected": ("table: integer by reason", "layouts refused under each reason"),
    "examples": ("table: text by reason", "one case of each, with its legal alternatives"),
    "memory_limit_bytes": ("number", "what a layout may reserve"),
    "memory_capacity_bytes": ("number", "of one accelerator, in a mixed cluster the smallest"),
    "nearest": ("list", "where nothing fits: the layouts that come closest"),
    "hints": ("list of text", "where nothing fits: keys that would need less memory"),
    "remedies": (
        "list",
        "where nothing fits: each of `hints`, and changes of the cluster, tried by itself",
    ),
    "bottleneck": ("text", "what most of the best layout's step goes into"),
    "runner_up_extra_s": ("table or null", "seconds by category that the second layout takes more"),
    "runner_up_lost": ("text", "the same in words"),
    "run": ("table or null", "the whole run; null where the job has no tokens"),
    "objective": ("text", "what the best layout has least of"),
    "choice": ("`centre` `robust`", "how the first was chosen among the best"),
    "reason": ("text", "why the first layout is the first"),
    "currency": ("text", "of costs"),
    "beyond": ("text", "where layouts fit and none keeps to `max_days` or `max_cost`: by how much"),
    "pareto": ("table or null", "the front of `search.pareto`"),
    "drawn": ("table or null", "how the uncertain constants were drawn; null where they were not"),
    "whole_run": (
        "table or null",
        "the whole run of the best layout, as [goodput --json](goodput-json.md#run) has it; null "
        "where the scenario has no `[run]`",
    ),
    "map": (
        "table or null",
        "`cells`: of every tp x pp the best layout by the estimate, and why layouts are refused",
    ),
    "warnings": ("list of text", "constants that are assumptions"),
    "assumptions": ("list of text", "what the search took for granted"),
    "provenance": ("table", "version, profile and its hash, stack, origin of each constant"),
}
LAYOUT = {
    "rank": ("integer", "from 1, the fastest"),
    "layout": ("table", "as in a scenario ([layout.md](layout.md)), with its defaults"),
    "name": ("text", "the same in one line"),
    "step_time_s": ("number", "seconds, from the event simulation"),
    "low": ("number", "lower end of the 80 % interval, seconds"),
    "high": ("number", "upper end of the 80 % interval, seconds"),
    "estimate_s": ("number", "seconds without contention: what the search ranked by"),
    "simulated": ("boolean", "whether the event engine played it; else the estimate stands"),
    "tokens_per_s": ("number", "all ranks"),
    "mfu": ("number", "a fraction; see [mfu.md](../background/mfu.md)"),
    "peak_memory_bytes": ("number", "reserved, of the fullest stage"),
    "exposed_communication_s": ("number", "seconds in which the busiest stage waits for it"),
    "bubble_s": ("number", "seconds in which it waits for another stage"),
    "busiest_stage": ("integer", "the stage that the breakdown is of"),
    "breakdown_s": ("table: number by category", "adds up to the step"),
    "varied": ("table", "`nodes`, `global_batch_size`, `precision`, `rank_order` where searched"),
    "accelerators": ("integer", "of its cluster"),
    "days": ("number or null", "for all tokens, without failures; null where none are given"),
    "cost": ("number or null", "of all tokens, else of a million; null without a price"),
    "energy_j": (
        "number",
        "joules of all tokens, else of a million: accelerators and hosts, cooling apart",
    ),
    "chance": ("table or null", "what draws of the constants say of it; null where not compared"),
}
REMEDY = {
    "what": ("text", "what was tried"),
    "fits": ("boolean", "whether anything fits then"),
    "layout": ("table or null", "one that does, or the smallest; null where none is legal"),
    "name": ("text", "the same in one line"),
    "peak_memory_bytes": ("number or null", "reserved, of its fullest stage"),
}
PARETO = {
    "objectives": ("list of text", "the two objectives"),
    "layouts": (
        "list",
        "by the first objective: `values` (of both, as in layouts), `layout`, `name`, `varied`, "
        "`step_time_s` (estimated), `accelerators`, `peak_memory_bytes`",
    ),
    "left_open": ("integer", "layouts that could be on it, where the search was cut short; else 0"),
}
EXPLANATION = {
    **HEAD,
    "plan": ("table", "as `plan --json` writes it ([plan-json.md](plan-json.md))"),
    "what_if": ("list", "one entry a change"),
    "worthwhile": ("table or null", "the answer to `--layout-key`"),
    "sensitivities": (
        "list",
        "for each source of error, the widest first: `source`, `low_s` and `high_s` (the best "
        "layout's step at the ends of its 80 % interval, all else as forecast), `origin`",
    ),
}
WHAT_IF = {
    "name": ("text", "of the change"),
    "change": ("table of text", "key and new value, or factor"),
    "same_layout": (
        "table",
        "the best layout as it is: `layout`, `name`, `step_time_s`, `speedup` (tokens/s over those "
        "of the best layout without the change), `accelerators`, `peak_memory_bytes`; or `layout` "
        "null and the `reason`",
    ),
    "best_layout": ("table", "the best layout under the change, the same keys"),
    "warnings": ("list of text", "of the changed forecast, beside those of the plan"),
}
WORTHWHILE = {
    "wanted": ("table", "the kind of layouts that was asked for"),
    "best": ("table", "`layout` and `step_time_s` of the best of all"),
    "found": ("table or null", "`layout`, `name`, `step_time_s` of the best of the kind"),
    "reason": ("text", "why it is not the best, or why there is none"),
    "extra_s": ("table or null", "seconds by category that it takes more"),
    "thresholds": ("list", "one entry a lever"),
}
NEAREST = {
    "layout": ("table", "as above"),
    "peak_memory_bytes": ("number", "reserved, of the fullest stage"),
    "stages": (
        "list",
        "for each stage: `stage`, `peak_memory_bytes`, `over_bytes` above the "
        "limit, `largest` part, `moment` of the peak",
    ),
}
_STABLE = (
    "Keys are never renamed or removed without a major version; new ones may be added, so ignore "
    "those that you do not know. Numbers are finite or null; units are in the names or stated here."
)


def validation_page() -> str:
    """Return the page of `validate --json`."""
    assert set(Status) == {Status.PREDICTED, Status.SKIPPED}
    return page(
        "Output of `traincast validate --json`",
        _STABLE,
        table(
            _HEADER,
            [
                *([code(key), *words] for key, words in HEAD.items()),
                [code("rows"), "list", "one entry a row of the table, in its order"],
                [code("groups"), "list", "errors of all rows, and of those with the same label"],
                [code("provenance"), "table", "version, file and its hash, profiles with hashes"],
            ],
        ),
        "## rows",
        _keys(ROW),
        "## groups",
        _keys(GROUP),
        *(_record(record) for record in (Statistics, Regret, Feasibility)),
    )


def plan_page() -> str:
    """Return the page of `plan --json`."""
    return page(
        "Output of `traincast plan --json`",
        _STABLE,
        _keys(PLAN),
        "## layouts",
        _keys(LAYOUT),
        *(_record(record) for record in (Searched, RunTotals, Chance, Drawn)),
        "## pareto",
        _keys(PARETO),
        "## nearest",
        _keys(NEAREST),
        "## remedies",
        _keys(REMEDY),
        "## Categories",
        table(["category", "meaning"], _categories()),
        "## Reasons for which layouts are refused",
        table(["reason"], [[_value(reason)] for reason in Reason]),
    )


def explanation_page() -> str:
    """Return the page of `explain --json`."""
    return page(
        "Output of `traincast explain --json`",
        _STABLE,
        _keys(EXPLANATION),
        "## what_if",
        _keys(WHAT_IF),
        "## worthwhile",
        _keys(WORTHWHILE),
        _record(Threshold),
    )


def _keys(keys: dict[str, tuple[str, str]]) -> str:
    return table(_HEADER, [[code(key), *words] for key, words in keys.items()])


def _record(record: type) -> str:
    documented = attribute_docs(record)
    rows = [
        [code(field.name), _kind(str(field.type)), documented.get(field.name, "")]
        for field in fields(record)
    ]
    return f"## {record.__name__.lower()}\n\n{prose(record)}\n\n{table(_HEADER, rows)}"


def _kind(annotation: str) -> str:
    words = {"int": "integer", "float": "number", "None": "null"}
    return " or ".join(words.get(part.strip(), part.strip()) for part in annotation.split("|"))


def _categories() -> list[list[str]]:
    documented = attribute_docs(Category)
    return [[code(member.value), documented.get(member.name, "")] for member in Category]


def _value(member: Enum) -> str:
    return str(member.value)
