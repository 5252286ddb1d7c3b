"""Pictures of a network: what joins what, how wide it is, and how much of that a step used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from reports.charts import Box, Cable, Diagram, Figure
from reports.quantities import number, percent
from reports.result_files.step import LineFacts, PictureFacts, StepFile
from reports.step_detail import picture_record
from reports.topology_figure import topology_pictures
from reports.words import Words, english
from simulator.topology.graph import FloatArray
from simulator.topology.topology import Topology
from simulator.units import GB

_DIGITS = 3
"""Of a bandwidth."""


def network(step: StepFile, words: Words) -> Iterator[Figure]:
    """Yield the pictures of the network with what its links carried."""
    known = [(link.name, link.utilisation) for link in step.network.links if link.carried_bytes > 0]
    fullest = max(known, key=lambda link: link[1], default=None)
    yield from _diagrams(step.network.pictures, fullest, words)


def topology_diagrams(
    topology: Topology, utilisation: FloatArray | None = None
) -> tuple[Diagram, ...]:
    """Return the pictures of a topology; `utilisation` is (links,), 0 to 1, NaN if not known."""
    pictures = [
        PictureFacts.model_validate_json(json.dumps(picture_record(each)))
        for each in topology_pictures(topology, utilisation)
    ]
    fullest = None
    if utilisation is not None and not np.isnan(utilisation).all():
        place = int(np.nanargmax(utilisation))
        fullest = topology.link_name(place), float(utilisation[place])
    return tuple(_diagrams(pictures, fullest, english))


def _diagrams(
    pictures: Sequence[PictureFacts], fullest: tuple[str, float] | None, words: Words
) -> Iterator[Diagram]:
    for place, picture in enumerate(pictures):
        yield Diagram(
            name=f"network-{place}" if place else "network",
            title=words("Network: {title}", title=picture.title),
            boxes=tuple(Box(label=b.label, kind=b.kind, x=b.x, y=b.y) for b in picture.boxes),
            cables=tuple(_cable(picture, line) for line in picture.lines),
            unit=words("utilisation"),
            caption=_caption(picture, None if place else fullest, words),
        )


def _cable(picture: PictureFacts, line: LineFacts) -> Cable:
    one, other = picture.boxes[line.one].label, picture.boxes[line.other].label
    used = "" if line.utilisation is None else f", {percent(line.utilisation)}"
    label = f"{number(line.capacity_bytes_per_second / GB, _DIGITS)} GB/s{used}"
    return Cable(
        one=line.one,
        other=line.other,
        used=line.utilisation,
        text=f"{one} - {other}: {line.cables} x, {label}",
        capacity=line.capacity_bytes_per_second,
        label=label,
    )


def _caption(picture: PictureFacts, fullest: tuple[str, float] | None, words: Words) -> str:
    """Return what lines mean; where it is counted what they carried, which link is the fullest."""
    thick = words("Lines are as thick as their bandwidth, all cables together, one direction.")
    if all(line.utilisation is None for line in picture.lines):
        return thick
    used = words(
        "Each line is coloured by the fullest link in it, over the whole step, from blue (idle) to "
        "red (full); grey: not counted."
    )
    if fullest is None:
        return f"{thick} {used}"
    link, share = fullest
    most = words("The fullest of all links: {link}, {used}.", link=link, used=percent(share))
    return f"{thick} {used} {most}"
