"""Scripts are read as a shell would run them, as far as that can be known."""

from __future__ import annotations

import pytest

from planner.launch.flags import parse_flags
from planner.launch.shell_script import read_script
from simulator.errors import InputError


def arguments(text: str, **given: str) -> list[str]:
    """Return the arguments of the last command of a script."""
    return list(read_script(text, "train.sh", given).commands[-1].arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python train.py --tp 8", ["--tp", "8"]),
        ("python train.py \\\n  --tp 8 \\\n  --pp 2 # why\n", ["--tp", "8", "--pp", "2"]),
        ("TP=8\npython train.py --tp $TP", ["--tp", "8"]),
        ("export TP=${TP:-4}\npython train.py --tp ${TP}", ["--tp", "4"]),
        ("N=2; G=8\npython train.py --n $((N * $G))", ["--n", "16"]),
        ("A=(--x 1)\nA+=(--y '2 3')\npython t.py \"${A[@]}\"", ["--x", "1", "--y", "2 3"]),
        ("A=(--y '2 3')\npython train.py ${A[@]}", ["--y", "2", "3"]),
        ('A="--x 1 --y"\npython train.py $A', ["--x", "1", "--y"]),
        ('CMD="python train.py --tp 8"\neval $CMD', ["--tp", "8"]),
        ('srun bash -c "python train.py --tp 8"', ["--tp", "8"]),
        ("srun python -u train.py --tp 8", ["--tp", "8"]),
        ("python train.py --tp $TP", ["--tp", "$TP"]),
        ("A=(\n  --x 1 # one (of two)\n  # --y 2\n)\npython train.py ${A[@]}", ["--x", "1"]),
    ],
)
def test_words_are_those_of_a_shell(text: str, expected: list[str]) -> None:
    assert arguments(text) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('[[ "$KIND" == "fp8" ]]', "--fp8"),
        ('[ "$KIND" = bf16 ]', "--other"),
        ('[[ -z "$NOWHERE" ]] && [ 2 -gt 1 ]', "--fp8"),
        ('[ $KIND == bf16 ] || [[ -n "$NOWHERE" ]]', "--other"),
    ],
)
def test_a_condition_chooses_its_branch(condition: str, expected: str) -> None:
    text = (
        f"KIND=fp8\nif {condition}; then\nA=(--fp8)\nelse\nA=(--other)\nfi\npython t.py ${{A[@]}}"
    )
    assert arguments(text) == [expected]


def test_what_the_user_sets_stands_in_for_a_variable_and_wins() -> None:
    assert arguments("TP=1\npython train.py --tp $TP --pp $PP", TP="8", PP="4") == [
        *("--tp", "8"),
        *("--pp", "4"),
    ]


def test_a_loop_without_arguments_is_passed_over() -> None:
    assert arguments("for x in a b; do\n  mkdir $x\ndone\npython train.py --tp 2") == ["--tp", "2"]


def test_arguments_that_only_a_run_would_tell_are_refused_by_line() -> None:
    text = "if [ -f data ]; then\n  A=1\n  python train.py --tp 8\nfi\n"
    with pytest.raises(InputError, match="line 1: an if whose arguments"):
        read_script(text, "train.sh", {})


def test_a_condition_that_cannot_be_followed_names_its_variables_and_lines() -> None:
    text = "A=1\nN=$(nodes)\nif [ $N -gt $M ]; then\n  A=2\n  python train.py --tp 8\nfi\n"
    with pytest.raises(InputError) as caught:
        read_script(text, "train.sh", {})
    message = str(caught.value)
    assert (
        "train.sh: line 3: an if, which asks for $N of line 2 and $M, whose arguments in line 5 "
        "only a run of the script can tell"
    ) in message
    assert "--set N=VALUE --set M=VALUE, or give the arguments" in message


def test_the_line_that_a_value_is_lost_in_is_known() -> None:
    text = "A=1\nB=$(x)\nif [ -f x ]; then\n  A=2\n  B=3\nfi\nC=$(x)\nC=3\npython t.py --tp $A"
    assert read_script(text, "train.sh", {}).commands[0].lost == {"A": 4, "B": 5}


@pytest.mark.parametrize(
    "line",
    [
        "if [ -f x ]; then TP=8; fi",
        "while read x; do TP=8; done",
        "case $1 in 70b) TP=8;; esac",
        "f() {\n  TP=8\n}",
        "TP=$(cat tp)",
        "[ -f x ] && TP=8",
        "export PP=1 TP=8",
        'if [ -f x ]; then TP=8; fi; if [ -z "$TP" ]; then TP=2; fi',
    ],
)
def test_a_variable_that_only_a_run_would_tell_is_unknown(line: str) -> None:
    assert arguments(f"TP=4\n{line}\npython train.py --tp ${{TP:-2}}") == ["--tp", "$TP"]


@pytest.mark.parametrize(
    "text",
    [
        "A=xxxxxxxx\n" + 'A="$A$A"\n' * 40,
        "A=(x)\n" + 'A+=("${A[@]}")\n' * 40,
        "if [ 1 = 1 ]; then\n" * 1000 + "fi\n" * 1000,
        "\\\n" * 100_000,
    ],
    ids=["word", "array", "nesting", "lines"],
)
def test_a_script_that_grows_without_end_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no launch script: "):
        read_script(text, "train.sh", {})


@pytest.mark.parametrize("text", ["N=$((N+1))\nM=$((N*2))", f"M=$(({'-' * 50_001}1))"])
def test_a_sum_that_has_no_value_stays_as_it_is(text: str) -> None:
    assert read_script(text, "train.sh", {}).variables["M"].startswith("$((")


def test_a_file_that_a_script_writes_is_kept() -> None:
    script = read_script('BS=4\ncat <<EOT > "ds.json"\n{"a": $BS}\nEOT\n', "train.sh", {})
    assert script.written == {"ds.json": '{"a": 4}'}


def test_negative_numbers_are_values_and_the_last_flag_counts() -> None:
    flags = parse_flags(["--a", "-1", "--b=2", "--c", "1", "2", "--a", "3", "-x"])
    assert flags == {"a": "3", "b": "2", "c": ["1", "2"], "x": True}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("read -r N M", "$N"),
        ("echo 4 | read N", "$N"),
        ("mapfile -t N < hosts", "$N"),
        ("unset N", "$N"),
        ("if [ -f x ]; then\nunset N\nfi", "$N"),
        ("read M", "4"),
    ],
)
def test_what_is_read_or_unset_keeps_no_old_value(change: str, expected: str) -> None:
    assert arguments(f"N=4\n{change}\npython t.py --tp $N") == ["--tp", expected]


def test_a_variable_that_is_unset_takes_its_default() -> None:
    assert arguments("N=4\nunset N\npython t.py --tp ${N:-2}") == ["--tp", "2"]
