"""The Chinese catalogue and the sentences of the code hold together, in both directions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import reports
from reports.goodput_view import CAUSE_WORDS
from reports.page.document import KIND_TITLES
from reports.page.summary import TITLES
from reports.report_figures.forecast import DRAWN
from reports.report_figures.labels import CATEGORIES, MEMORY_PARTS, OBJECTIVES, PASSES
from reports.validation_view import QUANTITIES
from reports.words import Language, catalogue_of, english, fields_of, words_in

_SOURCES = Path(reports.__file__).parent
_REGISTRIES = {
    *KIND_TITLES.values(),
    *TITLES.values(),
    *CATEGORIES.values(),
    *MEMORY_PARTS.values(),
    *PASSES.values(),
    *CAUSE_WORDS.values(),
    *QUANTITIES.values(),
    *(text for drawn in DRAWN.values() for text in (drawn.title, drawn.label)),
    *(label for label, _ in OBJECTIVES.values()),
}
_CHINESE = catalogue_of(Language.CHINESE)


def test_every_sentence_of_reports_is_in_the_chinese_catalogue() -> None:
    assert sorted((_asked() | _REGISTRIES) - set(_CHINESE)) == []


def test_every_entry_of_the_chinese_catalogue_is_a_sentence_of_reports() -> None:
    assert sorted(set(_CHINESE) - _written() - _REGISTRIES) == []


def test_every_translation_keeps_the_fields_of_its_template() -> None:
    assert [key for key, text in _CHINESE.items() if fields_of(text) != fields_of(key)] == []


def test_chinese_fills_the_fields_of_a_sentence() -> None:
    assert words_in(Language.CHINESE)("stage {stage}", stage=3) == "阶段 3"


def test_english_is_the_template_itself() -> None:
    assert english("stage {stage}", stage=3) == "stage 3"


def test_a_value_with_braces_is_not_a_template() -> None:
    assert words_in(Language.CHINESE)("From {file}", file="{x}") == "来自 {x}"


def _trees() -> Iterator[ast.Module]:
    for path in sorted(_SOURCES.rglob("*.py")):
        yield ast.parse(path.read_text("utf-8"))


def _asked() -> set[str]:
    """Return the literals in calls of `words`, where `words` is what translates."""
    return {
        text
        for tree in _trees()
        if _translates(tree)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "words"
        and call.args
        for text in _texts(call.args[0])
    } | _asked_by_page()


def _translates(tree: ast.Module) -> bool:
    """Say whether `words` is a `Words` here; `reports.section.words` makes columns of text."""
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    columns = any(
        each.module == "reports.section"
        and any(name.name == "words" and name.asname is None for name in each.names)
        for each in imports
    )
    return not columns and any(each.module == "reports.words" for each in imports)


def _asked_by_page() -> set[str]:
    from jinja2 import Environment, nodes

    template = (_SOURCES / "page/assets/page.html.j2").read_text("utf-8")
    return {
        call.args[0].value
        for call in Environment(autoescape=True).parse(template).find_all(nodes.Call)
        if isinstance(call.node, nodes.Name)
        and call.node.name == "words"
        and isinstance(call.args[0], nodes.Const)
    }


def _written() -> set[str]:
    """Return every text in the code of reports; some templates pass through a variable."""
    return {text for tree in _trees() for text in _texts(tree)} | _asked_by_page()


def _texts(tree: ast.AST) -> Iterator[str]:
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
