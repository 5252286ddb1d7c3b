"""What several kinds of results say alike: the machines, memory, days and money."""

from __future__ import annotations

from collections.abc import Iterator

from reports.page.topics import Said, Topic
from reports.quantities import days_as_time, number, percent, seconds
from reports.result_files.parts import ClusterFacts, RunFacts, Three
from reports.step_view import CLOSE_TO_FULL
from reports.words import Words
from simulator.units import GIB


def machines(cluster: ClusterFacts, words: Words, count: int | None = None) -> str:
    """Return the accelerators of a cluster: "64 x NVIDIA H100 + 64 x NVIDIA A100".

    `count` is how many of them a layout takes, where it may be another number than all.
    """
    if len(cluster.parts) > 1 and count in (None, cluster.accelerators):
        return " + ".join(f"{part.accelerators:,} x {part.accelerator}" for part in cluster.parts)
    if len(cluster.parts) > 1:
        name = " + ".join(part.accelerator for part in cluster.parts)
        return words("{count} of {machines}", count=f"{count:,}", machines=name)
    return f"{count or cluster.accelerators:,} x {cluster.accelerator}"


def interval(step: float, low: float, high: float) -> dict[str, str]:
    """Return a step time and the ends of its interval, as fields of sentences."""
    return {"step": seconds(step), "low": seconds(low), "high": seconds(high)}


def lasting(days: float, words: Words) -> str:
    """Return a time that is kept in days with the unit in which it is easily read."""
    return words.held(days_as_time(days))


def lasting_three(days: Three, words: Words) -> dict[str, str]:
    """Return the middle and the ends of simulated days, as fields of sentences."""
    ends = {"middle": days.p50, "low": days.p10, "high": days.p90}
    return {name: lasting(value, words) for name, value in ends.items()}


def all_tokens(run: RunFacts | None, words: Words) -> Iterator[Said]:
    """Say how long all tokens take and what they cost."""
    if run is None:
        return
    yield (
        Topic.PICK,
        words(
            "All tokens take {time} ({low} to {high}) and {hours} GPU-hours, without failures.",
            time=lasting(run.days, words),
            low=lasting(run.days_low, words),
            high=lasting(run.days_high, words),
            hours=number(run.accelerator_hours),
        ),
    )
    if run.cost is None:
        yield Topic.PICK, words("The profile names no price for these hours.")
    else:
        cost = number(run.cost)
        yield Topic.PICK, words("That costs {cost} {currency}.", cost=cost, currency=run.currency)


def reserved(peak: float, capacity: float, words: Words) -> str:
    """Return a sentence about the bytes that the fullest rank reserves."""
    sizes = {
        "peak": number(peak / GIB),
        "capacity": number(capacity / GIB),
        "room": percent(1 - peak / capacity),
    }
    if peak > CLOSE_TO_FULL * capacity:
        template = (
            "Memory is tight: {peak} GiB of {capacity} GiB are reserved, {room} are left; a run "
            "may run out of it."
        )
        return words(template, **sizes)
    return words("Memory: {peak} GiB of {capacity} GiB are reserved, {room} are left.", **sizes)
