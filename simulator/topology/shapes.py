"""Shapes of a torus: which block of chips so many accelerators are."""

from __future__ import annotations

from collections.abc import Iterator

Shape = tuple[int, ...]


def balanced_shape(count: int, axes: int) -> Shape:
    """Return the shape of `count` chips whose longest axis is shortest, then the next, and so on.

    These are the shapes of a slice that Google Cloud lists for TPU v5p and v5e.

    >>> balanced_shape(128, 3)
    (4, 4, 8)
    >>> balanced_shape(128, 2)
    (8, 16)
    """
    return min(_shapes(count, axes), key=lambda shape: shape[::-1])


def block_shape(count: int, shape: Shape) -> Shape | None:
    """Return the block of `count` chips that fills a shape and is most even; None if none does.

    >>> block_shape(4, (4, 4, 8))
    (2, 2, 1)
    """
    blocks = [
        block
        for ordered in _shapes(count, len(shape))
        for block in _orders(ordered)
        if all(side % part == 0 for side, part in zip(shape, block, strict=True))
    ]
    return min(blocks, key=lambda block: (max(block), tuple(-side for side in block)), default=None)


def _shapes(count: int, axes: int, least: int = 1) -> Iterator[Shape]:
    """Yield all shapes of `count` chips whose sides do not shrink."""
    if axes == 1:
        if count >= least:
            yield (count,)
        return
    side = least
    while side**axes <= count:
        if count % side == 0:
            for rest in _shapes(count // side, axes - 1, side):
                yield (side, *rest)
        side += 1


def _orders(shape: Shape) -> Iterator[Shape]:
    if not shape:
        yield ()
    for side in sorted(set(shape)):
        place = shape.index(side)
        for rest in _orders(shape[:place] + shape[place + 1 :]):
            yield (side, *rest)
