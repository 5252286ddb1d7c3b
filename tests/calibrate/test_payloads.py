from __future__ import annotations

import pytest

from calibrate.payloads import elements_of
from calibrate.points import CollectivePoint
from simulator.errors import InputError
from simulator.parallel.groups import Collective


def _point(kind: Collective, size: float, dtype: str = "float32") -> CollectivePoint:
    return CollectivePoint(collective=kind, ranks=6, nodes=1, bytes=size, dtype=dtype)


def test_a_reduced_buffer_needs_whole_numbers_only() -> None:
    assert elements_of(_point(Collective.ALL_REDUCE, 1022, "bfloat16")) == 511


@pytest.mark.parametrize(
    ("kind", "size", "dtype", "words"),
    [
        (Collective.ALL_GATHER, 1024, "float32", "a multiple of 24 bytes (found 1024)"),
        (Collective.ALL_TO_ALL, 5, "float32", "use 24"),
        (Collective.ALL_REDUCE, 1022, "float32", "a multiple of 4 bytes"),
        (Collective.ALL_REDUCE, 64, "float16 ", "did you mean 'float16'?"),
    ],
)
def test_bytes_that_do_not_divide_are_refused(
    kind: Collective, size: float, dtype: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        elements_of(_point(kind, size, dtype))
    assert words in str(caught.value)
