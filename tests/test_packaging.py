"""The wheel carries the packages and their data, and nothing else."""

import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = {"simulator", "calibrate", "hardware_profiles", "planner", "reports", "traincast"}


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel built from this tree with what is installed already."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = out.glob("*.whl")
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def source_files(pattern: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob(pattern)
    }


def test_wheel_has_exactly_the_top_level_packages(wheel_files: set[str]) -> None:
    metadata = f"traincast-{PROJECT['project']['version']}.dist-info"
    assert {name.split("/")[0] for name in wheel_files} == PACKAGES | {metadata}


@pytest.mark.parametrize("pattern", ["*.py", "*.toml", "py.typed", "*.js", "*.css", "*.j2"])
def test_wheel_ships_every_source_and_data_file(wheel_files: set[str], pattern: str) -> None:
    assert source_files(pattern) <= wheel_files


def test_wheel_ships_the_licence_of_what_is_not_ours(wheel_files: set[str]) -> None:
    assert {name for name in source_files("LICENSE") if name not in wheel_files} == set()


def test_wheel_ships_hardware_profiles(wheel_files: set[str]) -> None:
    assert any(
        name.startswith("hardware_profiles/") and name.endswith(".toml") for name in wheel_files
    )


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package_name_is_free_in_the_standard_library(package: str) -> None:
    assert package not in sys.stdlib_module_names


def test_every_requirement_is_pinned_in_the_constraints() -> None:
    pinned = {
        line.split("==")[0]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    extras = PROJECT["project"]["optional-dependencies"].values()
    required = [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]
    assert {line.split(">=")[0] for line in required} <= pinned
