"""Ranks are read from torchrun's and Slurm's variables, and contradictions are told."""

from __future__ import annotations

import pytest

from calibrate.batches import World
from calibrate.fingerprints import differences
from calibrate.identity import Identity, read_identity
from calibrate.records import Fingerprint
from simulator.errors import InputError

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
}
SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
}
FIFTH = Identity(
    rank=5, local_rank=1, world=World(size=8, local_size=4), host="h", master="node0", port=29500
)


def identity(environment: dict[str, str]) -> Identity:
    found = read_identity(environment)
    return Identity(
        rank=found.rank,
        local_rank=found.local_rank,
        world=found.world,
        host="h",
        master=found.master,
        port=found.port,
    )


@pytest.mark.parametrize("environment", [TORCHRUN, SLURM], ids=["torchrun", "srun"])
def test_a_rank_knows_its_place(environment: dict[str, str]) -> None:
    assert identity(environment) == FIFTH


def test_torchrun_comes_before_slurm() -> None:
    assert identity({**SLURM, **TORCHRUN, "RANK": "4", "LOCAL_RANK": "0"}).rank == 4


def test_without_variables_a_process_is_alone() -> None:
    assert identity({}) == Identity(host="h")


def test_one_process_under_a_launcher_needs_no_master() -> None:
    assert identity({"RANK": "0", "WORLD_SIZE": "1"}) == Identity(host="h")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"MASTER_ADDR": ""}, "MASTER_ADDR: must be set"),
        ({"RANK": "x"}, "RANK: must be a number"),
        ({"RANK": "8"}, "RANK: must be less than WORLD_SIZE = 8"),
        ({"LOCAL_RANK": "4"}, "LOCAL_RANK: must be less than LOCAL_WORLD_SIZE = 4"),
        ({"LOCAL_RANK": "2"}, "LOCAL_RANK: must be RANK modulo LOCAL_WORLD_SIZE"),
        ({"WORLD_SIZE": "7"}, "WORLD_SIZE: must be a multiple of LOCAL_WORLD_SIZE = 4"),
        ({"LOCAL_WORLD_SIZE": "0"}, "WORLD_SIZE: must be a multiple"),
        ({"RANK": "9" * 5000}, "RANK: must be a number"),
        ({"WORLD_SIZE": "999999996"}, "WORLD_SIZE: must be at most 1048576"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT: must be 1 to 65535"),
    ],
)
def test_contradictions_are_told(change: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_identity({**TORCHRUN, **change})


def test_all_missing_variables_are_named_at_once() -> None:
    with pytest.raises(InputError, match="LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT"):
        read_identity({"RANK": "1", "WORLD_SIZE": "2"})


def test_slurm_nodes_with_different_numbers_of_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="every node must have as many ranks"):
        read_identity({**SLURM, "SLURM_TASKS_PER_NODE": "4,3"})


def test_memory_that_firmware_keeps_is_no_other_machine() -> None:
    one, other = Fingerprint(accelerator_memory=80.0e9), Fingerprint(accelerator_memory=79.5e9)
    assert differences(one, other) == ()


def test_variables_that_change_what_is_measured_tell_machines_apart() -> None:
    one = Fingerprint(environment={"NCCL_ALGO": "Ring", "CUDA_VISIBLE_DEVICES": "0"})
    other = Fingerprint(environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert differences(one, other) == ("NCCL_ALGO Ring and not set",)
