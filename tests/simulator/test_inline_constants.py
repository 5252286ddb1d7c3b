"""A profile may hold its constants in a table of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit

from simulator.errors import InputError
from simulator.hardware.collective_constants import COLLECTIVES
from simulator.hardware.profile import INLINE, PROFILE_FOLDER, load_profile
from simulator.parallel.groups import Collective

CPU = (PROFILE_FOLDER / "local-cpu.toml").read_text()
CONSTANTS = (PROFILE_FOLDER / "fitted" / "nominal_cpu.toml").read_text()


def one_file(folder: Path, *, constants: str = CONSTANTS, machine: str = CPU) -> Path:
    """Return the path of a profile with its constants inside."""
    document = tomlkit.parse(machine)
    document.remove("constants")
    document["constants"] = tomlkit.parse(constants).unwrap()
    path = folder / "one.toml"
    path.write_text(tomlkit.dumps(document))
    return path


def test_one_file_is_the_same_machine_as_two(tmp_path: Path) -> None:
    one, two = load_profile(str(one_file(tmp_path))), load_profile("local-cpu")
    assert one.constants == two.constants
    assert one.machine == two.machine.model_copy(update={"constants": INLINE})


def test_the_hash_is_of_the_one_file(tmp_path: Path) -> None:
    first = load_profile(str(one_file(tmp_path))).sha256
    again = load_profile(str(one_file(tmp_path))).sha256
    changed = CONSTANTS.replace("efficiency = 0.6\n", "efficiency = 0.61\n")
    other = load_profile(str(one_file(tmp_path, constants=changed))).sha256
    assert first == again != other


def test_problems_of_machine_and_constants_are_told_together_with_their_keys(
    tmp_path: Path,
) -> None:
    machine = CPU.replace("compute_units = 64", "compute_units = 0")
    constants = CONSTANTS.replace('start = "5 us"', 'start = "5 GB"', 1)
    with pytest.raises(InputError) as raised:
        load_profile(str(one_file(tmp_path, constants=constants, machine=machine)))
    keys = [problem.key for problem in raised.value.problems]
    assert keys == ["accelerator.compute_units", "constants.gemm.bf16.start"]


def test_a_collective_that_does_not_exist_is_refused_by_its_key(tmp_path: Path) -> None:
    wrong = CONSTANTS.replace('alltoall = "pairwise"', 'all_to_all = "pairwise"')
    wrong += "\n[collectives.apart]\nall_gathr = 1.5\n"
    with pytest.raises(InputError) as raised:
        load_profile(str(one_file(tmp_path, constants=wrong)))
    where = "constants.collectives."
    assert {problem.key: problem.rule for problem in raised.value.problems} == {
        f"{where}algorithms.all_to_all": "is no collective; did you mean 'alltoall'?",
        f"{where}apart.all_gathr": "is no collective; did you mean 'all_gather'?",
    }


def test_constants_name_the_collectives_as_groups_do() -> None:
    assert list(COLLECTIVES) == [collective.value for collective in Collective]


def test_a_profile_without_constants_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text("\n".join(x for x in CPU.splitlines() if not x.startswith("constants")))
    with pytest.raises(InputError, match="constants: this key is required"):
        load_profile(str(path))
