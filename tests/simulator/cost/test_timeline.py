"""What runs inside a pass fills it exactly, in every stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.api import Forecaster
from simulator.cost.timeline import COLLECTIVE, OPERATOR, operator_spans
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.results import Span
from simulator.scenario import load_scenario
from tests.simulator.steps import forecaster

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = ["gpt-18b-gpipe", "llama3.1-8b-dgx-h100", "llama3.1-8b-hsdp", "lan-ddp"]


def inside(name: str) -> tuple[list[Span], tuple[Span, ...]]:
    """Return the passes of the first micro-batch of an example, and what runs inside them."""
    scenario = load_scenario(EXAMPLES / f"{name}.toml")
    cast = Forecaster.of(scenario)
    layout = scenario.file.layout
    assert layout is not None
    world = layout.tp * layout.cp * layout.pp
    layout = layout.model_copy(update={"dp": scenario.world_size // world})
    spans = cast.simulate(layout).spans
    found = operator_spans(cast.costs, cast.program(layout), spans, 1)
    passes = [s for s in spans if s.name in ("forward", "backward") and s.micro_batch == 0]
    return passes, found


@pytest.mark.parametrize("name", NAMES)
def test_every_piece_lies_inside_a_pass(name: str) -> None:
    passes, found = inside(name)
    strays = [
        piece
        for piece in found
        if not any(
            p.stage == piece.stage and p.start - 1e-9 <= piece.start <= piece.stop <= p.stop + 1e-9
            for p in passes
        )
    ]
    assert (strays, {piece.stream for piece in found} <= {OPERATOR, COLLECTIVE}) == ([], True)


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_has_operators(name: str) -> None:
    passes, found = inside(name)
    seen = {(piece.stage, piece.chunk) for piece in found}
    assert seen == {(p.stage, p.chunk) for p in passes}


def test_recomputation_is_named() -> None:
    _, found = inside("gpt-18b-gpipe")
    assert "recompute attention.core" in {piece.name for piece in found} or any(
        piece.name.startswith("recompute ") for piece in found
    )


def test_split_backward_passes_show_their_own_operators() -> None:
    layout = ParallelLayout(pp=2, schedule=ScheduleName.ZERO_BUBBLE_H1)
    cast = forecaster(layout)
    result = cast.simulate(layout)
    inside = operator_spans(cast.costs, cast.program(layout), result.spans, 1)
    names = {span.name for span in inside if span.stage == 0}
    assert {"mlp.up", "mlp.up.dgrad", "mlp.up.wgrad"} <= names
