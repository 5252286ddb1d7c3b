"""What every verb shows: on terminals of any width, in pipes, without colours, in other encodings.

One list of verbs, one contract: a new verb that prints is added to `VERBS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.calibrate.kineto_traces import GEMM, kernel, mark, write_trace
from tests.calibrate.logs import log
from tests.planner.test_placing import scenario as racks
from tests.reports.result_files.made import write_inputs
from tests.traincast.bad_files import SCENARIO, toml_text
from tests.traincast.command_line import run
from tests.traincast.terminals import (
    Shown,
    in_closed_pipe,
    in_pipe,
    on_terminal,
    with_progress,
)

SCRIPT = str(Path(__file__).parents[2] / "examples/launch/megatron-gpt-1.3b.sh")
VERBS = {
    "profiles": ("profiles",),
    "models": ("models",),
    "a model": ("models", "deepseek-v3"),
    "stacks": ("stacks",),
    "topology": ("topology", "show", "dgx-h100", "--nodes", "4", "--pair", "0,9"),
    "simulate": ("simulate", "chinese.toml"),
    "plan": ("plan", "plan.toml", "--top", "3"),
    "goodput": ("goodput", "run.toml"),
    "compare": ("compare", "scenario.toml", "other.toml", "--layout"),
    "sweep": ("sweep", "sweep.toml"),
    "validate": ("validate", "rows.csv"),
    "check": ("calibrate", "check", "measured", "--profile", "dgx-h100"),
    "place": ("place", "racks/scenario.toml", "--budget", "10", "-o", "places.csv"),
    "replay": ("replay", "traces", "--profile", "lan-workstations"),
    "report": ("report", "result.json", "-o", "page.md", "--tables", "tables"),
    "fit": ("calibrate", "fit", "measured", "--base", "dgx-h100", "--out", "fitted.toml"),
    "import": ("calibrate", "import", "nccl.log", "--out", "imported"),
    "calibration": ("calibrate", "report", "measured", "--profile", "dgx-h100"),
    "export": ("launch", "export", "small.toml", "--tool", "megatron-lm", "--out", "launch"),
    "launch import": ("launch", "import", SCRIPT, "--cluster", "dgx-h100", "-o", "launched.toml"),
    "network import": ("topology", "import", "slurm.conf", "--profile", "dgx-h100", "-o", "n.toml"),
    "trace": ("trace", "compare", "timeline.json", "real.json"),
}
WITH_BARS = (
    *("simulate", "plan", "goodput", "compare", "sweep", "validate", "check"),
    *("place", "replay", "report", "fit", "import", "calibration"),
)
TALKS = ("export",)
"""Verbs whose files speak for them: what they say goes to standard error."""
SCREENS: dict[str, tuple[int, dict[str, str]]] = {
    "120 columns": (120, {}),
    "80 columns without colours": (80, {"NO_COLOR": "1"}),
    "60 columns of a dumb terminal": (60, {"TERM": "dumb"}),
    "40 columns": (40, {}),
}
CHINESE = "中文标题两个阶段的流水线并行每个阶段十二层一个节点上的八个加速器"
WHOLE = ("wrote ", "next: ")
"""Beginnings of lines that are to be copied, which are never broken."""


@pytest.fixture(scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stand in a folder of inputs. Each verb has run once, so that no child imports anew."""
    folder = tmp_path_factory.mktemp("terminal")
    write_inputs(folder)
    text = (folder / "scenario.toml").read_text()
    (folder / "chinese.toml").write_text(text.replace("GPT-2 <b>small</b>", CHINESE))
    (folder / "racks").mkdir()
    racks(folder / "racks")
    (folder / "nccl.log").write_text(log())
    tree = ["SwitchName=a Nodes=n[0-1]", "SwitchName=b Nodes=n[2-3]", "SwitchName=s Switches=a,b"]
    (folder / "slurm.conf").write_text("\n".join(tree))
    (folder / "small.toml").write_text(toml_text(SCENARIO))
    events = [mark("ProfilerStep#0", 1000.0, 300.0), kernel(GEMM, 1000.0, 250.0)]
    write_trace(folder / "real.json", events, rank=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = ("--chakra", "traces", "--trace", "timeline.json", "--json", "result.json")
        assert run("simulate", "small.toml", *made).code == 0
        assert [run(*verb).code for verb in VERBS.values()] == [0] * len(VERBS)
        yield


pytestmark = pytest.mark.usefixtures("_folder")


def too_wide(shown: Shown, width: int) -> list[str]:
    """Return the lines that go beyond the terminal, other than single words and what is copied."""
    return [
        line
        for line in shown.lines
        if cell_len(line) > width and len(line.split()) > 1 and not line.startswith(WHOLE)
    ]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_fits_the_screen_and_has_no_codes_that_it_did_not_ask_for(
    verb: str, screen: str
) -> None:
    width, environment = SCREENS[screen]
    shown = on_terminal(VERBS[verb], width, **environment)
    assert (shown.code, too_wide(shown, width)) == (0, [])
    assert bool(shown.err) == (verb in TALKS)
    assert not (shown.is_coloured and "NO_COLOR" in environment)
    assert shown.is_plain == (environment.get("TERM") == "dumb" or verb in TALKS)


def test_a_long_answer_fits_a_narrow_screen_too() -> None:
    shown = on_terminal(("explain", "plan.toml"), 40)
    assert (shown.code, shown.err, too_wide(shown, 40)) == (0, "", [])


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in TALKS])
def test_a_pipe_of_another_encoding_has_plain_text_of_it_and_quiet_verbs_are_quiet(
    verb: str,
) -> None:
    quiet = ("--quiet",) if verb in WITH_BARS else ()
    shown = with_progress((*VERBS[verb], *quiet), 80, PYTHONIOENCODING="ascii")
    found = (shown.code, shown.err, shown.is_plain, shown.out.isascii())
    assert found == (0, "", True, True)


@pytest.mark.parametrize("verb", ["profiles", "simulate"])
def test_a_reader_that_has_gone_is_no_reason_for_a_traceback(verb: str) -> None:
    shown = in_closed_pipe(VERBS[verb])
    assert (shown.code, shown.err) == (1, "")


def test_colours_are_there_where_they_mean_something_and_where_they_are_forced() -> None:
    terminal = on_terminal(VERBS["plan"], 120)
    forced = in_pipe(VERBS["plan"], FORCE_COLOR="1")
    first = next(line for line in terminal.out.split("\n") if line.lstrip().startswith("\x1b[32m"))
    assert first.split()[1] == "1"
    assert (forced.is_coloured, in_pipe(VERBS["plan"]).is_plain) == (True, True)


def test_a_chinese_title_is_whole_and_broken_at_the_edge_by_its_cells() -> None:
    lines = on_terminal(VERBS["simulate"], 40).lines
    end = next(n for n in range(1, 6) if "".join(lines[:n]) == CHINESE)
    assert [cell_len(line) for line in lines[: end - 1]] == [40] * (end - 1)


@pytest.mark.parametrize("verb", WITH_BARS)
def test_a_bar_moves_on_a_terminal_beside_plain_output(verb: str) -> None:
    seen = with_progress(VERBS[verb], 40)
    assert (seen.code, "━" in seen.err, seen.is_plain) == (0, True, True)
