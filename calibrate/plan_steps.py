"""What PyTorch runs of the model in a plan: its parts one by one, and whole training steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from calibrate.plan_case import Case, Subject, can_cut
from calibrate.plan_file import LayersPlan, StepPlan, TrainingPlan
from calibrate.points import LayerPart, LayerPoint, StepPoint, Upkeep, UpkeepPoint
from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import TrainingJob

_STATE_BYTES = 16.0
"""Of a parameter in float32 training: weight, gradient and two Adam moments."""


def first_layers(case: Case) -> Iterator[LayerPoint]:
    """Yield the parts of the model, at the first micro-batch and tensor-parallel size."""
    section = case.plan.layers
    if section is not None:
        yield from _layers(case, section, _cuts(case, section)[:1])


def more_layers(case: Case) -> Iterator[LayerPoint]:
    """Yield the parts at the other micro-batches and tensor-parallel sizes."""
    section = case.plan.layers
    if section is not None:
        yield from _layers(case, section, _cuts(case, section)[1:])


def upkeeps(case: Case) -> Iterator[UpkeepPoint]:
    """Yield what a layer's parameters cost beside its passes, where the plan names data ranks.

    With all ranks at once, tp x dp must divide them; what does not is left out.
    """
    section = case.plan.layers
    if section is None or not section.dp:
        return
    sizes = tuple(dict.fromkeys(tp for _, tp in _cuts(case, section)))
    for tp, dp in product(sizes, (1, *section.dp)):
        if case.layer_ranks > 1 and case.layer_ranks % (tp * dp):
            continue
        works = [work for work in Upkeep if _is_done(work, tp, dp)]
        yield from (_upkeep(case, work, tp, dp) for work in works)


def _is_done(work: Upkeep, tp: int, dp: int) -> bool:
    return work is Upkeep.UPDATE or (dp > 1 and (tp == 1 or work is not Upkeep.BUCKETS))


def _upkeep(case: Case, work: Upkeep, tp: int, dp: int) -> UpkeepPoint:
    return UpkeepPoint(
        work=work,
        model=_subject(case).name,
        tp=tp,
        dp=dp,
        dtype=case.main_dtype,
        ranks=case.layer_ranks,
    )


def trainings(case: Case) -> Iterator[StepPoint]:
    """Yield training steps of the first layers of the model on one device."""
    section = case.plan.training
    if section is not None:
        yield from _steps(case, section, ranks=1, alone=case.training_ranks)


def layouts(case: Case) -> Iterator[StepPoint]:
    """Yield the steps on all ranks: those of the plan file, then data parallelism.

    Raises:
        InputError: layouts of the plan that need another number of ranks.
    """
    _check_layouts(case)
    for step in case.plan.step:
        yield _of_file(case, step)
    section = case.plan.training
    if section is not None and section.all_ranks and case.world.size > 1:
        yield from _steps(case, section, ranks=case.world.size)


def _cuts(case: Case, section: LayersPlan) -> list[tuple[int, int]]:
    """Return micro-batches and tensor-parallel sizes that the model can be cut into."""
    plain = case.cuts
    micro_batches = section.micro_batches or tuple(dict.fromkeys(mb for mb, _ in plain))
    sizes = section.tp or tuple(dict.fromkeys(tp for _, tp in plain))
    return [(mb, tp) for mb, tp in product(micro_batches, sizes) if can_cut(case, tp)]


def _layers(case: Case, section: LayersPlan, cuts: list[tuple[int, int]]) -> Iterator[LayerPoint]:
    subject = _subject(case)
    for (micro_batch, tp), part in product(cuts, section.parts):
        forward = LayerPoint(
            part=part,
            model=subject.name,
            micro_batch=micro_batch,
            seq=subject.seq,
            tp=tp,
            dtype=case.main_dtype,
            ranks=case.layer_ranks,
        )
        yield forward
        if part is not LayerPart.OPTIMIZER:
            yield forward.model_copy(update={"backward": True})


def _steps(case: Case, section: TrainingPlan, *, ranks: int, alone: int = 1) -> Iterator[StepPoint]:
    subject = _subject(case)
    for layers, micro_batch in product(section.layers, section.micro_batches):
        if layers > subject.spec.num_hidden_layers or not _has_room(case, layers):
            continue
        job = TrainingJob(
            global_batch_size=micro_batch * ranks,
            seq_length=subject.seq,
            precision=case.main_dtype,
            stack=section.cpu_stack if case.on_cpu else section.stack,
        )
        layout = ParallelLayout(dp=ranks, micro_batch_size=micro_batch)
        yield StepPoint(model=subject.name, layers=layers, job=job, layout=layout, ranks=alone)


def _has_room(case: Case, layers: int) -> bool:
    """Return whether the states of so many layers and both ends fit, activations apart."""
    spec = _subject(case).spec
    stack = sum(layer.parameters * n for layer, n in spec.layer_groups(0, layers).items())
    ends = spec.embedding_parameters + spec.final_norm_parameters + spec.head_parameters
    return _STATE_BYTES * (stack + ends) <= case.room


def _of_file(case: Case, step: StepPlan) -> StepPoint:
    return StepPoint(
        model=step.model or _subject(case).name,
        layers=step.layers,
        job=step.job,
        layout=_filled(step.layout, case.world.size),
        bucket_bytes=step.bucket_bytes,
    )


def _filled(layout: ParallelLayout, world: int) -> ParallelLayout:
    """Return a layout whose dp, where it is left out, fills the world."""
    others = layout.tp * layout.cp * layout.pp
    if "dp" in layout.model_fields_set or world % others:
        return layout
    return layout.model_copy(update={"dp": world // others})


def _check_layouts(case: Case) -> None:
    world = case.world.size
    problems = [
        Problem(
            where="plan",
            key=f"step.{number}.layout",
            found=f"tp x cp x dp x pp = {layout.world_size}",
            rule=f"must use all {world} processes",
            fix="leave dp out, or start as many processes",
        )
        for number, step in enumerate(case.plan.step)
        if (layout := _filled(step.layout, world)).world_size != world
    ]
    if problems:
        raise InputError(*problems)


def _subject(case: Case) -> Subject:
    assert case.subject is not None, "case_of finds one for these sections"
    return case.subject
