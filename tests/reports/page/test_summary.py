"""What a report concludes where there is something to be careful about."""

from __future__ import annotations

from reports.page.document import document_of
from reports.result_files import ResultFile
from reports.result_files.plan import NearMissFacts, RemedyFacts
from simulator.units import GIB
from tests.reports.page.small_results import BEST, RUN, memory, plan_file, searched, step_file


def said(title: str, *files: ResultFile) -> tuple[str, ...]:
    """Return the sentences of one topic, where all results are of one scenario."""
    (digest,) = document_of(files).summary
    return next((each.sentences for each in digest.statements if each.title == title), ())


def test_where_nothing_fits_the_nearest_and_what_helps_are_named() -> None:
    plan = plan_file(
        searched=searched(fitting=0),
        nearest=(
            NearMissFacts(layout={"tp": 4}, peak_memory_bytes=120 * GIB),
            NearMissFacts(layout={"tp": 8}, peak_memory_bytes=100 * GIB),
        ),
        remedies=(
            RemedyFacts(what="recompute all", fits=True),
            RemedyFacts(what="ep 2", fits=False),
        ),
    )
    assert said("The pick", plan) == ("No layout: of 120 considered 12 are legal and 0 fit.",)
    assert said("Why", plan) == (
        "The closest needs 100.0 GiB, 75.00 GiB may be used.",
        "It would fit with: recompute all.",
    )


def test_a_search_that_was_cut_short_says_how_much_better_another_could_be() -> None:
    plan = plan_file(layouts=(BEST,), searched=searched(fitting=4, gap=0.03))
    assert said("The risk", plan) == (
        "The search was cut short: another layout could be better by up to 3.0 %.",
        "Memory: 40.00 GiB of 80.00 GiB are reserved, 50.0 % are left.",
    )


def test_a_search_that_is_complete_says_nothing_of_a_gap() -> None:
    assert len(said("The risk", plan_file(layouts=(BEST,)))) == 1


def test_a_step_that_does_not_fit_is_a_risk() -> None:
    assert said("The risk", step_file(memory=memory(96.0, fits=False))) == (
        "It does not fit: the fullest rank needs 96.00 GiB of 80.00 GiB, or more host memory than "
        "there is.",
    )


def test_a_step_that_does_not_fit_is_said_before_its_numbers() -> None:
    first, *_ = said("The pick", step_file(memory=memory(96.0, fits=False)))
    assert first.startswith("This layout cannot run")


def test_little_room_is_called_tight() -> None:
    # 76 GiB of 80 GiB are 95 %, more than the 94 % that a planner takes.
    (risk,) = said("The risk", step_file(memory=memory(76.0, fits=True)))
    assert risk.startswith("Memory is tight: 76.00 GiB of 80.00 GiB")


def test_a_run_without_a_price_says_so() -> None:
    assert said("The pick", step_file(run=RUN))[1:] == (
        "All tokens take 2.000 days (36.00 h to 2.500 days) and 768.0 GPU-hours, without failures.",
        "The profile names no price for these hours.",
    )


def test_a_run_with_a_price_says_what_it_costs() -> None:
    priced = RUN.model_copy(update={"cost": 1536.0})
    assert said("The pick", step_file(run=priced))[-1] == "That costs 1,536 USD."


def test_results_of_one_scenario_are_one_story_in_which_nothing_is_said_twice() -> None:
    validated = said("How it was validated", plan_file(layouts=(BEST,)), step_file())
    assert validated == ("The result does not say how its interval was validated.",)


def test_each_of_several_scenarios_has_a_summary_of_its_own() -> None:
    files = [step_file(), step_file(title="Other", scenario="other.toml"), plan_file()]
    assert [
        (digest.title, len(digest.statements[0].sentences)) for digest in document_of(files).summary
    ] == [("Tiny on two", 2), ("Other", 1)]
