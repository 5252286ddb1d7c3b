"""What the user asks a run of measurements for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from calibrate.crew import Patience
from calibrate.spawn import COMMAND

DeviceName = Literal["", "cpu", "cuda"]
BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
"""Of torch.distributed, by device, where none is asked for."""
ALIASES = {"rccl": "nccl"}
"""torch calls RCCL by the name of the library that it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Of `traincast calibrate run`; all ranks are started with the same."""

    folder: Path
    plan: str = "quick"
    """Name of a shipped plan or a TOML file."""
    model: str | None = None
    """A preset or a path; None is the plan's default."""
    device: DeviceName = ""
    """Empty: an accelerator where there is one."""
    backend: str = ""
    """Of torch.distributed; empty: NCCL (RCCL) between accelerators, gloo between CPUs."""
    budget: float | None = None
    """Seconds for the whole run; None is as long as it takes."""
    retry: bool = False
    """Whether points that timed out or failed in an earlier run are measured again."""
    patience: Patience = field(default_factory=Patience)
    worker: tuple[str, ...] = COMMAND
    """Command line of a worker."""
    forked: bool = True
    """Whether one process reads torch and forks the workers, where the system lets it."""

    @property
    def made_by(self) -> str:
        """The command, as the header of the journal gives it."""
        return f"calibrate run --plan {self.plan}"

    def backend_of(self, device: str) -> str:
        """Return the backend for a device."""
        wanted = self.backend or BACKENDS[device]
        return ALIASES.get(wanted, wanted)
