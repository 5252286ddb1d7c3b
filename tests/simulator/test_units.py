"""Unit strings: read exactly, written so that they are read back, refused with the fix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.files import FileRecord, parse_record
from simulator.units import (
    _EVERYDAY,
    EXAMPLE,
    GB,
    GIB,
    Bandwidth,
    Bytes,
    Dimension,
    Seconds,
    _library_factor,
    format_quantity,
    parse_quantity,
)


class Link(FileRecord):
    bandwidth: Bandwidth
    latency: Seconds
    buffer: Bytes = 0.0


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("1.8 us", Dimension.TIME, 1.8e-6),
        ("3 ms", Dimension.TIME, 3e-3),
        ("2 s", Dimension.TIME, 2.0),
        ("80 GiB", Dimension.SIZE, 80 * 2.0**30),
        ("80 GB", Dimension.SIZE, 80e9),
        ("1e3 MB", Dimension.SIZE, 1e9),
        ("450 GB/s", Dimension.BANDWIDTH, 450e9),
        ("450GB/s", Dimension.BANDWIDTH, 450e9),
        ("400 Gbps", Dimension.BANDWIDTH, 50e9),
        ("989 TFLOP/s", Dimension.COMPUTE, 989e12),
        ("989 TFLOPS", Dimension.COMPUTE, 989e12),
        ("700 W", Dimension.POWER, 700.0),
        ("10.2 kW", Dimension.POWER, 10200.0),
        ("1.41 GHz", Dimension.FREQUENCY, 1.41e9),
    ],
)
def test_unit_strings_have_their_value(text: str, dimension: Dimension, value: float) -> None:
    assert parse_quantity(text, dimension) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("dimension", list(Dimension))
def test_everyday_units_are_exactly_those_of_the_library(dimension: Dimension) -> None:
    known = _EVERYDAY[dimension]
    assert known == {unit: _library_factor(unit, dimension) for unit in known}


def test_gib_and_gb_differ() -> None:
    sizes = [parse_quantity(f"1 {unit}", Dimension.SIZE) for unit in ("GiB", "GB")]
    assert sizes == [GIB, GB]


@pytest.mark.parametrize("dimension", list(Dimension))
@given(value=st.floats(0.0, 1e30, allow_nan=False))
def test_formatted_quantities_read_back_exactly(dimension: Dimension, value: float) -> None:
    assert parse_quantity(format_quantity(value, dimension), dimension) == value


@pytest.mark.parametrize("dimension", list(Dimension))
@pytest.mark.parametrize("text", ["450", "", "GB/s", "fast", "4 5 GB", "nan s", "1 " + "G" * 60])
def test_text_without_number_or_unit_shows_an_example(text: str, dimension: Dimension) -> None:
    with pytest.raises(ValueError, match=EXAMPLE[dimension].split(maxsplit=1)[0]):
        parse_quantity(text, dimension)


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("450 GB", Dimension.BANDWIDTH),
        ("450 GB/s", Dimension.SIZE),
        ("1 parsec", Dimension.TIME),
        ("1 flop", Dimension.COMPUTE),
        ("1 __class__", Dimension.TIME),
    ],
)
def test_unit_of_another_dimension_is_refused(text: str, dimension: Dimension) -> None:
    with pytest.raises(ValueError, match=r"write it as|must be a number and a unit"):
        parse_quantity(text, dimension)


def test_a_bare_number_in_a_file_is_refused_with_the_fix() -> None:
    with pytest.raises(InputError) as caught:
        parse_record(Link, {"bandwidth": 450, "latency": "1 us"}, "link.toml")
    (problem,) = caught.value.problems
    assert (problem.where, problem.key, problem.found, problem.rule) == (
        "link.toml",
        "bandwidth",
        "450",
        'needs a unit; write it as a string such as "450 GB/s"',
    )


@pytest.mark.parametrize(
    ("bandwidth", "latency", "keys"),
    [
        ("0 GB/s", "0 s", ["bandwidth"]),
        ("-1 GB/s", "1 s", ["bandwidth"]),
        ("1 GB/s", "-1 s", ["latency"]),
        ("1e999 GB/s", "1e306 ks", ["bandwidth", "latency"]),
    ],
)
def test_rates_are_above_zero_and_times_at_least_zero(
    bandwidth: str, latency: str, keys: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        parse_record(Link, {"bandwidth": bandwidth, "latency": latency}, "")
    assert [problem.key for problem in caught.value.problems] == keys


def test_a_bool_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="must be a number and a unit"):
        Link.model_validate({"bandwidth": True, "latency": 0.0})


@given(bandwidth=st.floats(1e-3, 1e15), latency=st.floats(0.0, 1e3))
def test_records_with_units_survive_json(bandwidth: float, latency: float) -> None:
    link = Link(bandwidth=bandwidth, latency=latency)
    assert Link.model_validate_json(link.model_dump_json()) == link
