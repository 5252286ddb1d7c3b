"""A page is one file that fetches nothing, and what others wrote in it stays text."""

import json
import re
import tomllib
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pytest

from reports.charts import Chart, Series
from reports.page.document import Document, Part
from reports.page.html import MOST_BYTES, PLOTLY, html_of
from reports.page.markdown import markdown_of
from reports.section import Section, words
from reports.words import Language
from simulator.errors import InputError

_DATA = "application/json"
_HOSTILE = "<script>alert(1)</script></script>{{x}}\u2028<b>&"


def _document(
    text: str, *, figures: bool = True, language: Language = Language.ENGLISH
) -> Document:
    chart = Chart(
        name="one",
        title=text,
        x_label=text,
        y_label=text,
        series=(Series(label=text, group=text, line=True, x=(1.0, 2.0), y=(3.0, 4.0)),),
    )
    section = Section(title=text, text=(text,), columns=(words(text, [text]),))
    part = Part(
        name="step-1",
        title=text,
        source=text,
        sections=(section,),
        figures=(chart,) if figures else (),
    )
    return Document(title=text, language=language, summary=(), parts=(part,))


class _Elements(HTMLParser):
    """What a browser would make of a page: elements and their attributes, and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def hostile() -> str:
    return html_of(_document(_HOSTILE))


def test_hostile_text_adds_no_element(hostile: str) -> None:
    tags = [
        [tag for tag, _ in _Elements(html).elements] for html in (hostile, html_of(_document("a")))
    ]
    assert tags[0] == tags[1]


def test_hostile_text_is_shown_as_it_is(hostile: str) -> None:
    heading = re.search(r"<h1>(.*?)</h1>", hostile, re.DOTALL)
    assert heading is not None
    assert unescape(heading[1]) == _HOSTILE


def test_the_policy_names_the_hash_of_every_script_that_runs(hostile: str) -> None:
    parsed = _Elements(hostile)
    kinds = [attributes.get("type") for tag, attributes in parsed.elements if tag == "script"]
    run = [text for kind, text in zip(kinds, parsed.scripts, strict=True) if kind != _DATA]
    hashes = {b64encode(sha256(text.encode()).digest()).decode() for text in run}
    assert set(re.findall(r"'sha256-([^']+)'", _policy(parsed))) == hashes


def test_the_policy_lets_nothing_be_fetched_and_no_other_script_run(hostile: str) -> None:
    rules = dict(rule.split(maxsplit=1) for rule in _policy(_Elements(hostile)).split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]


def test_no_element_names_something_to_fetch(hostile: str) -> None:
    links = {
        value
        for _, attributes in _Elements(hostile).elements
        for name, value in attributes.items()
        if name in ("src", "href")
    }
    assert links <= {"#content", "#step-1"}


def test_data_of_figures_is_json_in_which_no_element_can_end(hostile: str) -> None:
    text = hostile.split('id="figures">')[1].split("</script>", maxsplit=1)[0]
    assert "<" not in text
    assert "\u2028" not in text
    data: dict[str, Any] = json.loads(text)
    assert list(data) == ["step-1-one"]


def test_a_page_with_figures_is_little_more_than_the_script_that_draws_them(hostile: str) -> None:
    script = _assets().joinpath(PLOTLY).read_bytes()
    assert len(script) < len(hostile.encode()) < len(script) + 50_000


def test_the_script_that_draws_is_the_published_one_with_its_licence() -> None:
    folder = _assets().joinpath("plotly")
    source = tomllib.loads(folder.joinpath("source.toml").read_text())
    script = folder.joinpath(source["file"]).read_bytes()
    assert sha256(script).hexdigest() == source["sha256"]
    assert f"v{source['version']}\n".encode() in script[:200]
    assert source["source"].endswith(f"/{source['package']}-{source['version']}.tgz")
    assert folder.joinpath("LICENSE").read_text().startswith(f"{source['license']} License")


def test_the_script_that_draws_can_stand_in_a_page_as_it_is() -> None:
    # Either would end its element, or begin one inside it; the hash is of text without "\r".
    script = _assets().joinpath(PLOTLY).read_bytes().lower()
    assert [sign for sign in (b"</script", b"<!--", b"\r", b"\0") if sign in script] == []


def test_a_page_without_figures_has_no_plotly() -> None:
    assert len(html_of(_document("a", figures=False)).encode()) < 50_000


def test_a_page_that_would_be_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="a page is at most 6,000,000 bytes"):
        html_of(_document("x" * MOST_BYTES, figures=False))


def test_a_chinese_page_says_so_and_its_own_words_are_chinese() -> None:
    page = html_of(_document("model", figures=False, language=Language.CHINESE))
    assert '<html lang="zh">' in page
    assert "跳到正文" in page
    assert "Skip to the content" not in page


def test_markdown_escapes_all_markup_of_the_input() -> None:
    assert re.search(r"(?<!\\)[<`*\[]", markdown_of(_document("<b> `a` *c* [d](e)"))) is None


def _assets() -> Traversable:
    return files("reports.page").joinpath("assets")


def _policy(parsed: _Elements) -> str:
    return next(
        str(attributes["content"])
        for _, attributes in parsed.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
