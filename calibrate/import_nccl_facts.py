"""What the lines around a benchmark's table say of the run: devices, ranks, versions, command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from calibrate.import_samples import Device, Facts
from calibrate.import_words import OTHER_COLLECTIVES, collective_of, plain

_RANK = re.compile(
    r"Rank\s+(?P<rank>\d{1,7})\s+(?:Group\s+(?P<group>\d{1,7})\s+)?Pid\s+\d+\s+on\s+(?P<host>\S+)"
    r"\s+device\s+(?P<index>\d+)\s+\[(?P<bus>[^\]]*)\]\s*(?P<name>.*)"
)
_ARGUMENTS = re.compile(r"nThreads?:?\s+(?P<threads>\d{1,6})\s+nGpus:?\s+(?P<gpus>\d{1,6})")
_STARTING = re.compile(r"Collective test starting:\s*(?P<name>\S+)")
_COMMAND = re.compile(r"(?:^|[\s/\"'])(?P<name>[a-z][a-z_0-9]*)_perf(?:_mpi)?[\"']?(?=\s+-|\s*$)")
_VERSIONS = (
    re.compile(r"nccl-library=(?P<code>\d{4,6})"),
    re.compile(r"\bR?NCCL version\s*:?\s*(?P<text>\d+\.\d+(?:\.\d+)*)", re.I),
)
_HINT = re.compile(r"\b(gpus|nodes|gpu|op|nccl|ranks|accelerator)=(\S+)")
_VARIABLE = re.compile(r"\b((?:NCCL|RCCL|GLOO|CUDA|HSA|TORCH|OMP|UCX)_[A-Z0-9_]+)=([^\s;\"']+)")
_BLOCKING = re.compile(r"Blocking Enabled: wait for completion and barrier")
_PROCESSES = re.compile(r"(?:mpirun|mpiexec|orterun)\b.*?\s-(?:np|n|c)\s+(\d{1,6})\b")
_PER_NODE = re.compile(
    r"(?:-npernode|-N|--npernode|-ppn|--ntasks-per-node)[=\s]+(\d{1,4})\b|ppr:(\d{1,4}):node"
)
_SLURM_NODES = re.compile(r"srun\b.*?\s(?:-N\s*|--nodes[=\s]+)(\d{1,5})\b")
_SLURM_TASKS = re.compile(r"srun\b.*?\s(?:-n\s*|--ntasks[=\s]+)(\d{1,6})\b")
_SLURM_PER_NODE = re.compile(r"srun\b.*?\s--ntasks-per-node[=\s]+(\d{1,4})\b")
_GPU_OPTION = re.compile(r"_perf\b.*?\s(?:-g|--ngpus)[=\s]*(\d{1,4})\b")
_THREAD_OPTION = re.compile(r"_perf\b.*?\s(?:-t|--nthreads)[=\s]*(\d{1,4})\b")
_PROMPT = re.compile(r"(?:.*[$#>%]\s*)?(?:(?:[A-Z_]\w*=\S+|sudo|time|nohup)\s*)*(?:[\w./~-]*/)?")
"""What stands before an executable that no launcher starts."""
_NEW_VERSION, _OLD_BASE, _BASE = 10000, 1000, 100
"""NCCL_VERSION_CODE: major * 10000 + minor * 100 + patch from 2.9; 1000 and 100 before."""


def facts_of_line(facts: Facts, text: str) -> Facts:
    """Return `facts` with what one line adds; the same object where it adds nothing."""
    if (match := _RANK.search(text)) is not None:
        return replace(facts, devices=(*facts.devices, _device(match)))
    facts = _with_benchmark(facts, text)
    if (match := _ARGUMENTS.search(text)) is not None:
        facts = replace(facts, threads=int(match["threads"]), gpus=int(match["gpus"]))
    if _BLOCKING.search(text):
        facts = replace(facts, isolated=True)
    if (library := _library(text)) is not None:
        facts = replace(facts, library=library)
    variables = _VARIABLE.findall(text)
    if variables:
        known = dict(facts.environment) | dict(variables)
        facts = replace(facts, environment=tuple(sorted(known.items())))
    return _with_hints(facts, dict(_HINT.findall(text))) if text.lstrip()[:1] == "#" else facts


def begins_run(text: str) -> bool:
    """Return whether a line belongs to what is printed before a benchmark's table."""
    return bool(
        _STARTING.search(text)
        or _ARGUMENTS.search(text)
        or _COMMAND.search(text)
        or "Using devices" in text
        or "nccl-tests version" in text
    )


