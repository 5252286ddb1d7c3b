"""A whole report as data, of results made by hand."""

from __future__ import annotations

from reports.page.document import document_of
from reports.page.html import html_of
from reports.page.markdown import markdown_of
from reports.words import Language
from tests.reports.page.small_results import BEST, plan_file, step_file


def test_a_report_of_a_step_holds_its_summary_sections_and_figures() -> None:
    document = document_of([step_file()])
    (digest,), (part,) = document.summary, document.parts
    assert (document.title, digest.title) == ("Tiny on two", "")
    assert [(each.title, each.sentences) for each in digest.statements] == [
        (
            "The pick",
            (
                "tiny on 16 x H100 as the scenario lays it out (tp 8, dp 2): a step takes 10.00 s, "
                "between 9.000 s and 12.00 s with 80 % certainty; 819 tokens/s at an MFU of "
                "40.0 %.",
            ),
        ),
        (
            "Why",
            (
                "60.0 % of the step of stage 0, which sets the pace, goes into matrix products; "
                "10.0 % into communication that nothing hides, 0.0 % into the pipeline bubble.",
            ),
        ),
        ("The risk", ("Memory: 40.00 GiB of 80.00 GiB are reserved, 50.0 % are left.",)),
        (
            "What is measured, fitted or only nominal",
            (
                "Groups of constants of box that the forecast needs: 1 measured, 0 fitted to "
                "measurements, 1 nominal.",
                "Nominal, not calibrated: gemm.",
            ),
        ),
        (
            "How it was validated",
            ("The result does not say how its interval was validated.",),
        ),
    ]
    assert (part.name, part.title, part.source) == (
        "step-1",
        "Simulated step: Tiny on two",
        "step.json",
    )
    assert [section.title for section in part.sections] == [
        "The step in numbers",
        "Memory of one rank of each stage, GiB",
        "Where the constants come from",
    ]
    assert [figure.name for figure in part.figures] == ["step-breakdown", "memory-parts"]


def test_parts_stand_in_the_order_of_the_results_and_are_numbered() -> None:
    parts = document_of([plan_file(layouts=(BEST,)), step_file()]).parts
    assert [part.name for part in parts] == ["plan-1", "step-2"]


def test_a_given_title_replaces_that_of_the_first_result() -> None:
    assert document_of([step_file()], title="For Monday").title == "For Monday"


def test_a_chinese_part_has_its_colon_from_the_catalogue() -> None:
    (part,) = document_of([step_file()], Language.CHINESE).parts
    assert part.title == "单步仿真\uff1aTiny on two"


def test_a_result_with_braces_in_its_names_stays_as_it_is() -> None:
    files = [
        step_file(title="{model} {0}"),
        plan_file(layouts=(BEST,), rejected={"{why} {": 3}, examples={"{why} {": "tp {"}),
    ]
    document = document_of(files, Language.CHINESE)
    assert document.title == "{model} {0}"
    assert ("{why} {", "3", "tp {") in document.parts[1].sections[1].rows


def test_the_same_results_give_the_same_pages() -> None:
    files = [plan_file(layouts=(BEST,)), step_file()]
    one, other = document_of(files), document_of(files)
    assert one == other
    assert html_of(one) == html_of(other)
    assert markdown_of(one) == markdown_of(other)
