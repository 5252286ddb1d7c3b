"""The two copies of DualPipe, and the ends that a V brings together, in parameters and traffic."""

from __future__ import annotations

import pytest

from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.parallel.program import StepProgram, build_program
from simulator.schedule.tasks import WorkKind
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster, step_of

PAIR = ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.DUALPIPE)
V = ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.ZERO_BUBBLE_V)
LOOP = ParallelLayout(pp=2, vpp=2)
TABLE = 1024 * 64


def program_of(layout: ParallelLayout, *, tied: bool = False) -> StepProgram:
    model = tiny_model(tie_word_embeddings=tied)
    return build_program(model, tiny_job(), fake_stack(), layout, 8)


def test_dualpipe_holds_the_model_twice_and_each_stage_both_of_its_parts() -> None:
    program = program_of(PAIR)
    held = [program.stage_parameters(stage) for stage in range(2)]
    assert held == [tiny_model().parameters] * 2


def test_dualpipe_cuts_the_model_into_pp_parts() -> None:
    layers = [sum(n for _, n in chunk.whole.layers) for chunk in program_of(PAIR).chunks]
    assert layers == [2, 2, 2, 2]


def test_the_first_stage_of_a_v_holds_both_ends() -> None:
    first, last = program_of(V).stage_chunks(0)
    assert (first.whole.embedding, last.whole.head) == (True, True)


@pytest.mark.parametrize(("layout", "tables"), [(LOOP, 2), (V, 1), (PAIR, 2)])
def test_a_tied_table_stands_once_where_the_ends_meet(layout: ParallelLayout, tables: int) -> None:
    tied = sum(map(program_of(layout, tied=True).stage_parameters, range(2)))
    apart = sum(map(program_of(layout).stage_parameters, range(2)))
    copies = 2 if layout is PAIR else 1
    assert apart - tied == (2 * copies - tables) * TABLE


@pytest.mark.parametrize(("layout", "ties"), [(LOOP, True), (V, False), (PAIR, False)])
def test_only_a_loop_reduces_a_tied_table_between_its_ends(
    layout: ParallelLayout, ties: bool
) -> None:
    assert program_of(layout, tied=True).ties_stages is ties


def test_copies_reduce_their_gradients_also_with_one_replica() -> None:
    # All-reduce of 2 ranks: 2 x 1/2 of 2 bytes a parameter over 100 GB/s.
    step = step_of(PAIR)
    expected = [2 * c.whole.parameters / 100e9 for c in reversed(step.program.chunks)]
    assert step.seconds(WorkKind.REDUCE) == pytest.approx(expected)


def test_zero_1_spreads_the_states_of_both_copies() -> None:
    layout = PAIR.model_copy(update={"zero_stage": 1, "dp": 2})
    cast = forecaster(layout)
    use = cast.memory(layout)[0]
    parameters = tiny_model().parameters
    # Both parts whole in weights and gradients; states over 2 x dp ranks.
    assert (use.weights, use.gradients) == (2 * parameters, 2 * parameters)
    assert use.optimizer == 12 * parameters / 4


def test_half_of_the_micro_batches_pass_each_copy() -> None:
    step = step_of(PAIR)
    graph = step.graph
    passes = {place: [] for place in range(4)}  # type: dict[int, list[int]]
    for work, micro_batch in zip(graph.work, graph.micro_batch, strict=True):
        if graph.works[work].kind is WorkKind.FORWARD:
            passes[graph.works[work].chunk].append(micro_batch)
    assert [sorted(found) for found in passes.values()] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [4, 5, 6, 7],
    ]


def test_zero_bubble_peaks_are_counted_in_bytes() -> None:
    # Stage 0 holds two micro-batches. Stage 1 runs F I F I W: it holds one and one that waits for
    # its weights, then two that wait, which is more with the gradient of the logits.
    layout = ParallelLayout(pp=2, schedule=ScheduleName.ZERO_BUBBLE_H1)
    cast = forecaster(layout)
    program = cast.program(layout)
    parts = [cast.costs.parts(program, chunk.whole) for chunk in program.chunks]
    kept = [sum(priced.passes.kept * n for priced, n in part) for part in parts]
    waiting = sum(p.kept_for_weights * n for p, n in parts[1])
    held = [use.activations for use in cast.memory(layout)]
    assert waiting > kept[1]
    assert held == [2 * kept[0], 2 * waiting]


def test_each_copy_of_dualpipe_runs_half_of_the_passes() -> None:
    # FLOP as the hardware runs them are those of the same parts in a V.
    flops = [
        forecaster(layout).estimate(layout).hardware_flops
        for layout in (PAIR, ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.DUALPIPE_V))
    ]
    assert flops[0] == pytest.approx(flops[1])
