"""What is refused about experts, with the key it stands under and the fix it names."""

from __future__ import annotations

import pytest

from simulator.hardware.accelerator import Dtype
from simulator.parallel.checks import Reason, Violation, violations
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import Dispatcher, Routing
from simulator.workload.model import ModelSpec
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.parallel.mixtures import SHARED, tiny_mixture


def broken(model: ModelSpec, moe: Routing | None = None, **layout: object) -> list[tuple[str, str]]:
    """Return key and fix of each violation about experts."""
    return [(v.problem.key, v.problem.fix) for v in found(model, moe, **layout)]


def found(model: ModelSpec, moe: Routing | None = None, **layout: object) -> list[Violation]:
    asked = ParallelLayout.model_validate(layout)
    job = tiny_job(moe=moe or Routing())
    return list(violations(model, job, fake_stack(), asked))


def test_a_legal_mixture_breaks_nothing() -> None:
    layout = {"tp": 2, "dp": 4, "ep": 4, "etp": 2, "sequence_parallel": True, "zero_stage": 1}
    assert found(tiny_mixture(SHARED), Routing(load_imbalance=1.2), **layout) == []


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({"dp": 6, "ep": 3}, [("layout.ep", "ep of 1, 2, 4, 8")]),
        (
            {"tp": 2, "dp": 3, "ep": 2, "etp": 3, "sequence_parallel": True},
            [("layout.etp", "etp of 1, 2, 4, 8, 16, 32, 64, 128")],
        ),
        ({"dp": 4, "ep": 8}, [("layout.ep", "ep of 1, 2, 4")]),
        (
            {"tp": 2, "dp": 2, "ep": 2, "etp": 8, "sequence_parallel": True},
            [("layout.ep", "a smaller etp")],
        ),
        ({"tp": 2, "dp": 2}, [("layout.sequence_parallel", "true")]),
        (
            {"dp": 8, "ep": 4, "zero_stage": 1, "shard_size": 2},
            [("layout.shard_size", "8, or a smaller ep")],
        ),
    ],
)
def test_a_layout_that_does_not_fit(
    layout: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    keys = [pair for pair in broken(tiny_mixture(), None, **layout) if "batch" not in pair[0]]
    assert keys == expected


@pytest.mark.parametrize(
    ("moe", "expected"),
    [
        (
            Routing(dispatcher=Dispatcher.FLEX, capacity_factor=1.0),
            [("job.moe.capacity_factor", 'leave it out, or dispatcher = "alltoall"')],
        ),
        (
            Routing(capacity_factor=1.0, load_imbalance=1.1),
            [("job.moe.load_imbalance", "1, or no capacity_factor")],
        ),
        (
            Routing(dispatcher=Dispatcher.ALL_GATHER, two_step=True),
            [("job.moe.two_step", 'false, or dispatcher = "alltoall"')],
        ),
        (
            Routing(dispatch_dtype=Dtype.FP32),
            [("job.moe.dispatch_dtype", "fp8 or bf16")],
        ),
    ],
)
def test_routing_that_contradicts_itself(moe: Routing, expected: list[tuple[str, str]]) -> None:
    assert broken(tiny_mixture(), moe, dp=8, ep=8) == expected


def test_flex_needs_ranks_to_send_to() -> None:
    moe = Routing(dispatcher=Dispatcher.FLEX)
    assert broken(tiny_mixture(), moe) == [("job.moe.dispatcher", '"alltoall", or ep of 2 or more')]


def test_shared_experts_are_cut_by_tp() -> None:
    odd = tiny_mixture(SHARED.model_copy(update={"shared_expert_intermediate_size": 66}))
    reasons = [v.reason for v in found(odd, tp=4, sequence_parallel=True)]
    assert reasons == [Reason.WIDTH]


@pytest.mark.parametrize(
    ("layout", "moe", "expected"),
    [
        ({"dp": 2, "ep": 2}, Routing(), ("layout.ep", "ep = 1")),
        ({"etp": 1}, Routing(), ("layout.etp", "leave it out")),
        ({}, Routing(aux_loss=False), ("job.moe", "leave it out")),
    ],
)
def test_a_dense_model_has_no_experts(
    layout: dict[str, object], moe: Routing, expected: tuple[str, str]
) -> None:
    (violation,) = found(tiny_model(), moe, **layout)
    assert violation.reason is Reason.EXPERTS
    assert (violation.problem.key, violation.problem.fix) == expected


def test_the_refusal_names_what_was_asked() -> None:
    (violation,) = found(tiny_model(), Routing(load_imbalance=1.5, aux_loss=False))
    assert violation.problem.found == "load_imbalance = 1.5, aux_loss = false"


@pytest.mark.parametrize(
    "moe",
    [
        {"dispatch_dtype": Dtype.FP8},
        {"two_step": True},
        {"overlap": True},
        {"dispatcher": Dispatcher.ALL_GATHER},
    ],
)
def test_nothing_is_asked_of_tokens_that_stay_at_home(moe: dict[str, object]) -> None:
    (key,) = moe
    fix = "leave it out, or ep of 2 or more"
    assert broken(tiny_mixture(), Routing.model_validate(moe), dp=2) == [(f"job.moe.{key}", fix)]


def test_the_busiest_rank_has_at_most_all_tokens() -> None:
    moe = Routing(load_imbalance=3.0)
    assert broken(tiny_mixture(), moe, dp=2, ep=2) == [
        ("job.moe.load_imbalance", "at most 2, or a larger ep")
    ]
