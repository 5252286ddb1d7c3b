"""DualPipe: micro-batches enter at both ends; each stage holds two parts of the model."""

from __future__ import annotations

from simulator.schedule.action import Action, Schedule
from simulator.schedule.dualpipe_v import two_ways


def dualpipe(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return DualPipe; needs even pp, and an even number of at least 2 pp micro-batches.

    The first half of the micro-batches runs from stage 0 to pp - 1, the other half from pp - 1 to
    0, over a second copy of the parameters. Two stages that mirror each other do the same, each
    with the directions exchanged. The bubble of the paper is (pp / 2 - 1) x (f&b + b - 3 w), with
    f&b a forward beside a backward pass: f + b here.
    Source: DeepSeek-AI 2024, DeepSeek-V3 (arXiv:2412.19437), section 3.2.1, figure 5, table 2;
    github.com/deepseek-ai/DualPipe, dualpipe/dualpipe.py.
    """
    assert vpp == 2, "dualpipe holds two parts of the model a stage"  # noqa: PLR2004
    half, each = pp // 2, micro_batches // 2
    return tuple(
        tuple(
            Action(stage, kind, i + direction * each, direction)
            for kind, way, i in two_ways(min(stage, pp - 1 - stage), half, each)
            for direction in [way if stage < half else 1 - way]
        )
        for stage in range(pp)
    )
