"""Power of a cluster that trains, from what its accelerators do in a step.

P = idle + (limit - idle) x activity, where activity is the mean over the step of what matrix
products, memory-bound operators, communication and waiting draw (`PowerModel`, a file with
sources). The step is that of the busiest stage; the others wait more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, assert_never

from pydantic import Field

from planner.shipped import read_shipped
from simulator.files import FileRecord
from simulator.hardware.accelerator import Accelerator
from simulator.hardware.profile import Profile, Source
from simulator.results import Breakdown, Category

POWER_FOLDER = "power"
TRAINING = "training"
"""The shipped power model."""
_Share = Annotated[float, Field(ge=0, le=1)]


class Activity(FileRecord):
    """Share of the power above idle that a board draws while it does one thing."""

    matrix: _Share
    """Matrix products and attention."""
    memory: _Share
    """Operators bound by memory bandwidth, the optimizer."""
    communication: _Share
    """Exposed communication, copies to and from the host."""
    waiting: _Share
    """For another stage, or for the CPU to launch."""


class HostPower(FileRecord):
    """What the rest of a node draws."""

    share: _Share
    """Of the maximum that the profile gives, while the job runs or waits."""


class PowerModel(FileRecord):
    """How power follows from what is done; shares of what the profiles say in watts."""

    name: str
    title: str
    idle_share: _Share
    """Of the board power limit, drawn by an idle board, where its profile does not say."""
    activity: Activity
    host: HostPower
    source: tuple[Source, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """Watts of one node, all that is in it."""

    training: float
    """Mean over a step."""
    waiting: float
    """While a step hangs, or a checkpoint is written: boards poll, nothing is computed."""
    idle: float
    """While nothing runs on it."""


def load_power_model(name: str = TRAINING, *, where: str = "") -> PowerModel:
    """Return a shipped power model, or the one in a .toml file.

    Raises:
        InputError: there is none of that name, or it is wrong.
    """
    return read_shipped(PowerModel, POWER_FOLDER, name, where, "run.energy.power_model")


def node_power(profile: Profile, breakdown: Breakdown, model: PowerModel) -> NodePower:
    """Return the watts of one node of a profile while it trains, waits or idles."""
    board, count = profile.accelerator, profile.node.accelerators
    host = model.host.share * profile.node.host.power
    return NodePower(
        training=host + count * board_power(board, mean_activity(breakdown, model), model),
        waiting=host + count * board_power(board, model.activity.waiting, model),
        idle=host + count * board_power(board, 0.0, model),
    )


def board_power(board: Accelerator, activity: float, model: PowerModel) -> float:
    """Return the watts of a board at an activity from 0 (idle) to 1 (its limit)."""
    idle = board.idle_power or model.idle_share * board.power
    return float(idle + (board.power - idle) * activity)


def mean_activity(breakdown: Breakdown, model: PowerModel) -> float:
    """Return the mean over a step of the share of power above idle, from 0 to 1."""
    drawn = sum(
        seconds * _activity(category, model.activity)
        for category, seconds in breakdown.seconds.items()
    )
    return drawn / breakdown.total


def step_energy(
    profile: Profile, breakdown: Breakdown, accelerators: int, model: PowerModel
) -> float:
    """Return the joules that a step takes of `accelerators` and their hosts, cooling apart."""
    nodes = accelerators / profile.node.accelerators
    return nodes * node_power(profile, breakdown, model).training * breakdown.total


def assumed(model: PowerModel) -> tuple[str, ...]:
    """Return in words what a power model assumes."""
    shares: Mapping[str, float] = model.activity.model_dump()
    drawn = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return (
        f"power model {model.name}: boards idle at {model.idle_share:.0%} of their limit where the "
        f"profile does not say, and draw of the rest at {drawn}; hosts at {model.host.share:.0%} "
        "of their maximum",
    )


def _activity(category: Category, activity: Activity) -> float:
    match category:
        case Category.GEMM | Category.ATTENTION | Category.RECOMPUTE:
            return activity.matrix
        case Category.MEMORY_BOUND | Category.OPTIMIZER:
            return activity.memory
        case (
            Category.TENSOR_COMM
            | Category.CONTEXT_COMM
            | Category.EXPERT_COMM
            | Category.HOST_COMM
            | Category.PIPELINE_COMM
            | Category.DATA_COMM
        ):
            return activity.communication
        case Category.BUBBLE | Category.LAUNCH:
            return activity.waiting
        case _:
            assert_never(category)
