"""Every generated page and schema, by its path under docs/reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel

from calibrate.plan_file import Plan
from planner.energy import PowerModel
from planner.goodput.rates import ReliabilityFile
from planner.sweep.row import Row
from planner.sweep.sweep_file import SweepFile
from simulator.hardware.constants import FittedConstants
from simulator.hardware.profile import ProfileFile
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import ScenarioFile
from simulator.site_file import Site
from simulator.workload.job import TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from traincast.docs.calibration_files import calibration_page
from traincast.docs.command_line import cli_page
from traincast.docs.failure_rates import rates_page
from traincast.docs.files import models_page, profiles_page, stacks_page
from traincast.docs.goodput_output import goodput_page
from traincast.docs.launch_files import launch_page
from traincast.docs.machine_output import explanation_page, plan_page, validation_page
from traincast.docs.markdown import page
from traincast.docs.records import record_sections
from traincast.docs.registries import collectives_page, schedules_page
from traincast.docs.results import results_page
from traincast.docs.schemas import schema_text
from traincast.docs.topologies import topology_page, topology_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    """One kind of file that users write (or one table of it)."""

    name: str
    record: type[BaseModel]
    title: str
    intro: str
    optional: frozenset[str] = frozenset()
    """Keys that files may leave out though the record has no default for them."""
    schema: bool = True
    """Whether a file is one such record."""


FILE_PAGES = (
    FilePage(
        name="scenario",
        record=ScenarioFile,
        title="The scenario file",
        intro="A TOML file for `traincast plan`, `simulate` and `traincast.load_scenario`. Files "
        "that it names are found relative to it.",
    ),
    FilePage(
        name="sweep",
        record=SweepFile,
        title="The sweep file",
        intro="What `traincast sweep` forecasts: a scenario, and the values that keys of it take. "
        "Keys are those of the scenario file, with dots between tables (`cluster.nodes`, "
        "`search.tp`), and of the files that it names: `accelerator.`, `node.`, `fabric.`, "
        "`price.` of the profile, `constants.` of its constants, `stack.` and `model.`; their "
        'values may be factors, as `"x2"`. How: '
        "[../how-to/compare-and-sweep.md](../how-to/compare-and-sweep.md).",
    ),
    FilePage(
        name="sweep-rows",
        record=Row,
        title="The rows of a sweep",
        intro="What `traincast sweep` and `traincast compare` write of each combination or "
        "scenario with `--csv`, `--json` and `--parquet`. In tables the keys of the sweep come "
        "first, `axes` is spread over columns with the names of [layout.md](layout.md), and "
        "`warnings` are one text; in JSON the keys are `values`. A comparison has "
        "`<column>_difference` and `<column>_ratio` to the first scenario (JSON: "
        "`against_first`), and JSON also `changed`, the keys in which the scenarios differ.",
        schema=False,
    ),
    FilePage(
        name="model",
        record=ModelSpec,
        title="The model file",
        intro="A decoder in the names of Hugging Face configs. A scenario may also name a "
        "shipped model ([models.md](models.md)) or a Hugging Face `config.json`.",
        optional=frozenset({"num_key_value_heads", "head_dim"}),
    ),
    FilePage(
        name="profile",
        record=ProfileFile,
        title="The profile file",
        intro="One machine: the vendor's numbers, each with its source. Its fitted constants "
        "stand in a second file: [constants.md](constants.md).",
    ),
    FilePage(
        name="constants",
        record=FittedConstants,
        title="The constants file",
        intro="The constants of the cost model on one accelerator, which `key = constants` of a "
        "profile names. The formulas are derived in [../background](../background/README.md).",
    ),
    FilePage(
        name="stack",
        record=Stack,
        title="The stack file",
        intro="What one training framework does: kernels, overlap, dtypes, memory, partition. "
        "Shipped: [stacks.md](stacks.md).",
    ),
    FilePage(
        name="measuring-plan",
        record=Plan,
        title="The measuring plan",
        intro="What `traincast calibrate run --plan FILE.toml` measures. Shipped: `quick`, "
        "`standard` and `full`, in `calibrate/plans/`.",
    ),
    FilePage(
        name="site",
        record=Site,
        title="The site file",
        intro="What `traincast calibrate launch --slurm FILE.toml` and `traincast launch export "
        "--slurm FILE.toml` need to know of a cluster.",
    ),
    FilePage(
        name="reliability",
        record=ReliabilityFile,
        title="The failure rates file",
        intro="What fails how often, for `run.failures.rates` of a scenario: failures that were "
        "counted, and where. Shipped: [failure-rates.md](failure-rates.md).",
    ),
    FilePage(
        name="power-model",
        record=PowerModel,
        title="The power model file",
        intro="How watts follow from what accelerators do, for `run.energy.power_model` of a "
        "scenario. Shipped: `training`, in `hardware_profiles/power/`.",
    ),
    FilePage(
        name="layout",
        record=ParallelLayout,
        title="The layout table",
        intro="`[layout]` of a scenario.",
        schema=False,
    ),
    FilePage(
        name="job",
        record=TrainingJob,
        title="The job table",
        intro="`[job]` of a scenario.",
        schema=False,
    ),
)

_PAGES = {file.record: f"{file.name}.md" for file in FILE_PAGES}

LISTS: dict[str, Callable[[], str]] = {
    "profiles.md": profiles_page,
    "models.md": models_page,
    "stacks.md": stacks_page,
    "schedules.md": schedules_page,
    "collectives.md": collectives_page,
    "cli.md": cli_page,
    "failure-rates.md": rates_page,
    "goodput-json.md": goodput_page,
    "validation-json.md": validation_page,
    "plan-json.md": plan_page,
    "results.md": results_page,
    "explain-json.md": explanation_page,
    "calibration-files.md": calibration_page,
    "topology.md": topology_page,
    "launch-files.md": launch_page,
    "schema/topology.json": topology_schema,
}


def builders() -> dict[str, Callable[[], str]]:
    """Return what builds each file under docs/reference."""
    found: dict[str, Callable[[], str]] = {}
    for file in FILE_PAGES:
        found[f"{file.name}.md"] = partial(_record_page, file)
        if file.schema:
            schema = partial(schema_text, file.record, file.title, file.optional)
            found[f"schema/{file.name}.json"] = schema
    return found | LISTS


def _record_page(file: FilePage) -> str:
    others = {record: name for record, name in _PAGES.items() if record is not file.record}
    schema = f"Editors can check it: [schema/{file.name}.json](schema/{file.name}.json)."
    sections = record_sections(file.record, others, file.optional)
    return page(file.title, file.intro, schema if file.schema else "", sections)
