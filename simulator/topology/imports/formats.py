"""All formats that can be imported; to add one, write its file and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import read_text
from simulator.topology.imports import edge_lines, edge_list, nccl_xml, nvidia_smi, rocm_smi, slurm
from simulator.topology.imports.records import Imported, ImportOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: its name, how to tell it from others, and how to read it."""

    name: str
    recognise: Callable[[str], bool]
    """(text) Asked in order; the first that says yes reads the file."""
    read: Callable[[str, str, ImportOptions], Imported]
    """(text, name of the file, options)"""


FORMATS = (
    Format(name=nccl_xml.FORMAT, recognise=nccl_xml.is_nccl_xml, read=nccl_xml.read_nccl_xml),
    Format(name=rocm_smi.FORMAT, recognise=rocm_smi.is_rocm_smi, read=rocm_smi.read_rocm_smi),
    Format(
        name=nvidia_smi.FORMAT, recognise=nvidia_smi.is_nvidia_smi, read=nvidia_smi.read_nvidia_smi
    ),
    Format(name=slurm.FORMAT, recognise=slurm.is_slurm, read=slurm.read_slurm),
    Format(name=edge_list.FORMAT, recognise=edge_lines.is_edge_list, read=edge_list.read_edge_list),
)


def import_file(path: Path | str, options: ImportOptions) -> Imported:
    """Return what a file of any of the formats says; they are told apart by content.

    Raises:
        InputError: no file of any of them, or anything wrong in it.
    """
    return import_text(read_text(path), str(path), options)


def import_text(text: str, where: str, options: ImportOptions) -> Imported:
    """Return what a text in any of the formats says. Raises as `import_file`."""
    for form in FORMATS:
        if form.recognise(text):
            return form.read(text, where, options)
    names = ", ".join(form.name for form in FORMATS)
    found = "nothing" if not text.strip() else f"text that begins with {text.strip()[:40]!r}"
    raise InputError(Problem(where=where, found=found, rule=f"must be one of: {names}"))
