"""Re-creates the collective constants of the shipped profiles from published measurements.

`python -m calibrate.fit_shipped_collectives` writes the `[collectives]` table and its `[[fit]]`
record into `hardware_profiles/fitted/*.toml` and leaves every other table alone.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import tomlkit
from tomlkit.items import AoT, Table

from calibrate.fit_collectives import CollectiveFit, fit_collectives
from simulator.cost.collectives.request import Links
from simulator.files import parse_record, read_text, read_toml, write_atomic
from simulator.hardware.cluster import ScaleUp
from simulator.hardware.collective_constants import CollectiveConstants
from simulator.hardware.profile import PROFILE_FOLDER
from simulator.units import US

DATA_VARIABLE = "TRAINCAST_DATA"
TABLE = "collectives/nccl_single_node.csv"
FITTED_FOLDER = PROFILE_FOLDER / "fitted"
_BLOCK = "collectives"
_DIGITS = 4
_NEGLIGIBLE = 1e-9
"""Seconds; a fit in logarithms cannot reach 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """One file of fitted constants: whose nominal link it refers to, and where it starts from."""

    file: str
    gpu: str
    """As the table of measurements writes it."""
    profile: str
    start: str
    """The file whose constants stay where nothing was measured."""


SHIPPED = (
    Shipped(file="a100_sxm", gpu="a100_sxm", profile="dgx-a100-80gb", start="nominal_gpu"),
    Shipped(file="h100_sxm", gpu="h100_sxm", profile="dgx-h100", start="nominal_gpu"),
    Shipped(file="b200_sxm", gpu="b200_sxm", profile="dgx-b200", start="nominal_gpu"),
    Shipped(file="gb200", gpu="gb200", profile="gb200-nvl72", start="b200_sxm"),
    Shipped(
        file="rtx_pro_6000",
        gpu="rtx_pro_6000_server",
        profile="rtx-pro-6000-node",
        start="nominal_gpu",
    ),
)


def main() -> None:
    """Fit and write all of `SHIPPED`."""
    table = pd.read_csv(data_folder() / TABLE)
    for shipped in SHIPPED:
        newest = newest_release(table[table["gpu"] == shipped.gpu])
        fit = fit_collectives(newest, links_before(shipped))
        write_block(FITTED_FOLDER / f"{shipped.file}.toml", fit, _source(newest))
        sys.stdout.write(
            f"{shipped.file}: {fit.points} points; held out {len(fit.held_out)}: "
            f"median {fit.median_error:.1%}, p90 {fit.p90_error:.1%}\n"
        )


def data_folder() -> Path:
    """Return the folder of published measurements; `TRAINCAST_DATA` names another one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get(DATA_VARIABLE, beside))


def newest_release(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the newest release of the library in a table."""
    releases = rows["nccl_version"].astype(str)
    newest = max(set(releases), key=lambda text: [int(part) for part in text.split(".")])
    return rows[releases == newest]


def links_before(shipped: Shipped) -> Links:
    """Return the nominal links of a profile, with the constants that the fit starts from."""
    machine = read_toml(PROFILE_FOLDER / f"{shipped.profile}.toml")
    scale_up = parse_record(ScaleUp, machine["node"]["scale_up"], shipped.profile)
    return Links(
        bandwidth=scale_up.bandwidth,
        nic_share=0.0,
        hop_latency=0.0,
        in_network_reduction=scale_up.in_network_reduction,
        host_bandwidth=1.0,
        constants=read_block(FITTED_FOLDER / f"{shipped.start}.toml"),
    )


def read_block(path: Path) -> CollectiveConstants:
    """Return the collective constants in a file of fitted constants."""
    return parse_record(CollectiveConstants, read_toml(path)[_BLOCK], str(path))


def write_block(path: Path, fit: CollectiveFit, source: str) -> None:
    """Replace the `[collectives]` table of a file and its `[[fit]]` record, and nothing else."""
    block = _table(fit.constants.model_dump(exclude_none=True, exclude={"residual"}))
    curves = tomlkit.aot()
    for curve in fit.constants.residual:
        curves.append(_curve(curve.model_dump()))
    block.append("residual", curves)
    block.add(tomlkit.nl())
    record = {
        "what": _BLOCK,
        "origin": "fitted",
        "source": source,
        "points": fit.points,
        "held_out_points": len(fit.held_out),
        "held_out_median_error": round(fit.median_error, _DIGITS),
        "held_out_p90_error": round(fit.p90_error, _DIGITS),
    }
    document = tomlkit.parse(read_text(path)) if path.exists() else tomlkit.document()
    document[_BLOCK] = block
    records = document.setdefault("fit", tomlkit.aot())
    assert isinstance(records, AoT)
    _replace_record(records, record)
    write_atomic(path, tomlkit.dumps(document))


def _replace_record(records: AoT, record: dict[str, Any]) -> None:
    for existing in records:
        if existing.get("what") == record["what"]:
            existing.clear()
            existing.update(record)
            return
    table = tomlkit.table()
    table.update(record)
    records.append(table)


def _source(rows: pd.DataFrame) -> str:
    release = rows["nccl_version"].iloc[0]
    return (
        f"NCCL {release} on one node, run back to back, device time ({TABLE}); newest release, "
        "all payloads; formulas and residual table fitted to the same cells; network constants "
        "as in the file that the fit started from"
    )


def _table(values: dict[str, Any]) -> Table:
    """Return numbers as a TOML table, with the units that its field names call for."""
    table = tomlkit.table()
    for key, value in values.items():
        table.append(key, _table(value) if isinstance(value, dict) else _written(key, value))
    return table


def _written(key: str, value: float | str) -> str | float:
    if isinstance(value, int | str):
        return value
    rounded = float(f"{value:.{_DIGITS}g}")
    if key.endswith(("start", "latency", "step")):
        return f"{value / US:.{_DIGITS}g} us" if value > _NEGLIGIBLE else "0 us"
    return f"{rounded:.0f} B" if key.endswith(("bytes", "fill", "burst")) else rounded


def _curve(values: dict[str, Any]) -> Table:
    table = tomlkit.table()
    table.append("op", values["op"])
    table.append("ranks", values["ranks"])
    table.append("payload", [f"{payload:.0f} B" for payload in values["payload"]])
    table.append("log_ratio", list(values["log_ratio"]))
    return table


if __name__ == "__main__":
    main()
