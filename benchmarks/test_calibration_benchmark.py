"""How long calibration takes where no machine is measured: reading a log, fitting a folder."""

from __future__ import annotations

from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from calibrate.fit import Fitted, fit_folder
from calibrate.import_options import Imported, ImportOptions
from calibrate.importing import import_file
from calibrate.points import CollectivePoint
from simulator.parallel.groups import Collective
from tests.calibrate.fit_folders import measured, true_machine, write_folder
from tests.calibrate.logs import HEADER, TABLE, devices, row

ROWS = 2000
SIZES = 20
_RING = 1.75
"""Bus over algorithm bandwidth of an all-reduce of eight."""


def test_import_of_a_long_log(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    log = tmp_path / "all_reduce.log"
    rows = "".join(row(4 * (index + 1) * 1024, 20.0 + index, _RING) for index in range(ROWS))
    log.write_text(HEADER + devices(8, 8) + TABLE + rows)

    imported: Imported = benchmark(import_file, log, ImportOptions())

    assert len(imported.lines) == 1 + 2 * ROWS


def test_fit_of_sixty_collectives(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    points = [
        CollectivePoint(collective=collective, ranks=ranks, nodes=1, bytes=1024.0 * 4**power)
        for collective in (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        for ranks in (2, 8)
        for power in range(SIZES // 2)
    ]
    folder = write_folder(tmp_path, measured(points, true_machine()))

    fitted: Fitted = benchmark.pedantic(fit_folder, (folder,), {"base": "dgx-h100"}, rounds=1)

    assert sum(len(block.records) for block in fitted.blocks) == len(points)
