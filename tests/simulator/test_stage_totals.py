"""What a stage sends and recomputes agrees with its breakdown and its timeline."""

from __future__ import annotations

import pytest

from simulator.results import Category
from simulator.stage_totals import stage_totals
from tests.simulator.test_detail import played

NAMES = ["gpt-18b-gpipe", "llama3-70b-64-h100", "mixtral-8x7b-64-h100", "llama3.1-8b-fsdp"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_recomputed_adds_up_to_that_part_of_the_breakdown(name: str) -> None:
    forecaster, layout, result = played(name)
    found = [sum(each.recomputed.values()) for each in stage_totals(forecaster, layout, result)]
    said = [each.seconds[Category.RECOMPUTE] for each in result.breakdowns]
    assert found == pytest.approx(said, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_is_at_least_what_nothing_hides(name: str) -> None:
    """Of several stages one also waits for the gradients of others, which it does not send."""
    forecaster, layout, result = played(name)
    kinds = [Category.TENSOR_COMM, Category.EXPERT_COMM]
    kinds += [Category.DATA_COMM] if layout.pp == 1 else []
    totals = stage_totals(forecaster, layout, result)
    late = [
        (each.stage, kind)
        for each, breakdown in zip(totals, result.breakdowns, strict=True)
        for kind in kinds
        if breakdown.seconds[kind] > each.communication.get(kind, 0.0) * (1 + 1e-9)
    ]
    assert late == []


def test_traffic_is_that_of_the_timeline() -> None:
    """64 micro-batches cross 3 boundaries both ways; inside passes all-reduces take the rest."""
    forecaster, layout, result = played("gpt-18b-gpipe")
    totals = stage_totals(forecaster, layout, result)
    sends = [0.0] * layout.pp
    for span in result.spans:
        if span.name.startswith("send"):
            sends[span.stage] += span.stop - span.start
    assert [each.communication[Category.PIPELINE_COMM] for each in totals] == sends
    assert [Category.CONTEXT_COMM in each.communication for each in totals] == [False] * 4
