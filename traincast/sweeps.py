"""What `sweep` and `compare` compute, as data frames."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    import pandas as pd

    from planner.sweep.comparison import Comparison
    from planner.sweep.run import Progress, Swept
    from planner.sweep.sweep_file import Sweep

Table = Mapping[str, Sequence[Any]]


def sweep(
    source: Path | str,
    *,
    over: Table | None = None,
    together: Sequence[Table] = (),
    what: str = "plan",
    jobs: int | None = None,
    scheduler: str = "",
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return one row a combination, in order: its values, what became of it, and its forecast.

    `source` is a sweep file; with `over` or `together`, keys with their values, it is the scenario
    file that they are of. Finished rows are kept in the folder `out`, and not computed again.

    >>> scenario = "examples/llama3.1-8b-dgx-h100.toml"
    >>> frame = sweep(scenario, over={"cluster.nodes": [1, 2]}, what="estimate")
    >>> list(frame["accelerators"]), list(frame["outcome"])
    ([8, 16], ['ok', 'ok'])

    Raises:
        InputError: anything wrong in the file or in any combination; all of it is listed.
    """
    from planner.sweep.run import Workers

    asked = _asked(source, over, together, what) if over or together else read_sweep(source)
    workers = Workers(jobs=jobs, scheduler=scheduler)
    folder = None if out is None else Path(out)
    return sweep_frame(run_sweep(asked, workers, folder, progress))


def compare(*scenarios: Path | str, layout: bool = False, jobs: int | None = None) -> pd.DataFrame:
    """Return one row a scenario file: its best plan, with differences and ratios to the first.

    With `layout` it is the step of each scenario's own `[layout]`.

    Raises:
        InputError: anything wrong in any of the files; all of it is listed.
    """
    from planner.sweep.run import Workers

    paths = tuple(str(path) for path in scenarios)
    return comparison_frame(run_comparison(paths, Workers(jobs=jobs), layout=layout))


def read_sweep(path: Path | str) -> Sweep:
    """Return the sweep in a file. Raises `InputError` with all that is wrong in the file itself."""
    from planner.sweep.sweep_file import load_sweep

    return load_sweep(path)


def run_sweep(
    asked: Sweep, workers: Any, folder: Path | None, progress: Progress | None = None
) -> Swept:
    """Return the rows of a sweep. Raises `InputError` as `sweep` does."""
    from planner.sweep.cases import cases_of
    from planner.sweep.run import run_cases

    return run_cases(cases_of(asked), workers=workers, folder=folder, progress=progress)


def run_comparison(
    paths: tuple[str, ...],
    workers: Any,
    *,
    layout: bool,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Return the comparison of scenario files. Raises `InputError` as `compare` does."""
    from planner.sweep.cases import scenario_cases
    from planner.sweep.comparison import compare_rows
    from planner.sweep.run import run_cases
    from planner.sweep.sweep_file import Method

    what = Method.SIMULATE if layout else Method.PLAN
    return compare_rows(run_cases(scenario_cases(paths, what), workers=workers, progress=progress))


def sweep_frame(swept: Swept) -> pd.DataFrame:
    """Return a sweep as a data frame."""
    import pandas as pd

    from reports.sweep_record import sweep_rows

    return pd.DataFrame(sweep_rows(swept))


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """Return a comparison as a data frame."""
    import pandas as pd

    from reports.sweep_record import comparison_rows

    return pd.DataFrame(comparison_rows(comparison))


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a data frame as a Parquet file; columns of mixed kinds become text.

    Raises:
        InputError: pyarrow is not installed.
    """
    check_parquet()
    text = {name: frame[name].map(_text) for name in frame.columns if _is_mixed(frame[name])}
    written = io.BytesIO()
    frame.assign(**text).to_parquet(written)
    return written.getvalue()


def check_parquet(key: str = "--parquet") -> None:
    """Raise `InputError` where no Parquet file can be written here; `key` is what asks for it."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        rule, fix = "needs pyarrow, which is not installed", "pip install 'traincast[parquet]'"
        raise InputError(Problem(key=key, rule=rule, fix=fix))


def _is_mixed(column: pd.Series[Any]) -> bool:
    """Return whether a column holds values that no Parquet column has together."""
    return column.dtype == object and len({type(value) for value in column.dropna()}) > 1


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _asked(source: Path | str, over: Table | None, together: Sequence[Table], what: str) -> Sweep:
    from planner.sweep.sweep_file import SweepFile, sweep_of
    from simulator.files import parse_record

    table = {
        "scenario": str(source),
        "what": what,
        "over": {key: list(values) for key, values in (over or {}).items()},
        "together": [{k: list(values) for k, values in group.items()} for group in together],
    }
    file = parse_record(SweepFile, {"sweep": table}, "sweep()")
    return sweep_of(file, "sweep()", Path(source))
