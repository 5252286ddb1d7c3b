"""How many nodes and accelerators a run has: what the user says, or else what its files say."""

from __future__ import annotations

from planner.launch.keys import Keys, overridden
from planner.launch.records import Given
from simulator.errors import InputError, Problem


def cluster_size(given: Given, nodes: int | None, gpus: int | None, keys: Keys) -> tuple[int, int]:
    """Return nodes and accelerators a node; `nodes` and `gpus` are what the files say, if they do.

    Where an option says otherwise, it counts, and `keys` gets a note.

    Raises:
        InputError: nobody says how many, or files and profile contradict each other.
    """
    wanted, profile, where = given.options.nodes, given.gpus_per_node, keys.where
    problems = []
    if (wanted or nodes) is None:
        rule = "does not say how many nodes run it"
        problems.append(Problem(where=where, key="nodes", rule=rule, fix="--nodes N"))
    if (profile or gpus) is None:
        rule = "does not say how many accelerators a node has"
        fix = "--cluster PROFILE (see `traincast profiles`)"
        problems.append(Problem(where=where, key="gpus per node", rule=rule, fix=fix))
    if profile is not None and gpus is not None and gpus != profile:
        problems.append(
            Problem(
                where=where,
                key="gpus per node",
                found=str(gpus),
                rule=f"the profile {given.options.cluster} has {profile}",
                fix=f"a profile of {gpus}, or {profile} processes a node",
            )
        )
    if problems:
        raise InputError(*problems)
    if wanted is not None and nodes not in (None, wanted):
        keys.notes.append(overridden("--nodes", wanted, where, f"{nodes} nodes"))
    return wanted or nodes or 1, profile or gpus or 1
