"""What a folder's first run found out about its device, kept for the runs that go on with it."""

from __future__ import annotations

from pathlib import Path

from calibrate.batches import DeviceFacts
from simulator.files import parse_record, read_json, write_atomic

FACTS_FILE = "facts.json"


def keep_facts(folder: Path, facts: DeviceFacts) -> DeviceFacts:
    """Return the facts that a folder's points were planned with; the first time these.

    A quick look at a device differs a little each time. What is planned from it must not, or a run
    that goes on would measure other points than those it has begun.

    Raises:
        InputError: the file is no such record, or cannot be written.
    """
    file = folder / FACTS_FILE
    if file.is_file():
        kept = parse_record(DeviceFacts, read_json(file), str(file))
        if kept.device == facts.device:
            return kept
    write_atomic(file, facts.model_dump_json(indent=1) + "\n")
    return facts
