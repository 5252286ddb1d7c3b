"""The name of a framework on the command line, whose help must load nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.launch.records import Tool

TOOL_NAMES = "megatron-lm, megatron-bridge, torchtitan, deepspeed or nanotron"
"""Every `planner.launch.Tool`, for help texts."""


def tool_named(name: str) -> Tool:
    """Return a framework by its name. Raises `InputError` where there is none."""
    from planner.launch.records import Tool
    from simulator.errors import InputError, Problem
    from simulator.files import nearest

    if name not in list(Tool):
        rule, fix = "is no framework whose launch files are known", nearest(name, list(Tool))
        raise InputError(Problem(key="--tool", found=name[:60], rule=rule, fix=fix))
    return Tool(name)
