"""Fitting of a stack's free constants on the rows it lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.fit_stack import fit_stack, with_constants
from simulator.errors import InputError
from simulator.workload.stack import Stack, load_stack, stack_names
from tests.data import data_folder, needs_data

AT_MOST = 10
"""Step rows that may fit a stack."""


def refitted(stack: Stack, *, free: tuple[str, ...], rows: tuple[str, ...]) -> dict[str, float]:
    fit = stack.fit.model_copy(update={"free": free, "rows": rows})
    return fit_stack(stack.model_copy(update={"fit": fit}), steps())


def steps() -> Path:
    return data_folder() / "steps"


def test_constants_are_put_where_their_names_say() -> None:
    stack = with_constants(
        load_stack("nanotron"), {"scale.h100_sxm": 1.5, "kernels.memory_factor": 1.25}
    )
    assert (stack.fit.scale["h100_sxm"], stack.kernels.memory_factor) == (1.5, 1.25)


@pytest.mark.parametrize("name", stack_names())
def test_no_stack_was_fitted_on_more_rows_than_allowed(name: str) -> None:
    assert len(set(load_stack(name).fit.rows)) <= AT_MOST


def test_a_constant_that_cannot_be_fitted_is_refused_by_name(tmp_path: Path) -> None:
    stack = load_stack("megatron-lm-2021")
    fit = stack.fit.model_copy(update={"free": ("kernels.cpu_lunch",)})
    with pytest.raises(InputError, match=r"kernels\.cpu_launch"):
        fit_stack(stack.model_copy(update={"fit": fit}), tmp_path)


@needs_data
def test_a_row_that_is_not_in_the_tables_is_refused_by_name() -> None:
    stack = load_stack("megatron-lm-2021")
    with pytest.raises(InputError, match="no-such-row: no such step row"):
        refitted(stack, free=stack.fit.free, rows=("no-such-row",))


@needs_data
def test_the_shipped_constant_is_what_its_rows_give() -> None:
    stack = load_stack("megatron-lm-2021")
    found = refitted(stack, free=stack.fit.free, rows=stack.fit.rows)
    assert found == {"kernels.memory_factor": stack.kernels.memory_factor}


@needs_data
def test_a_constant_at_the_edge_of_its_range_is_refused() -> None:
    # Given both, these rows push the memory factor to the end of its range.
    stack = load_stack("bigscience")
    with pytest.raises(InputError, match="at the edge of this constant's range"):
        refitted(stack, free=("scale", "kernels.memory_factor"), rows=stack.fit.rows)
