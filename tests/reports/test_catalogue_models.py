from __future__ import annotations

import pytest

from reports.catalogue import model_record, model_row
from reports.catalogue_models import attention, experts
from simulator.workload.load import load_model


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("llama3.1-8b", ""),
        ("mixtral-8x7b", "8 x 2"),
        ("deepseek-v3", "256 x 8 + 1 shared"),
        ("deepseek-v2", "160 x 6 + 2 shared"),
        ("llama4-maverick", "128 x 1 + 1 shared"),
    ],
)
def test_experts_are_routed_times_chosen_and_shared(name: str, shown: str) -> None:
    assert experts(load_model(name).spec) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gpt2", "multi-head"),
        ("llama3.1-8b", "grouped 8"),
        ("gemma3-1b", "multi-query, sliding 512 + full"),
        ("gpt-oss-20b", "grouped 8, sliding 128 + full"),
        ("llama4-scout", "grouped 8, chunked 8192 + full"),
        ("deepseek-v3", "latent"),
    ],
)
def test_attention_names_its_heads_and_what_they_see(name: str, shown: str) -> None:
    assert attention(load_model(name).spec) == shown


def test_a_shared_expert_of_another_width_is_one() -> None:
    spec = load_model("mixtral-8x7b").spec
    assert spec.moe is not None
    wide = spec.moe.model_copy(update={"shared_expert_intermediate_size": 20000})
    assert experts(spec.model_copy(update={"moe": wide})) == "8 x 2 + 1 shared"


def test_a_row_has_total_and_active_parameters() -> None:
    row = model_row(load_model("mixtral-8x7b").spec)
    assert (row["parameters"], row["active_parameters"]) == (46_702_792_704, 12_879_925_248)


def test_a_page_has_the_parameters_that_predict_ahead_beside_the_total() -> None:
    record = model_record(load_model("deepseek-v3"))
    parts = {key: count for key, count in record["parameters"].items() if key != "total"}
    assert (sum(parts.values()), record["mtp_parameters"]) == (
        record["parameters"]["total"],
        11_610_068_224,
    )
