"""One call of a collective on one rank, and whether it delivers what it must.

Each equal part of a buffer is filled with one number that says whose it is, so that a check needs
no memory of its own: all of a received part is that number, or the fabric is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_SUMMANDS = 3
"""Different numbers that ranks add: their sum over 128 ranks is exact even in bfloat16."""
_LABELS = 251
"""Different numbers that mark what is only moved; a prime below 256, exact in bfloat16."""
_STRIDE = 16
"""Between the marks of neighbouring parts, so that rank and part are not mixed up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who calls a collective on what: `ranks` are global, `index` is this rank's place in them."""

    group: Any
    ranks: tuple[int, ...]
    index: int
    elements: int
    """Of the payload."""
    dtype: torch.dtype
    device: torch.device
    one_way: bool = False
    """Of a send: from the first rank to the second alone."""

    @property
    def size(self) -> int:
        """Ranks of the group."""
        return len(self.ranks)

    def zeros(self, elements: int) -> Tensor:
        """Return a buffer."""
        return torch.zeros(elements, dtype=self.dtype, device=self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One collective of one rank; `given` and `expected` hold one number for each equal part."""

    run: Callable[[], object]
    """One call, complete (or in order on the current stream) when it returns."""
    source: Tensor
    result: Tensor
    given: tuple[float, ...]
    expected: tuple[float, ...] | None
    """None where this rank receives nothing."""

    def is_correct(self) -> bool:
        """Return whether one call yields what it must, and leave zeros in the buffers.

        Zeros stay zeros however often they are added; other numbers would overflow.
        """
        for part, value in zip(self.source.tensor_split(len(self.given)), self.given, strict=True):
            part.fill_(value)
        self.run()
        correct = self.expected is None or _holds(self.result, self.expected)
        self.source.zero_()
        self.result.zero_()
        return correct


def each_part(call: Call, number: Callable[[int, int], float]) -> tuple[float, ...]:
    """Return this rank's number for each of as many equal parts as there are ranks."""
    return tuple(number(call.index, part) for part in range(call.size))


def summand(index: int, part: int) -> float:
    """Return what the rank at `index` gives to a sum in this part of its buffer."""
    return float((index + part) % _SUMMANDS)


def label(index: int, part: int) -> float:
    """Return what marks this part of the buffer of the rank at `index`."""
    return float((1 + index + _STRIDE * part) % _LABELS)


def total(call: Call, part: int) -> float:
    """Return the sum of what all ranks give to this part."""
    return sum(summand(index, part) for index in range(call.size))


def _holds(result: Tensor, expected: tuple[float, ...]) -> bool:
    """Return whether each part holds its number alone; parts without elements hold nothing."""
    parts = result.tensor_split(len(expected))
    rounding = torch.finfo(result.dtype).eps
    for part, value in zip(parts, expected, strict=True):
        if not part.numel():
            continue
        low, high = (float(bound) for bound in torch.aminmax(part))
        exact = value * rounding <= 1
        slack = 0.0 if exact else value * rounding * len(expected)
        if not (abs(low - value) <= slack and abs(high - value) <= slack):
            return False
    return True
