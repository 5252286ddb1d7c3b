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


def test_narrow_formats_have_their_own_constants() -> None:
    stack = with_constants(load_stack("megatron-core"), {"fp8.h100_sxm": 0.75})
    assert stack.fit.fp8 == {"h100_sxm": 0.75}
    assert stack.fit.fp4 == {}


@needs_data
def test_narrow_constants_are_fitted_where_rows_are_narrow() -> None:
    # Two runs of the same model and layout; the constant is what their gap leaves open.
    names = ("dgxc-v24.11.1-llama3.1-8b-H100x16-bf16", "dgxc-v24.11.1-llama3.1-8b-H100x16-fp8")
    stack = load_stack("megatron-core")
    assert refitted(stack, free=("scale",), rows=names[:1]).keys() == {"scale.h100_sxm"}
    assert refitted(stack, free=("scale", "fp8"), rows=names[:1]).keys() == {"scale.h100_sxm"}
    assert refitted(stack, free=("scale", "fp8"), rows=names).keys() == {
        "scale.h100_sxm",
        "fp8.h100_sxm",
    }


@needs_data
def test_a_constant_named_with_its_accelerator_is_free_on_that_one_alone() -> None:
    rows = (
        "dgxc-v24.11.1-llama3.1-8b-H100x16-bf16",
        "simumax-b200-llama3_70b_l12_tp8_pp1_dp1_mbc4_cef",
    )
    stack = load_stack("megatron-core")
    assert refitted(stack, free=("scale.h100_sxm",), rows=rows).keys() == {"scale.h100_sxm"}


@needs_data
def test_a_constant_that_a_row_switches_off_stays_off() -> None:
    stack = load_stack("megatron-bridge")
    row = "simumax-b200-llama3_70b_l12_tp8_pp1_dp1_mbc4_cef"
    found = refitted(stack, free=("overlap.tensor_fraction",), rows=(row,))
    assert found["overlap.tensor_fraction"] == pytest.approx(0.5)


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
