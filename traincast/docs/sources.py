"""Docstrings under attributes, which exist in source text only."""

from __future__ import annotations

import ast
import inspect
import textwrap


def attribute_docs(kind: type) -> dict[str, str]:
    """Return the docstring under each attribute of a class that has one."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for statement in body.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)]):
                name = target
            case ast.AnnAssign(target=ast.Name(id=target)):
                name = target
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                found[name] = inspect.cleandoc(text)
            case _:
                name = ""
    return found
