"""The page of the command line, from the parsers that read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from traincast.cli import app
from traincast.docs.markdown import cell, code, page, table

_HELP = "--help"
_HANDED_ON = "-- "
_EXIT = [
    ["0", "fine"],
    ["1", "nothing satisfies the input (no layout fits), or a check failed"],
    ["2", "wrong usage or wrong input; all errors of a file are shown at once"],
    ["130", "interrupted"],
]


def cli_page() -> str:
    """Return the page of all verbs with their arguments and options."""
    root: Any = get_command(app)
    verbs = [(path, command) for path, command in _walk("traincast", root) if command is not root]
    return page(
        "Command line",
        cell(str(root.help or "")),
        table(["verb", "does"], [[code(path), _summary(command)] for path, command in verbs]),
        "Options of `traincast` itself:" if _parameters(root) else "",
        _parameters(root),
        *(_section(path, command) for path, command in verbs),
        "## Exit status",
        table(["status", "means"], _EXIT),
    )


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the commands that do something; a group that only holds others is passed through."""
    inner = getattr(command, "commands", None)
    if not inner or getattr(command, "invoke_without_command", False) or path == "traincast":
        yield path, command
    for name, child in sorted((inner or {}).items()):
        if not child.hidden:
            yield from _walk(f"{path} {name}", child)


def _summary(command: Any) -> str:
    return cell(str(command.help or "").partition("\n\n")[0])


def _section(path: str, command: Any) -> str:
    return "\n\n".join(
        part
        for part in (f"## {path}", _usage(path, command), _help(command), _parameters(command))
        if part
    )


def _usage(path: str, command: Any) -> str:
    arguments = [_argument(p) for p in command.params if p.param_type_name == "argument"]
    options = any(p.param_type_name == "option" and _HELP not in p.opts for p in command.params)
    # What is handed on to another command stands behind `--`, and so behind our own options.
    own = [argument for argument in arguments if not argument.startswith(_HANDED_ON)]
    handed_on = [argument for argument in arguments if argument.startswith(_HANDED_ON)]
    words = [path, *own, *(["[OPTIONS]"] if options else []), *handed_on]
    return "```text\n" + " ".join(words) + "\n```"


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper()).rstrip(".")
    dots = "..." if parameter.nargs == -1 else ""
    return name + dots if parameter.required else f"[{name}{dots}]"


def _help(command: Any) -> str:
    paragraphs = str(command.help or "").replace("\b", "").split("\n\n")
    return "\n\n".join(cell(paragraph) for paragraph in paragraphs)


def _parameters(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if _HELP in parameter.opts or getattr(parameter, "hidden", False):
            continue
        option = parameter.param_type_name == "option"
        names = _option_names(parameter) if option else [_argument(parameter)]
        rows.append([", ".join(map(code, names)), _default(parameter), cell(_words(parameter))])
    return table(["", "default", "meaning"], rows) if rows else ""


def _option_names(parameter: Any) -> list[str]:
    taken = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    return [name + taken for name in (*parameter.opts, *parameter.secondary_opts)]


def _words(parameter: Any) -> str:
    kind = getattr(parameter, "type", None) or parameter.type_descriptor.annotation
    choices = getattr(kind, "choices", None) or getattr(kind, "__members__", {}).values()
    listed = "; one of " + ", ".join(code(_plain(c)) for c in choices) if choices else ""
    words = str(parameter.help or "")
    return words.rstrip(".") + listed if listed else words


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if value in (None, (), False) or callable(value) or type(value).__name__ == "Sentinel":
        return ""
    return code(_plain(value))


def _plain(value: object) -> str:
    return str(getattr(value, "value", value))
