"""Reads a model description, from a file's table to a checked `ModelSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from simulator.errors import InputError, Problem
from simulator.files import parse_record
from simulator.workload.model import ModelSpec


def parse_model(data: Mapping[str, Any], where: str) -> ModelSpec:
    """Return `data` as a model; `where` names the file in error messages.

    `num_key_value_heads` may be left out (as many as query heads), and `head_dim` too
    (hidden_size / num_attention_heads; with latent attention qk_nope_head_dim + qk_rope_head_dim).

    Raises:
        InputError: with one problem for every wrong, missing or unknown key.
    """
    filled, problems = _fill_heads(data, where)
    try:
        spec = parse_record(ModelSpec, filled, where)
    except InputError as error:
        raise InputError(*problems, *map(_with_fix, error.problems)) from error
    if problems:
        raise InputError(*problems)
    return spec


def _fill_heads(data: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[Problem]]:
    """Return `data` with heads filled in, and what keeps them from being worked out.

    What cannot be worked out is 1, so that only its cause is reported.
    """
    filled = dict(data)
    hidden, heads = data.get("hidden_size"), data.get("num_attention_heads")
    if data.get("num_key_value_heads") is None:
        filled["num_key_value_heads"] = heads if _is_count(heads) else 1
    if data.get("head_dim") is not None:
        return filled, []
    filled["head_dim"] = _latent_head_dim(data.get("mla"))
    if data.get("mla") is not None:
        return filled, []
    if not (_is_count(hidden) and _is_count(heads)):
        return filled, []
    filled["head_dim"] = max(hidden // heads, 1)
    return filled, [_indivisible(hidden, heads, where)] if hidden % heads else []


def _latent_head_dim(mla: object) -> int:
    parts = ("qk_nope_head_dim", "qk_rope_head_dim")
    widths = [mla.get(key) for key in parts] if isinstance(mla, Mapping) else []
    return sum(width for width in widths if _is_count(width)) or 1


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _indivisible(hidden: int, heads: int, where: str) -> Problem:
    below, above = hidden // heads * heads, -(-hidden // heads) * heads
    nearest = f"{below} or {above}" if below else f"{above}"
    return Problem(
        where=where,
        key="hidden_size",
        found=str(hidden),
        rule=f"must be a multiple of num_attention_heads {heads} where head_dim is not given",
        fix=f"use hidden_size {nearest}, or give head_dim",
    )


def _with_fix(problem: Problem) -> Problem:
    """Return `problem` with the legal values, which validators write after a semicolon, as fix."""
    rule, _, legal = problem.rule.partition("; use ")
    if problem.fix or not legal:
        return problem
    return replace(problem, rule=rule, fix=f"use {legal}")
