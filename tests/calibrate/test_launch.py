"""Job scripts hold what the site file says, quoted, and nothing that was guessed silently."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.launch import local_command, sbatch_script
from simulator.errors import InputError
from simulator.site_file import GpuRequest, Site, read_site
from traincast.cli import main

SITE = """
partition = "gpu"
nodes = 2
gpus_per_node = 8
time = "00:30:00"
gpus = "gpus-per-node"
"""


def site_file(folder: Path, text: str) -> Path:
    path = folder / "site.toml"
    path.write_text(text)
    return path


def test_a_script_starts_all_ranks_and_says_what_is_open(tmp_path: Path) -> None:
    script = sbatch_script(read_site(site_file(tmp_path, SITE)), ["--out", "run"])
    assert script == (
        "#!/bin/bash -l\n"
        "#SBATCH --job-name=traincast-calibrate\n"
        "#SBATCH --partition=gpu\n"
        "#SBATCH --nodes=2\n"
        "#SBATCH --ntasks-per-node=8\n"
        "#SBATCH --time=00:30:00\n"
        "#SBATCH --gpus-per-node=8\n"
        "# Not in the site file, so Slurm's own defaults hold: account, qos, constraint, "
        "cpus_per_task.\n"
        "# ranks_per_node is not given: one an accelerator, 8.\n"
        "# port is not given: 20000 plus the job's number modulo 10000.\n"
        "# python is not given: python3.\n"
        "# exclusive is false: other jobs on these nodes disturb what is measured.\n"
        "set -eo pipefail\n"
        'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"\n'
        "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
        "export MASTER_ADDR MASTER_PORT\n"
        "srun --kill-on-bad-exit=1 --ntasks-per-node=8 "
        "python3 -m traincast calibrate run --out run\n"
    )


def test_everything_wrong_in_a_site_file_is_told_at_once(tmp_path: Path) -> None:
    text = 'partition = "gpu"\ntime = "soon"\npartitoin = "x"\nnodes = 0\n'
    with pytest.raises(InputError) as caught:
        read_site(site_file(tmp_path, text))
    keys = sorted(problem.key for problem in caught.value.problems)
    assert keys == ["gpus", "gpus_per_node", "nodes", "partitoin", "time"]


def test_a_cpu_cluster_must_say_how_many_ranks(tmp_path: Path) -> None:
    text = SITE.replace("gpus_per_node = 8", "gpus_per_node = 0")
    with pytest.raises(InputError, match="ranks_per_node: must be given"):
        read_site(site_file(tmp_path, text))


@pytest.mark.parametrize("value", ["gpu\\n#SBATCH --exclusive", "gpu x", "gpu;ls", "$(ls)", '\\"'])
def test_a_directive_is_one_word(tmp_path: Path, value: str) -> None:
    text = SITE.replace('partition = "gpu"', f'partition = "{value}"')
    with pytest.raises(InputError, match="partition: must be one word"):
        read_site(site_file(tmp_path, text))


@pytest.mark.parametrize("key", ["setup", "modules"])
def test_a_line_that_holds_two_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError, match=f"{key}.*must be one line"):
        read_site(site_file(tmp_path, SITE + f'{key} = ["a\\nb"]\n'))


@given(value=st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))))
def test_a_shell_reads_back_every_value_of_a_variable(value: str) -> None:
    if value and not value.isprintable():
        return
    site = Site(
        partition="p",
        nodes=1,
        gpus_per_node=1,
        time="10",
        gpus=GpuRequest.NONE,
        environment={"NCCL_X": value},
    )
    lines = sbatch_script(site, ["--out", value]).splitlines()
    (export,) = [line for line in lines if line.startswith("export NCCL_X")]
    assert shlex.split(export) == ["export", f"NCCL_X={value}"]
    assert shlex.split(lines[-1])[-1] == value


def test_a_script_is_valid_shell(tmp_path: Path) -> None:
    text = SITE + (
        'modules = ["cuda/12"]\nsetup = ["source env.sh"]\n'
        '[container]\nimage = "/a b.sqsh"\nmounts = ["/x:/x"]\n[environment]\nA = "it\'s"\n'
    )
    script = sbatch_script(read_site(site_file(tmp_path, text)), ["--out", "run"])
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "'--container-image=/a b.sqsh' --container-mounts=/x:/x" in script


def test_one_local_rank_needs_no_torchrun() -> None:
    assert "torch.distributed.run" not in local_command(1, ["--out", "run"])


def test_local_ranks_are_started_by_torchrun() -> None:
    command = local_command(2, ["--out", "run"])
    assert command[1:6] == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "--out", "x"], "one of --local N, --torchrun and --slurm SITE.toml is needed"),
        (["--torchrun", "--", "--out", "x"], "--endpoint: is needed with --torchrun"),
        (["--torchrun", "--", "--plan", "quick"], "Missing option '--out'"),
        (
            ["--local", "2", "--", "--out", "x", "--budget", "0 s"],
            "--budget: must be greater than 0",
        ),
        (["--local", "2", "--", "--out", "x", "--plan", "no.toml"], "no.toml: no such file"),
        (["--torchrun", "--", "--out", "x", "--plan", "nope"], "nope: is neither a shipped plan"),
        (["--torchrun", "--", "--out", "x", "--bugdet", "1 s"], "No such option"),
    ],
)
def test_a_launch_that_cannot_work_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    code = main(["calibrate", "launch", *arguments])
    assert (code, words in capsys.readouterr().err) == (2, True)


def test_the_line_for_every_node_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--nodes", "2", "--gpus-per-node", "8", "--endpoint", "n1:29500"]
    main(["calibrate", "launch", "--torchrun", *options, "--", "--out", "run"])
    assert capsys.readouterr().out == (
        "torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint n1:29500 "
        "--rdzv-id traincast -m traincast calibrate run --out run\n"
    )


def test_a_written_script_names_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, script = tmp_path / "site.toml", tmp_path / "job.sbatch"
    site.write_text(
        'partition = "b"\nnodes = 1\ngpus_per_node = 8\ngpus = "gres"\ntime = "00:10:00"\n',
        encoding="utf-8",
    )
    main(["calibrate", "launch", "--slurm", str(site), "--out", str(script), "--", "--out", "run"])
    assert capsys.readouterr().err == f"wrote {script}; next: sbatch {script}\n"
