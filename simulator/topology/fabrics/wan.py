"""Sites with a fabric each, joined by long links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, nearest
from simulator.topology.checks import cable_problems, device_problems
from simulator.topology.context import Context
from simulator.topology.fabrics.fabric_file import (
    Count,
    FabricFile,
    darkened,
    link_efficiency,
)
from simulator.topology.fabrics.gateways import gateway_cables
from simulator.topology.fabrics.wiring import Cables, wire
from simulator.topology.graph import Cable, Graph, IntArray
from simulator.topology.topology import Fabric, Unit
from simulator.units import Bandwidth, Seconds

Name = Annotated[str, Field(min_length=1, max_length=64)]
GATEWAY = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFabric:
    """The fabric of a site: the name of its kind, and its parameters."""

    kind: str
    parameters: FileRecord


def _read_fabric(table: Any) -> SiteFabric:
    """Return the fabric in a table; pydantic puts what is wrong with it into its own list."""
    from simulator.topology.registry import FABRICS

    if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
        raise ValueError('must be a table with a kind, such as { kind = "flat" }')
    if table["kind"] not in FABRICS:
        raise ValueError(f"kind is no kind of fabric; {nearest(table['kind'], list(FABRICS))}")
    rest = {key: value for key, value in table.items() if key != "kind"}
    parameters = FABRICS[table["kind"]].file.model_validate_json(json.dumps(rest, default=str))
    return SiteFabric(kind=table["kind"], parameters=parameters)


class SiteFile(FileRecord):
    """One site."""

    name: Name
    units: Count
    """Units here; those of the first site are the first of the cluster."""
    fabric: Annotated[
        Any, BeforeValidator(_read_fabric), WithJsonSchema({"type": "object", "title": "fabric"})
    ]
    """What joins the units of this site: a `kind`, and the keys of that kind."""
    gateway: tuple[Name, ...] = ()
    """Its switches that the gateway is cabled to; by default those farthest from the ports."""


class LinkFile(FileRecord):
    """A link between the gateways of two sites, full duplex."""

    ends: tuple[Name, Name]
    """The names of the sites."""
    bandwidth: Bandwidth
    """Nominal, one direction."""
    latency: Seconds
    """One message, one way: about 5 us a km of fibre, and what is on the way."""


class WanFile(FabricFile):
    """Sites that long links join. Switches of a site have its name in front: "east/spine0".

    The gateway of a site, "east/gateway", is cabled to its highest switches; each of these cables
    carries as much as all long links of the site, so that only they are narrow.
    """

    site: tuple[SiteFile, ...] = Field(min_length=2)
    link: tuple[LinkFile, ...] = Field(min_length=1)


def wan(file: WanFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return the fabrics of all sites, and what joins them.

    Raises:
        InputError: with what is wrong at all sites.
    """
    _check(file, units)
    fabrics = _site_fabrics(file, unit, context)
    first = np.cumsum([0, *(len(fabric.graph.devices) for fabric in fabrics)])
    switches = [
        f"{site.name}/{name}"
        for site, fabric in zip(file.site, fabrics, strict=True)
        for name in fabric.graph.devices
    ]
    gateways = [f"{site.name}/{GATEWAY}" for site in file.site]
    long = _long_links(file, int(first[-1]), link_efficiency(unit, context))
    short = gateway_cables([site.gateway for site in file.site], fabrics, long)
    outside = wire([*switches, *gateways], [*short, *long])
    whole = Fabric(
        graph=_joined([fabric.graph for fabric in fabrics], first, outside),
        attachment=np.concatenate(
            [fabric.attachment + start for fabric, start in zip(fabrics, first, strict=False)]
        ),
        port_bandwidth=np.concatenate([fabric.port_bandwidth for fabric in fabrics]),
        port_latency=np.concatenate([fabric.port_latency for fabric in fabrics]),
        reduces=file.reduces,
    )
    return darkened(whole, file.failed)


def _check(file: WanFile, units: int) -> None:
    names = [site.name for site in file.site]
    problems = device_problems({"fabric.site": names})
    links = [Cable(one=link.ends[0], other=link.ends[1], bandwidth=1.0) for link in file.link]
    problems += cable_problems(names, links, "fabric.link")
    here = sum(site.units for site in file.site)
    if here != units:
        problems.append(
            Problem(
                key="fabric.site",
                found=" + ".join(str(site.units) for site in file.site) + f" = {here} units",
                rule=f"the cluster has {units} units, and each is at one site",
                fix=f"take {here} units, or change the units of a site",
            )
        )
    for place, site in enumerate(file.site):
        if getattr(site.fabric.parameters, "reduces", False):
            rule = "switches that reduce do so across sites or not at all"
            fix = "leave it out here; reduces = true of the whole fabric says that they do"
            problems.append(Problem(key=f"fabric.site.{place}.fabric.reduces", rule=rule, fix=fix))
    if problems:
        raise InputError(*problems)


def _site_fabrics(file: WanFile, unit: Unit, context: Context) -> list[Fabric]:
    """Return the fabric of each site; what is wrong with any of them is said at once."""
    from simulator.topology.registry import FABRICS

    fabrics: list[Fabric] = []
    problems: dict[Problem, None] = {}
    for place, site in enumerate(file.site):
        part: SiteFabric = site.fabric
        try:
            fabrics.append(FABRICS[part.kind].build(part.parameters, site.units, unit, context))
        except InputError as error:
            problems |= dict.fromkeys(_at_site(place, found) for found in error.problems)
    if problems:
        raise InputError(*problems)
    return fabrics


def _at_site(place: int, problem: Problem) -> Problem:
    """Return a problem with its key as it stands in the file; other tables are for all sites."""
    own = problem.key.startswith("fabric.")
    return replace(problem, key=f"fabric.site.{place}.{problem.key}") if own else problem


def _long_links(file: WanFile, first_gateway: int, efficiency: float) -> list[Cables]:
    number = {site.name: first_gateway + place for place, site in enumerate(file.site)}
    return [
        Cables(
            one=np.array([number[link.ends[0]]]),
            other=np.array([number[link.ends[1]]]),
            bandwidth=link.bandwidth * efficiency,
            latency=link.latency,
        )
        for link in file.link
    ]


def _joined(graphs: Sequence[Graph], first: IntArray, outside: Graph) -> Graph:
    """Return the graphs of all sites as one, with the devices and links that join them."""
    parts = [*graphs, outside]
    starts = [*first[:-1], 0]
    return Graph(
        devices=outside.devices,
        kinds=outside.kinds,
        source=np.concatenate([g.source + start for g, start in zip(parts, starts, strict=True)]),
        target=np.concatenate([g.target + start for g, start in zip(parts, starts, strict=True)]),
        bandwidth=np.concatenate([graph.bandwidth for graph in parts]),
        latency=np.concatenate([graph.latency for graph in parts]),
    )
