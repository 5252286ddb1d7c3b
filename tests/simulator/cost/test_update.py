"""The optimizer's update by hand: bytes of states, passes, orthogonalisation, compression."""

from __future__ import annotations

import pytest

from simulator.cost.update import update_seconds
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.states import groups, state_bytes
from simulator.parallel.traffic import reduced
from simulator.workload.job import Dtypes, Optimizer, TrainingJob
from tests.fakes import MEMORY_BANDWIDTH, PEAK, fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster

MODEL = tiny_model()
H, LAYERS, VOCAB, POSITIONS = 64, 4, 1024, 32
MATRICES = LAYERS * 12 * H * H
ALL = MODEL.parameters
TABLES = (2 * VOCAB + POSITIONS) * H
VECTORS = ALL - MATRICES - TABLES
QUIET = fake_stack(numerics={"gradient_passes": 0.0})
SHAPES = {(H, 3 * H): 4, (H, H): 4, (H, 4 * H): 4, (4 * H, H): 4}


def seconds(job: TrainingJob, **layout: int) -> float:
    plan = ParallelLayout.model_validate(layout)
    cast = forecaster(plan, job=job, stack=QUIET)
    return update_seconds(cast.program(plan), 0, cast.costs.kernels)


def states(job: TrainingJob) -> float:
    program = forecaster(ParallelLayout(), job=job).program(ParallelLayout())
    rest, _ = groups(program, 0)
    return state_bytes(program, rest)


def orthogonalised(k: int, n: int) -> float:
    """FLOP of five steps for one matrix: two products of 2 n n m, and one of 2 n n n."""
    n, m = sorted((k, n))
    return 5 * (2 * n * n * m + 2 * n * n * n + 2 * n * n * m)


def test_groups_know_every_matrix() -> None:
    plan = ParallelLayout()
    program = forecaster(plan, job=tiny_job(optimizer=Optimizer.MUON)).program(plan)
    rest, experts = groups(program, 0)
    assert (dict(rest.matrices), rest.matrix_parameters) == (SHAPES, MATRICES)
    assert (sum(k * n for k, n in rest.tables), experts.parameters) == (TABLES, 0)


@pytest.mark.parametrize(
    ("optimizer", "bytes_kept"),
    [
        (Optimizer.ADAM, 8 * ALL),
        (Optimizer.ADAM_8BIT, 2 * (1 + 4 / 256) * ALL),
        (Optimizer.MUON, 4 * MATRICES + 8 * (ALL - MATRICES)),
        (
            Optimizer.ADAFACTOR,
            4
            * (
                VECTORS
                + sum((k + n) * count for (k, n), count in SHAPES.items())
                + 2 * (VOCAB + H)
                + POSITIONS
                + H
            ),
        ),
        (Optimizer.SGD_MOMENTUM, 4 * ALL),
        (Optimizer.SGD, 0),
    ],
)
def test_bytes_of_states(optimizer: Optimizer, bytes_kept: float) -> None:
    assert states(tiny_job(optimizer=optimizer)) == bytes_kept


@pytest.mark.parametrize(
    ("optimizer", "each"),
    [
        # Master read and written, gradient read, parameter written; states read and written.
        (Optimizer.ADAM, 8 + 2 + 2 + 16),
        (Optimizer.ADAM_8BIT, 8 + 2 + 2 + 2 * 2 * (1 + 4 / 256)),
        (Optimizer.SGD_MOMENTUM, 8 + 2 + 2 + 8),
        (Optimizer.SGD, 8 + 2 + 2),
    ],
)
def test_the_update_moves_its_bytes(optimizer: Optimizer, each: float) -> None:
    found = seconds(tiny_job(optimizer=optimizer))
    assert found == pytest.approx(each * ALL / MEMORY_BANDWIDTH)


def test_zero_1_updates_a_shard() -> None:
    assert seconds(tiny_job(), dp=4, zero_stage=1) == pytest.approx(seconds(tiny_job()) / 4)


def test_muon_orthogonalises_each_matrix_in_five_steps() -> None:
    moved = (8 + 2 + 2) * ALL + 2 * (4 * MATRICES + 8 * (ALL - MATRICES))
    flops = sum(orthogonalised(k, n) * count for (k, n), count in SHAPES.items())
    found = seconds(tiny_job(optimizer=Optimizer.MUON))
    assert found == pytest.approx(moved / MEMORY_BANDWIDTH + flops / PEAK)


def test_sharded_muon_deals_whole_matrices() -> None:
    # Four equal matrices of each shape over eight ranks: the busiest has one.
    moved = (8 + 2 + 2) * ALL + 2 * (4 * MATRICES + 8 * (ALL - MATRICES))
    flops = sum(orthogonalised(k, n) for k, n in SHAPES)
    found = seconds(tiny_job(optimizer=Optimizer.MUON), dp=8, zero_stage=1)
    assert found == pytest.approx(moved / 8 / MEMORY_BANDWIDTH + flops / PEAK)


def test_gradients_in_8_bits_on_the_wire_are_cast_and_summed() -> None:
    job = tiny_job(dtypes=Dtypes(reduce=Dtype.INT8))
    plan = ParallelLayout(dp=2)
    program = forecaster(plan, job=job).program(plan)
    assert reduced(program, program.chunks[0].whole).rest == ALL
    extra = seconds(job, dp=2) - seconds(tiny_job(), dp=2)
    # Read 2, write 1; read 1, write 2.
    assert extra == pytest.approx(6 * ALL / MEMORY_BANDWIDTH)


def test_powersgd_sends_two_factors_of_each_matrix() -> None:
    rank, plan = 2, ParallelLayout(dp=2)
    job = tiny_job(powersgd_rank=rank)
    program = forecaster(plan, job=job).program(plan)
    factors = sum(rank * (k + n) * count for (k, n), count in SHAPES.items())
    payload = reduced(program, program.chunks[0].whole).rest
    assert payload == 2 * (factors + TABLES + VECTORS)


def test_powersgd_costs_three_thin_products_and_its_passes() -> None:
    rank, job = 2, tiny_job(powersgd_rank=2)
    flops = sum(3 * 2 * k * n * rank * count for (k, n), count in SHAPES.items())
    moved = sum(2 * (6 * k * n + rank**2 * k) * count for (k, n), count in SHAPES.items())
    extra = seconds(job, dp=2) - seconds(tiny_job(), dp=2)
    assert extra == pytest.approx(flops / PEAK + moved / MEMORY_BANDWIDTH)


def test_powersgd_keeps_the_error_of_each_matrix() -> None:
    plan = ParallelLayout(dp=2)
    (use,) = forecaster(plan, job=tiny_job(powersgd_rank=2)).memory(plan)
    assert use.gradients == 2 * (ALL + MATRICES)
