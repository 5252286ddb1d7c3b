from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from calibrate.limits import Limits
from calibrate.points import LayerPart, LayerPoint
from simulator.errors import UnsupportedError
from simulator.hardware.accelerator import Dtype

torch = pytest.importorskip("torch")

from calibrate.measure_context import Context  # noqa: E402
from calibrate.measure_layers import measure_layer, work_of  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


TINY = """
name = "tiny"
num_hidden_layers = 2
hidden_size = 64
intermediate_size = 128
num_attention_heads = 4
vocab_size = 101
tie_word_embeddings = false
gated_mlp = true
activation = "silu"
norm = "rmsnorm"
position = "rope"
max_position_embeddings = 128
"""


@pytest.fixture
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "tiny.toml"
    path.write_text(TINY)
    return str(path)


def _point(model: str, part: LayerPart, **more: object) -> LayerPoint:
    given = {"part": part, "model": model, "micro_batch": 2, "seq": 16, "dtype": Dtype.FP32}
    return LayerPoint.model_validate({**given, **more})


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize("part", LayerPart)
def test_every_part_is_timed(part: LayerPart, tp: int, tiny: str) -> None:
    context = Context(device=CPU, limits=Limits(block_seconds=0.001, blocks=3, max_seconds=0.5))
    backward = part is not LayerPart.OPTIMIZER
    assert measure_layer(_point(tiny, part, tp=tp, backward=backward), context).seconds > 0


@pytest.mark.parametrize(
    ("part", "gradients"), [(LayerPart.LAYER, 10), (LayerPart.EMBEDDING, 1), (LayerPart.HEAD, 3)]
)
def test_the_backward_pass_finds_all_gradients_as_often_as_it_is_asked(
    part: LayerPart, gradients: int, tiny: str
) -> None:
    work = work_of(_point(tiny, part, backward=True), CPU)
    first, second = work(), work()
    assert isinstance(first, tuple)
    assert len(first) == gradients
    torch.testing.assert_close(first, second)


def test_an_update_moves_the_parameters_of_one_layer(tiny: str) -> None:
    step = work_of(_point(tiny, LayerPart.OPTIMIZER), CPU)
    optimizer = step.__self__  # type: ignore[attr-defined]
    (group,) = optimizer.param_groups
    before = [parameter.detach().clone() for parameter in group["params"]]
    step()
    assert sum(p.numel() for p in before) == 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64
    assert all(not torch.equal(a, b) for a, b in zip(before, group["params"], strict=True))


def test_a_share_of_the_vocabulary_is_rounded_up_so_that_all_ranks_have_as_many(tiny: str) -> None:
    output = work_of(_point(tiny, LayerPart.EMBEDDING, tp=4, backward=True), CPU)()
    assert isinstance(output, tuple)
    assert output[0].shape == (4 * 26, 64)


@pytest.mark.parametrize(
    ("part", "changes", "words"),
    [
        (LayerPart.LAYER, {"dtype": Dtype.FP8}, "no module runs in this format"),
        (LayerPart.OPTIMIZER, {"backward": True}, "an update has no backward pass"),
        (LayerPart.LAYER, {"tp": 3}, "tp 3 must divide num_attention_heads 4"),
        (LayerPart.LAYER, {"model": "mixtral-8x7b"}, "a mixture of experts cannot be measured yet"),
        (LayerPart.HEAD, {"model": "bloom-176b"}, "a bias on every attention score"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    part: LayerPart, changes: dict[str, Any], words: str, tiny: str
) -> None:
    context = Context(device=CPU, limits=Limits())
    with pytest.raises(UnsupportedError, match=words):
        measure_layer(_point(**{"model": tiny, "part": part, **changes}), context)
