"""The collectives as `torch.distributed` runs them: buffers, one call, and what must come out.

Sizes follow nccl-tests (see `CommPlan`). Send and receive: a pair sends one message from its first
rank to its second; every other group forms a ring as in nccl-tests, where every rank sends to the
next and receives from the one before at the same time. On links with two directions both are the
same forecast: one message to one peer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch import distributed as dist

from calibrate.measure_call import Call, Operation, each_part, label, summand, total
from simulator.errors import Problem, UnsupportedError
from simulator.parallel.groups import Collective

_ROOT = 0
"""Index in the group of the rank that broadcasts or gathers a reduction."""

# torch 2.13 has new names for these two and warns of the old ones.
_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def operation_of(collective: Collective, call: Call) -> Operation:
    """Return a collective with its buffers; nothing is sent yet.

    Raises:
        UnsupportedError: not a collective of several accelerators.
    """
    if collective not in _MAKERS:
        rule = "is no operation between ranks"
        found, fix = str(collective), "one of: " + ", ".join(_MAKERS)
        raise UnsupportedError(Problem(key="collective", found=found, rule=rule, fix=fix))
    return _MAKERS[collective](call)


def _all_reduce(call: Call) -> Operation:
    data = call.zeros(call.elements)
    return Operation(
        run=lambda: dist.all_reduce(data, group=call.group),
        source=data,
        result=data,
        given=each_part(call, summand),
        expected=tuple(total(call, part) for part in range(call.size)),
    )


def _reduce(call: Call) -> Operation:
    data, root = call.zeros(call.elements), call.ranks[_ROOT]
    totals = tuple(total(call, part) for part in range(call.size))
    return Operation(
        run=lambda: dist.reduce(data, dst=root, group=call.group),
        source=data,
        result=data,
        given=each_part(call, summand),
        expected=totals if call.index == _ROOT else None,
    )


def _broadcast(call: Call) -> Operation:
    data, root = call.zeros(call.elements), call.ranks[_ROOT]
    return Operation(
        run=lambda: dist.broadcast(data, src=root, group=call.group),
        source=data,
        result=data,
        given=each_part(call, label),
        expected=tuple(label(_ROOT, part) for part in range(call.size)),
    )


def _all_gather(call: Call) -> Operation:
    whole, share = call.zeros(call.elements), call.zeros(call.elements // call.size)
    return Operation(
        run=lambda: _gather(whole, share, group=call.group),
        source=share,
        result=whole,
        given=(label(call.index, 0),),
        expected=tuple(label(index, 0) for index in range(call.size)),
    )


def _reduce_scatter(call: Call) -> Operation:
    whole, share = call.zeros(call.elements), call.zeros(call.elements // call.size)
    return Operation(
        run=lambda: _scatter(share, whole, group=call.group),
        source=whole,
        result=share,
        given=each_part(call, summand),
        expected=(total(call, call.index),),
    )


def _all_to_all(call: Call) -> Operation:
    sent, got = call.zeros(call.elements), call.zeros(call.elements)
    return Operation(
        run=lambda: dist.all_to_all_single(got, sent, group=call.group),
        source=sent,
        result=got,
        given=each_part(call, label),
        expected=tuple(label(index, call.index) for index in range(call.size)),
    )


def _send_recv(call: Call) -> Operation:
    sent, got = call.zeros(call.elements), call.zeros(call.elements)
    source = (call.index - 1) % call.size
    receives = not call.one_way or call.index == 1
    return Operation(
        run=_one_way(call, sent, got) if call.one_way else _ring(call, sent, got),
        source=sent,
        result=got,
        given=(label(call.index, 0),),
        expected=(label(source, 0),) if receives else None,
    )


def _one_way(call: Call, sent: Tensor, got: Tensor) -> Callable[[], object]:
    first, second = call.ranks
    if call.index == 0:
        return lambda: dist.send(sent, dst=second, group=call.group)
    return lambda: dist.recv(got, src=first, group=call.group)


def _ring(call: Call, sent: Tensor, got: Tensor) -> Callable[[], object]:
    following = call.ranks[(call.index + 1) % call.size]
    before = call.ranks[(call.index - 1) % call.size]

    def run() -> None:
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, sent, following, group=call.group),
                dist.P2POp(dist.irecv, got, before, group=call.group),
            ]
        )
        for work in works:
            work.wait()

    return run


_MAKERS: dict[Collective, Callable[[Call], Operation]] = {
    Collective.ALL_REDUCE: _all_reduce,
    Collective.ALL_GATHER: _all_gather,
    Collective.REDUCE_SCATTER: _reduce_scatter,
    Collective.ALL_TO_ALL: _all_to_all,
    Collective.BROADCAST: _broadcast,
    Collective.REDUCE: _reduce,
    Collective.SEND_RECV: _send_recv,
}
