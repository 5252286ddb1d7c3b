"""What `explain` changes by itself: the shipped table of changes, levers and next machines."""

from __future__ import annotations

from pydantic import Field

from planner.changes import Change, changed
from planner.shipped import read_shipped
from simulator.aims import ChangeValue, WhatIfFile
from simulator.files import FileRecord
from simulator.hardware.profile import load_profile
from simulator.scenario import Scenario

WHAT_IF_FOLDER = "what_if"
CHANGES = "changes"
"""The shipped table."""


class Lever(FileRecord):
    """Constants that are multiplied by one factor together."""

    name: str
    change: tuple[str, ...] = Field(min_length=1)
    """Keys."""
    most: float = Field(gt=0)
    """Largest factor that is tried; below 1, the smallest."""
    whole: bool = False
    """Whether only powers of 2 are tried, as the keys are whole numbers."""

    def at(self, factor: float) -> Change:
        """Return the change at a factor."""
        return dict.fromkeys(self.change, f"x{factor:.9g}")


class WhatIfTable(FileRecord):
    """The shipped changes."""

    name: str
    title: str
    what_if: tuple[WhatIfFile, ...]
    lever: tuple[Lever, ...]
    successor: dict[str, str]
    """Profile -> the next machine of its line."""


def what_if_table() -> WhatIfTable:
    """Return the shipped table."""
    return read_shipped(WhatIfTable, WHAT_IF_FOLDER, CHANGES, "", "")


def changes_of(scenario: Scenario, table: WhatIfTable) -> tuple[WhatIfFile, ...]:
    """Return the changes to try: the shipped ones, the next machine, the scenario's own."""
    return (*table.what_if, *_next_machine(scenario, table), *scenario.file.what_if)


def _next_machine(scenario: Scenario, table: WhatIfTable) -> tuple[WhatIfFile, ...]:
    """Return the change to as many accelerators of the next machine, where one is shipped."""
    name = table.successor.get(scenario.profile.name)
    if name is None or scenario.mixed:
        return ()
    count, rest = divmod(scenario.world_size, load_profile(name).node.accelerators)
    if rest:
        return ()
    change: dict[str, ChangeValue] = {"cluster.profile": name, "cluster.nodes": count}
    return (WhatIfFile(name=f"next machine: {name}", change=change),)


def check_changes(scenario: Scenario) -> None:
    """Raise `InputError` where a change of the scenario's own names what is not there."""
    for own in scenario.file.what_if:
        changed(scenario, own.change, own.name)
