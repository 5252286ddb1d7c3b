"""A form's change reaches the text, and the text's the form; what is not asked for stays."""

import pytest

from simulator.errors import InputError
from traincast.serve.app import changed_text
from traincast.serve.editing import values_of, with_layout, with_value
from traincast.serve.fields import FieldKind, FormField, scenario_form
from traincast.serve.page import in_order

TEXT = """\
# ours
model = "llama3-8b"

[layout]
tp = 8  # a node
sequence_parallel = true
"""
FIELDS = in_order(scenario_form())
BY_KEY = {field.key: field for field in FIELDS}


def test_every_field_of_the_form_stands_on_the_page_once() -> None:
    assert len(BY_KEY) == len(FIELDS)
    assert {each.key for group in scenario_form() for each in group.fields} == set(BY_KEY)


def test_a_field_says_how_it_is_edited_and_what_holds_without_it() -> None:
    switch, nodes, dp = (
        BY_KEY[key] for key in ("layout.sequence_parallel", "cluster.nodes", "layout.dp")
    )
    assert (switch.kind, switch.choices) == (FieldKind.SWITCH, ("true", "false"))
    assert nodes.kind is FieldKind.NUMBER
    assert dp.default == "fills the cluster"
    assert "llama3-8b" in BY_KEY["model"].choices


@pytest.mark.parametrize(
    ("key", "value", "new"),
    [
        ("layout.tp", "4", TEXT.replace("tp = 8", "tp = 4")),
        ("layout.tp", None, TEXT.replace("tp = 8  # a node\n", "")),
        ("layout.pp", "2", TEXT + "pp = 2\n"),
        ("layout.sequence_parallel", "false", TEXT.replace("true", "false")),
        ("cluster.nodes", "8", TEXT + "\n[cluster]\nnodes = 8\n"),
        ("cluster.nodes", None, TEXT),
        ("layout.tp", "four", TEXT.replace("tp = 8", 'tp = "four"')),
        ("model", '"\n[evil]', TEXT.replace("llama3-8b", '\\"\\n[evil]')),
    ],
)
def test_a_field_changes_its_key_alone(key: str, value: object, new: str) -> None:
    assert with_value(TEXT, BY_KEY[key], value) == new


def test_a_key_of_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="must be a table"):
        with_value("layout = 3\n", BY_KEY["layout.tp"], 4)


def test_what_a_field_writes_it_shows_again() -> None:
    samples = {
        FieldKind.NUMBER: "3",
        FieldKind.TEXT: "a name",
        FieldKind.SWITCH: "true",
        FieldKind.LIST: "[1, 2]",
    }
    for field in FIELDS:
        value = field.choices[0] if field.choices else samples[field.kind]
        assert values_of(with_value("", field, value), [field]) == [value], field.key


@pytest.mark.parametrize(
    ("cause", "new"),
    [
        ("toml", TEXT),
        (None, TEXT),
        ({"type": "field", "key": "layout.tp"}, TEXT.replace("tp = 8", "tp = 2")),
        ("take", '# ours\nmodel = "llama3-8b"\n\n[layout]\npp = 16\n'),
    ],
)
def test_what_was_changed_decides_what_becomes_of_the_text(cause: object, new: str) -> None:
    fields = [FormField(key="layout.tp", kind=FieldKind.NUMBER)]
    assert changed_text(cause, TEXT, ["2"], {"pp": 16}, fields) == new


def test_a_layout_goes_where_none_was() -> None:
    assert with_layout('model = "a"\n', {"tp": 2}) == 'model = "a"\n\n[layout]\ntp = 2\n'


@pytest.mark.parametrize("text", ["tp = ", "a = 1\na = 2\n", "x" * 300_000])
def test_text_that_is_no_toml_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"scenario: .*(TOML|at most)"):
        values_of(text, FIELDS)