def benchmark_facts(facts: Facts, name: str) -> Facts:
    """Return `facts` with the collective that an executable's name says."""
    word = PurePath(name).name
    word = word.removesuffix("_mpi").removesuffix("_perf")
    collective = collective_of(word)
    if collective is not None:
        return replace(facts, collective=collective, other="")
    return replace(facts, other=word) if plain(word) in OTHER_COLLECTIVES else facts


def library_of_code(code: int) -> str:
    """Return the version that NCCL's number stands for.

    >>> library_of_code(23007), library_of_code(2804)
    ('2.30.7', '2.8.4')
    """
    base = _NEW_VERSION if code >= _NEW_VERSION else _OLD_BASE
    return f"{code // base}.{code % base // _BASE}.{code % _BASE}"


def _device(match: re.Match[str]) -> Device:
    return Device(
        rank=int(match["rank"]),
        group=int(match["group"] or 0),
        host=match["host"],
        index=match["index"],
        name=match["name"].strip(),
    )


def _with_benchmark(facts: Facts, text: str) -> Facts:
    """Return `facts` with what a command line or the benchmark's own first line say."""
    starting, command = _STARTING.search(text), _COMMAND.search(text)
    if starting is not None:
        return benchmark_facts(facts, starting["name"])
    launched = _launcher(text)
    facts = replace(
        facts,
        processes=launched.get("processes", facts.processes),
        per_node=launched.get("per_node", facts.per_node),
        nodes=launched.get("nodes", facts.nodes),
    )
    if command is None:
        return facts
    facts = benchmark_facts(facts, command["name"])
    gpus, threads = _GPU_OPTION.search(text), _THREAD_OPTION.search(text)
    alone = facts.processes is None and facts.nodes is None and _stands_alone(text, command)
    return replace(
        facts,
        gpus=int(gpus[1]) if gpus else facts.gpus or 1,
        threads=int(threads[1]) if threads else facts.threads or 1,
        processes=1 if alone else facts.processes,
    )


def _launcher(text: str) -> dict[str, int]:
    """Return the processes, and those on each node, that a launcher's command line asks for."""
    found: dict[str, int] = {}
    if (match := _PROCESSES.search(text)) or (match := re.search(r"^>?\s*-np\s+(\d{1,6})\b", text)):
        found["processes"] = int(match[1])
    slurm = "srun" in text
    if slurm:
        nodes, tasks = _SLURM_NODES.search(text), _SLURM_TASKS.search(text)
        each = _SLURM_PER_NODE.search(text)
        found |= {"nodes": int(nodes[1])} if nodes else {}
        found |= {"processes": int(tasks[1])} if tasks else {}
        found |= {"per_node": int(each[1])} if each else {}
        if nodes and not tasks:
            found["processes"] = int(nodes[1]) * (int(each[1]) if each else 1)
    elif ("mpi" in text or "-np" in text) and (match := _PER_NODE.search(text)):
        found["per_node"] = int(match[1] or match[2])
    elif match := re.search(r"^>?\s*-npernode\s+(\d{1,4})\b", text):
        found["per_node"] = int(match[1])
    return found


def _stands_alone(text: str, command: re.Match[str]) -> bool:
    """Return whether nothing stands before an executable but a prompt and a path."""
    before = text[: command.start("name")].strip()
    return bool(_PROMPT.fullmatch(before))


def _library(text: str) -> str | None:
    code = _VERSIONS[0].search(text)
    if code is not None:
        return library_of_code(int(code["code"]))
    said = _VERSIONS[1].search(text)
    return said["text"] if said else None


def _with_hints(facts: Facts, hints: Mapping[str, str]) -> Facts:
    """Return `facts` with a comment of the kind "# gpu=H100 gpus=16 nodes=2 op=all_reduce"."""
    if not hints:
        return facts
    ranks = hints.get("ranks", hints.get("gpus", ""))
    version = hints.get("nccl", "")
    return replace(
        facts,
        collective=collective_of(hints.get("op", "")) or facts.collective,
        ranks=int(ranks) if ranks.isascii() and ranks.isdigit() else facts.ranks,
        nodes=int(hints["nodes"]) if hints.get("nodes", "").isdecimal() else facts.nodes,
        accelerator=hints.get("accelerator", hints.get("gpu", facts.accelerator)),
        library=version if re.fullmatch(r"\d+(?:\.\d+)+", version) else facts.library,
    )
