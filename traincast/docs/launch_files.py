"""The page of launch files: which argument of which framework is which key of a scenario."""

from __future__ import annotations

from planner.launch.records import Argument, Tool, ToolEntry
from planner.launch.registry import TOOLS
from traincast.docs.markdown import code, page, table


def launch_page() -> str:
    """Return the page of the arguments that launch files are written in and read from."""
    return page(
        "Launch files",
        "What `traincast launch export` writes and `traincast launch import` reads: the arguments "
        "of each framework that a forecast follows, and the keys that they are. Arguments that do "
        "not change a forecast (learning rate, paths, logging) are listed by an import; every "
        "other one is refused by name. How to use it: "
        "[../how-to/launch-files.md](../how-to/launch-files.md).",
        *(_section(tool, entry) for tool, entry in TOOLS.items()),
    )


def _section(tool: Tool, entry: ToolEntry) -> str:
    stacks = ", ".join(code(name) for name in entry.stacks)
    rows = [[code(argument.name), _key(argument), argument.note] for argument in entry.arguments]
    return "\n\n".join(
        [
            f"## {tool}",
            f"{entry.title}. Names of {entry.version}; stacks {stacks}, the first of which an "
            "import takes.",
            table(["argument", "key", "note"], rows),
        ]
    )


def _key(argument: Argument) -> str:
    return code(argument.key) if argument.key else ""
