"""What the tests of the emulated cluster share: it is calibrated once, by the tool itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import SubprocessError

import pytest

from tests.emulation.bursts import CheckedSteps, checked_steps
from tests.emulation.cluster import cluster
from tests.emulation.machines import Machine, calibrated
from tests.emulation.namespaces import NamespaceError
from tests.emulation.scheduling import busy_cores, short_slices, take_turns_or_fail

collect_ignore = ["everything.py"]
"""It reads torch when it is imported, which is for ranks alone."""


@pytest.fixture(scope="session", autouse=True)
def _allowed() -> Iterator[None]:
    """Skip where the kernel or the rights of this process do not allow an emulated cluster."""
    if sys.platform != "linux":
        pytest.skip("an emulated cluster is made of Linux network namespaces")
    pytest.importorskip("torch", reason="an emulated cluster runs torch.distributed")
    try:
        take_turns_or_fail()
        with cluster(1, 1e9), short_slices(), busy_cores():
            yield
    except (NamespaceError, OSError, SubprocessError) as error:
        pytest.skip(f"no emulated cluster here: {error}")


@pytest.fixture(scope="session")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return the profile fitted to collectives and layers on two hosts at 200 Mb/s."""
    return calibrated(tmp_path_factory.mktemp("two-hosts"))


@pytest.fixture(scope="session")
def four_hosts(tmp_path_factory: pytest.TempPathFactory, two_hosts: Machine) -> CheckedSteps:
    """Return steps on four hosts, which share the cores of this machine, and their profile."""
    folder = tmp_path_factory.mktemp("four-hosts")
    return checked_steps(4, two_hosts, folder)


@pytest.fixture
def measured_in(tmp_path: Path) -> Path:
    """Return a folder to measure into."""
    return tmp_path / "measured"
