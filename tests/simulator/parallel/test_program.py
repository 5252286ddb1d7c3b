"""The step program: parameters of every rank, chunks, segments, and what passes between stages."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.chunks import local_vocab
from simulator.parallel.layout import DataParallel, ParallelLayout
from simulator.parallel.program import StepProgram, build_program
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from tests.fakes import fake_stack, tiny_job, tiny_model

H, L, V, S = 64, 4, 1024, 32
LAYER = 12 * H * H + 13 * H
"""GPT layer: qkv 3h^2 + 3h, projection h^2 + h, MLP 8h^2 + 5h, two norms 4h."""
TABLE, POSITIONS, FINAL_NORM = V * H, S * H, 2 * H
LOCAL_LAYER = {
    # Divided: 12 h^2 + 3h + 4h of column-parallel biases; not: 2h of row-parallel biases, 4h.
    tp: (12 * H * H + 7 * H) / tp + 6 * H
    for tp in (1, 2, 4)
}


def program_of(
    layout: ParallelLayout,
    *,
    model: ModelSpec | None = None,
    stack: Stack | None = None,
    domains: int = 8,
) -> StepProgram:
    stack = stack or fake_stack()
    return build_program(model or tiny_model(), tiny_job(), stack, layout, domains)


def test_parameters_of_a_gpt_are_those_of_its_formula() -> None:
    assert tiny_model().parameters == L * LAYER + 2 * TABLE + POSITIONS + FINAL_NORM


def test_one_rank_holds_the_whole_model() -> None:
    assert program_of(ParallelLayout()).stage_parameters(0) == tiny_model().parameters


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_stages_hold_their_layers_and_the_ends_the_embedding_and_the_head(tp: int) -> None:
    program = program_of(ParallelLayout(tp=tp, pp=2))
    two_layers = 2 * LOCAL_LAYER[tp]
    assert [program.stage_parameters(stage) for stage in range(2)] == [
        two_layers + TABLE / tp + POSITIONS,
        two_layers + TABLE / tp + FINAL_NORM,
    ]


def test_tied_embedding_is_held_once_on_one_stage_and_at_both_ends_of_a_pipeline() -> None:
    tied = tiny_model(tie_word_embeddings=True)
    held = [
        sum(map(program.stage_parameters, range(pp)))
        for pp in (1, 2)
        for program in [program_of(ParallelLayout(pp=pp), model=tied)]
    ]
    assert held == [tied.parameters, tied.parameters + TABLE]


def test_key_value_heads_are_replicated_where_there_are_fewer_than_tp() -> None:
    model = tiny_model(num_key_value_heads=1, attention_bias=False)
    local = program_of(ParallelLayout(tp=4), model=model).chunks[0].whole.layers[0][0].layer
    whole = program_of(ParallelLayout(tp=4), model=model).stage_parameters(0)
    ends = 2 * TABLE / 4 + POSITIONS + FINAL_NORM
    key_value = 2 * H * 16
    divided = (local.sharded_parameters - key_value) / 4
    assert whole == ends + L * (divided + key_value + local.replicated_parameters)


@given(tp=st.sampled_from((1, 2, 4)), pp=st.integers(1, 4), dp=st.integers(1, 4))
def test_all_layers_stand_on_some_stage(tp: int, pp: int, dp: int) -> None:
    program = program_of(ParallelLayout(tp=tp, pp=pp, dp=dp))
    assert sum(n for chunk in program.chunks for _, n in chunk.whole.layers) == L


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any),
    zero_stage=st.integers(0, 3),
    bucket=st.sampled_from((1, 60_000, 10**9)),
    first=st.sampled_from((None, 1, 10**9)),
    overlaps=st.booleans(),
)
def test_segments_of_a_chunk_add_up_to_it(
    counts: list[int], zero_stage: int, bucket: int, first: int | None, overlaps: bool
) -> None:
    model = tiny_model(num_hidden_layers=sum(counts))
    layout = ParallelLayout(
        pp=len(counts), dp=2, zero_stage=zero_stage, layers_per_stage=tuple(counts)
    )
    stack = fake_stack(
        bucket_parameters=bucket,
        first_bucket_parameters=first,
        overlap={"gradient_reduce": overlaps},
    )
    program = program_of(layout, model=model, stack=stack)
    assert [sum(s.parameters for s in chunk.segments) for chunk in program.chunks] == [
        pytest.approx(chunk.whole.parameters) for chunk in program.chunks
    ]


@pytest.mark.parametrize(
    ("changes", "segments"),
    [
        ({}, 1),
        ({"zero_stage": 3}, 4),
        ({"zero_stage": 3, "dp": 1}, 1),
        ({"data_parallel": DataParallel.PARAMETER_SERVER}, 1),
        ({"data_parallel": DataParallel.LOCAL_SGD}, 1),
    ],
)
def test_only_sharded_parameters_travel_layer_by_layer(
    changes: dict[str, object], segments: int
) -> None:
    layout = ParallelLayout.model_validate({"dp": 2, **changes})
    assert len(program_of(layout).chunks[0].segments) == segments


def test_overlapped_gradients_travel_in_buckets_of_the_size_of_the_stack() -> None:
    overlap = {"gradient_reduce": True}
    # 4 layers of 50 thousand and two tables of 66 thousand parameters: 336 thousand in all.
    stack = fake_stack(overlap=overlap, bucket_parameters=170_000)
    (chunk,) = program_of(ParallelLayout(dp=2), stack=stack).chunks
    assert [sum(n for _, n in segment.layers) for segment in chunk.segments] == [2, 2]


@pytest.mark.parametrize(
    ("first", "bucket", "cut"),
    [
        # Tables of 66 thousand, layers of 50 thousand parameters.
        (1, 1, ["embedding", "layer", "layer", "layer", "layer", "head"]),
        (1, 10**9, ["embedding layer layer layer layer", "head"]),
        (10**9, 10**9, ["embedding layer layer layer layer head"]),
        (1, 90_000, ["embedding", "layer layer", "layer layer", "head"]),
        (100_000, 10**9, ["embedding layer layer layer", "layer head"]),
    ],
)
def test_buckets_are_filled_from_the_head_backwards(
    first: int, bucket: int, cut: list[str]
) -> None:
    stack = fake_stack(
        overlap={"gradient_reduce": True}, bucket_parameters=bucket, first_bucket_parameters=first
    )
    (chunk,) = program_of(ParallelLayout(dp=2), stack=stack).chunks
    names = [
        [
            *["embedding"] * segment.embedding,
            *["layer"] * sum(n for _, n in segment.layers),
            *["head"] * segment.head,
        ]
        for segment in chunk.segments
    ]
    assert [" ".join(part) for part in names] == cut


def test_ends_are_units_of_their_own_where_parameters_are_sharded() -> None:
    stack = fake_stack(first_bucket_parameters=10**9)
    (chunk,) = program_of(ParallelLayout(dp=2, zero_stage=3), stack=stack).chunks
    assert [len(segment.layers) for segment in chunk.segments] == [0, 1, 1, 1, 1, 0]


def test_a_pipeline_rank_holds_every_pp_th_chunk() -> None:
    program = program_of(ParallelLayout(pp=2, vpp=2))
    assert program.stage_chunks(1) == (program.chunks[1], program.chunks[3])


@pytest.mark.parametrize(
    ("slices", "sequence_parallel", "boundary", "regathered"),
    [
        # micro-batch 1, s = 32, h = 64, 2 bytes: 4096 bytes whole.
        (True, False, 1024, 4096),
        (False, False, 4096, 0),
        (True, True, 1024, 0),
        (False, True, 1024, 0),
    ],
)
def test_activations_cross_in_slices_or_whole(
    slices: bool, sequence_parallel: bool, boundary: int, regathered: int
) -> None:
    layout = ParallelLayout(tp=4, pp=2, sequence_parallel=sequence_parallel)
    program = program_of(layout, stack=fake_stack(overlap={"pipeline_slices": slices}))
    assert (program.boundary, program.regathered) == (boundary, regathered)


@given(
    vocab=st.integers(1, 10**6), divisor=st.sampled_from((1, 8, 128)), tp=st.sampled_from((1, 2, 8))
)
def test_vocabulary_is_padded_to_the_next_multiple(vocab: int, divisor: int, tp: int) -> None:
    rows = local_vocab(vocab, divisor, tp) * tp
    assert rows % (divisor * tp) == 0
    assert 0 <= rows - vocab < divisor * tp


@given(
    sizes=st.tuples(*(st.sampled_from((1, 2, 4)) for _ in range(4))),
    shard=st.sampled_from((1, 2, 4)),
    domain=st.sampled_from((1, 4, 8, 64)),
)
def test_shards_times_replicas_are_all_data_ranks(
    sizes: tuple[int, int, int, int], shard: int, domain: int
) -> None:
    tp, cp, dp, pp = sizes
    shard = min(shard, dp * cp)
    layout = ParallelLayout(tp=tp, cp=cp, dp=dp, pp=pp, zero_stage=1, shard_size=shard)
    program = program_of(layout, domains=domain)
    assert program.data_group.size * program.replica_group.size == prod((cp, dp))
