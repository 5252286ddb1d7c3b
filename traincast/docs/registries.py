"""Pages of the registries in code: pipeline schedules and collective algorithms."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.cost.collectives.registry import ALGORITHMS
from simulator.parallel.layout import Placement, ScheduleName
from simulator.parallel.placement import placement_of
from simulator.schedule.action import Action, ActionKind, Schedule
from simulator.schedule.memory import in_flight
from simulator.schedule.registry import SCHEDULES, build_schedule
from simulator.schedule.verify import dependency, in_dependency_order
from traincast.docs.markdown import code, page, prose, table

_STAGES, _MICRO_BATCHES, _CHUNKS = 4, 8, 2
_LENGTHS = {
    ActionKind.FORWARD: 1,
    ActionKind.BACKWARD: 2,
    ActionKind.BACKWARD_INPUT: 1,
    ActionKind.BACKWARD_WEIGHT: 1,
}
"""In forward passes of a chunk."""
_FIRST_LETTER = {
    ActionKind.FORWARD: "0",
    ActionKind.BACKWARD: "a",
    ActionKind.BACKWARD_INPUT: "A",
}
_WEIGHT = "w"
_IDLE = "."
_CHUNKED = (ScheduleName.INTERLEAVED, ScheduleName.LOOPED_BFS)


def schedules_page() -> str:
    """Return the page of the pipeline schedules, each drawn from its own actions."""
    return page(
        "Pipeline schedules",
        f"Drawn with pp = {_STAGES}, {_MICRO_BATCHES} micro-batches, a backward pass twice as "
        "long as a forward pass, and transfers that take no time. One letter is one unit of "
        "time (with vpp chunks, 1/vpp of a stage's forward pass): `0`-`9` a forward pass of that "
        "micro-batch, `a`-`j` a backward pass of micro-batch 0 to 9, `A`-`J` its input gradient "
        "alone, `w` a weight gradient alone, a dot idle time.",
        table(
            ["schedule", "bubble, share of the work", "micro-batches' activations on stages 0 .."],
            [_schedule_row(name) for name in SCHEDULES],
        ),
        "With vpp chunks a stage holds chunks of 1/vpp of a stage, so that vpp of them are one "
        "stage's activations; the two parts of the model on a stage of dualpipe are a stage's "
        "each. Schedules from a file (`csv`), what the bubbles are and where they come from: "
        "[../background/schedules.md](../background/schedules.md). To add one see "
        "[add-a-schedule.md](../how-to/add-a-schedule.md).",
        *(_schedule_section(name) for name in SCHEDULES),
    )


def collectives_page() -> str:
    """Return the page of the collective algorithms."""
    rows = [
        [
            code(name),
            ", ".join(sorted(kind.value for kind in algorithm.collectives)),
            "yes" if algorithm.automatic else "only when named",
        ]
        for name, algorithm in ALGORITHMS.items()
    ]
    return page(
        "Collective algorithms",
        "`s` is the payload in the nccl-tests convention: all-gather the total output, "
        "reduce-scatter the total input, all-to-all what each rank sends in all, the others the "
        "buffer of one rank. A group has `n` ranks, `r` of them in each of `N` scale-up domains. "
        "The formulas and where they come from are derived in "
        "[../background/communication.md](../background/communication.md).",
        table(["algorithm", "collectives", "chosen by itself"], rows),
        "Of the algorithms that are chosen by themselves and serve the group, the fastest wins, "
        "as in the tuner of a communication library.",
        *(f"## {name}\n\n{prose(a.build)}" for name, a in ALGORITHMS.items()),
    )


def _chunks(name: ScheduleName) -> int:
    return _CHUNKS if name in _CHUNKED or placement_of(name) is not Placement.LOOP else 1


def _schedule_row(name: ScheduleName) -> list[str]:
    vpp = _chunks(name)
    schedule = build_schedule(name, _STAGES, vpp, _MICRO_BATCHES)
    ends = play(schedule, vpp, placement_of(name))
    busy = sum(map(_length, schedule[0]))
    bubble = max(ends.values()) / busy - 1
    held = in_flight(name, _STAGES, vpp, _MICRO_BATCHES)
    alive = ", ".join(str(stage.count) for stage in held)
    chunks = f" (vpp {vpp}, chunks)" if vpp > 1 else ""
    return [code(name.value), f"{100 * bubble:.1f} %{chunks}", alive]


def _schedule_section(name: ScheduleName) -> str:
    vpp = _chunks(name)
    schedule = build_schedule(name, _STAGES, vpp, _MICRO_BATCHES)
    drawn = drawing(schedule, vpp, placement_of(name))
    return f"## {name.value}\n\n{prose(SCHEDULES[name])}\n\n```text\n{drawn}\n```"


def play(schedule: Schedule, vpp: int, placement: Placement = Placement.LOOP) -> dict[Action, int]:
    """Return when each action ends, in forward passes of one chunk."""
    pp = len(schedule)
    free = [0] * pp
    ends: dict[Action, int] = {}
    for action in in_dependency_order(schedule, vpp, placement):
        needed = dependency(action, pp, vpp, placement)
        ready = ends[_run(needed, ends)] if needed else 0
        ends[action] = max(free[action.stage], ready) + _length(action)
        free[action.stage] = ends[action]
    return ends


def _run(needed: Action, ends: Mapping[Action, int]) -> Action:
    """Return a needed backward pass as it was run: whole, or its input's part."""
    if needed in ends:
        return needed
    whole = needed.kind is ActionKind.BACKWARD
    return needed._replace(kind=ActionKind.BACKWARD_INPUT if whole else ActionKind.BACKWARD)


def drawing(schedule: Schedule, vpp: int, placement: Placement = Placement.LOOP) -> str:
    """Return one line a stage, one letter a unit of time."""
    ends = play(schedule, vpp, placement)
    lines = []
    for stage, actions in enumerate(schedule):
        cells = [_IDLE] * max(ends.values())
        for action in actions:
            stop = ends[action]
            cells[stop - _length(action) : stop] = _letter(action) * _length(action)
        lines.append(f"stage {stage}  {''.join(cells)}")
    return "\n".join(lines)


def _length(action: Action) -> int:
    return _LENGTHS[action.kind]


def _letter(action: Action) -> str:
    if action.kind is ActionKind.BACKWARD_WEIGHT:
        return _WEIGHT
    return chr(ord(_FIRST_LETTER[action.kind]) + action.micro_batch)
