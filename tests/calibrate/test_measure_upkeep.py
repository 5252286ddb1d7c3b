"""Work on a layer's parameters, on a mesh of which this process is the only rank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calibrate.limits import Limits
from calibrate.points import Upkeep, UpkeepPoint
from simulator.errors import UnsupportedError
from simulator.hardware.accelerator import Dtype

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.fsdp", reason="FSDP2 is not in this PyTorch")
debug = pytest.importorskip("torch.distributed.tensor.debug")

from calibrate.measure_context import Context  # noqa: E402
from calibrate.measure_tensor_parallel import lone_grid  # noqa: E402
from calibrate.measure_upkeep import (  # noqa: E402
    Carrier,
    buckets,
    gather,
    gathers_and_reduction,
    measure_upkeep,
    update,
)

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("work", "tp", "dp"),
    [
        (Upkeep.GATHER, 1, 2),
        (Upkeep.SHARDED, 2, 2),
        (Upkeep.BUCKETS, 1, 4),
        (Upkeep.UPDATE, 1, 1),
        (Upkeep.UPDATE, 2, 1),
        (Upkeep.UPDATE, 2, 2),
    ],
)
def test_every_work_is_timed(work: Upkeep, tp: int, dp: int) -> None:
    context = Context(device=CPU, limits=Limits(block_seconds=0.001, blocks=3, max_seconds=0.2))
    point = UpkeepPoint(work=work, model="gpt2", tp=tp, dp=dp, dtype=Dtype.FP32)

    assert measure_upkeep(point, context).seconds > 0


def test_a_carrier_hands_its_input_on_and_has_gradients_of_all_parameters() -> None:
    layer, given = torch.nn.Linear(4, 3), torch.ones(2, requires_grad=True)
    carried = Carrier(layer)(given)
    carried.sum().backward()

    torch.testing.assert_close(carried, given)
    torch.testing.assert_close(given.grad, torch.ones(2))
    assert [p.grad.shape for p in layer.parameters()] == [(3, 4), (3,)]


@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module:UserWarning")
def test_fsdp_gathers_once_a_pass_and_reduces_once() -> None:
    grid = lone_grid(CPU, dp=2, tp=1)
    works = [make(torch.nn.Linear(4, 4), grid) for make in (gather, gathers_and_reduction)]
    assert [collectives_of(work) for work in works] == [(1, 0), (2, 1)]


def collectives_of(work: object) -> tuple[int, int]:
    """Return how many all-gathers and reduce-scatters a second run of a work hands over."""
    assert callable(work)
    work()
    with debug.CommDebugMode() as mode:
        work()
    found = {"gather": 0, "reduce_scatter": 0}
    for kind, count in mode.get_comm_counts().items():
        for name in found:
            found[name] += count if name in str(kind) else 0
    return found["gather"], found["reduce_scatter"]


def test_ddp_leaves_the_gradients_to_the_bucket_and_drops_them() -> None:
    layer = torch.nn.Linear(4, 4)
    buckets(layer, lone_grid(CPU, dp=2, tp=1))()
    assert [p.grad for p in layer.parameters()] == [None, None]


def test_an_update_moves_a_ranks_own_shard() -> None:
    layer = torch.nn.Linear(4, 4)
    step = update(layer, lone_grid(CPU, dp=2, tp=1))
    shards = [p.to_local() for p in layer.parameters()]
    before = [shard.detach().clone() for shard in shards]
    step()

    assert [tuple(shard.shape) for shard in shards] == [(2, 4), (2,)]
    assert all(not torch.equal(a, b) for a, b in zip(before, shards, strict=True))


def test_a_grid_has_both_axes_with_this_rank_at_their_start() -> None:
    grid = lone_grid(CPU, dp=2, tp=4)
    assert (grid["dp"].size(), grid["tp"].size()) == (2, 4)
    assert tuple(grid.get_coordinate() or ()) == (0, 0)
    assert torch.distributed.get_process_group_ranks(grid.get_group("dp")) == [0, 4]


def test_a_grid_of_more_ranks_than_there_can_be_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="8192"):
        lone_grid(CPU, dp=2, tp=4096)
