"""What the figures of a step are said to count, and what is said of its replicas."""

from __future__ import annotations

import traincast
from reports.records import HFU_CONVENTION, mfu_convention, network_record
from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.workload.job import Lora, Part, TrainingJob

JOB = TrainingJob(global_batch_size=8, seq_length=32_768)


def test_a_job_that_trains_everything_counts_three_forward_passes() -> None:
    assert "(3 x forward;" in mfu_convention(JOB)


def test_frozen_weights_are_said_to_have_no_weight_gradient() -> None:
    frozen = (
        JOB.model_copy(update={"lora": Lora(rank=16)}),
        JOB.model_copy(update={"freeze": (Part.MLP,)}),
    )
    text = "(forward, and backward without the weight gradients of frozen weights;"
    assert all(text in mfu_convention(job) for job in frozen)


def test_the_mask_that_brings_hfu_below_mfu_is_named() -> None:
    stack, profile = traincast.load_stack("megatron-core"), traincast.load_profile("dgx-h100")
    model, layout = traincast.load_model("llama3.1-8b").spec, traincast.ParallelLayout(dp=8)
    result = Forecaster(model, JOB, stack, profile, 8).estimate(layout)
    assert (result.hfu < result.mfu, "below MFU" in HFU_CONVENTION) == (True, True)


def test_a_record_says_in_words_whether_replicas_were_played_apart() -> None:
    stack, profile = traincast.load_stack("megatron-core"), traincast.load_profile("dgx-h100")
    model, layout = traincast.load_model("llama3.1-8b").spec, traincast.ParallelLayout(dp=8)
    plain = Forecaster(model, JOB, stack, profile, 8)
    every = dict.fromkeys(range(8), 1.1)
    records = [
        network_record(plain.under(Conditions(slow=slow)).simulate(layout, spans=False))
        for slow in ({}, {5: 1.1}, every)
    ]
    said = [(record["played_replicas"], " ".join(record["notes"])[:50]) for record in records]
    assert said == [
        (None, ""),
        (2, "data-parallel replicas differ: 2 kinds of them wer"),
        (1, "all data-parallel replicas have the same slow stag"),
    ]
