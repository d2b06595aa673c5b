"""Units: what a text means, what agrees, how numbers are shown."""

import pytest

from dse.core.expressions.parser import parse
from dse.errors import SpecError
from dse.units import units
from dse.units.dimensions import unit_of


@pytest.mark.parametrize(
    ("text", "factor", "coherent"),
    [
        ("KiB", 1024, "B"),
        ("GHz", 1e9, "Hz"),
        ("mm2", 1e-6, "m^2"),
        ("TB/s", 1e12, "B/s"),
        ("$/h", 1 / 3600, "$/s"),
        ("min", 60, "s"),
        ("kW h", 3.6e6, "J"),
        ("pJ", 1e-12, "J"),
        ("percent", 0.01, ""),
        ("", 1, ""),
    ],
)
def test_a_unit_has_its_factor_and_its_coherent_unit(text, factor, coherent):
    assert units.factor(text) == pytest.approx(factor, rel=1e-12)
    assert units.coherent(text) == coherent


@pytest.mark.parametrize("text", ["KiBB", "s**s", "1/0", "__import__('os')", "s" * 100, "m m m /"])
def test_what_is_no_unit_is_refused(text):
    with pytest.raises(SpecError, match="there is no unit"):
        units.unit(text)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (512, "KiB", "512 KiB"),
        (2048, "KiB", "2 MiB"),
        (0.5, "KiB", "512 B"),
        (-1.5, "GiB", "-1.5 GiB"),
        (65536, "B", "64 KiB"),
        (1.2e9, "Hz", "1.2 GHz"),
        (3.1e-3, "J", "3.1 mJ"),
        (0.9861, "", "0.9861"),
        (0.0, "s", "0 s"),
        (1.5e-6, "J*s", "1.5e-06 J*s"),
    ],
)
def test_a_number_is_shown_for_people(value, unit, shown):
    assert units.shown(value, unit) == shown


KNOWN = {"energy": "mJ", "latency": "s", "area": "mm2", "accuracy": "", "format": "text"}


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("energy * latency", "mJ*s"),
        ("energy / latency", "mJ/s"),
        ("energy + 1 J", "mJ"),
        ("latency ** 2", "s^2"),
        ("sqrt(area)", "mm"),
        ("min(latency, 20 ms)", "s"),
        ("accuracy >= 0.9", ""),
        ("area > 0", ""),
        ("format == 'int8'", ""),
    ],
)
def test_a_formula_has_the_unit_that_its_names_give_it(text, unit):
    assert unit_of(parse(text), KNOWN) == unit


@pytest.mark.parametrize(
    "text",
    [
        "energy + latency",
        "area <= 20",
        "area <= 20 ms",
        "format * 2",
        "format == 3",
        "log2(latency)",
        "2 ** latency",
        "latency ** accuracy",
    ],
)
def test_units_that_do_not_fit_are_refused(text):
    with pytest.raises(SpecError):
        unit_of(parse(text), KNOWN)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("msec", "ms"),
        ("Sec", "s"),
        ("kb", "kB"),
        ("Kib", "KiB"),
        ("tokens/sec", "tokens/s"),
        ("[ms]", "ms"),
        ("ghz", "GHz"),
        ("TFLOPS", "TFLOP/s"),
        ("FLOPS", "FLOP/s"),
        ("GFLOPS", "GFLOP/s"),
        ("tflops/s", "TFLOP/s"),
        ("FLOPs/sec", "FLOP/s"),
        ("GFLOPS / W", "GFLOP/s / W"),
        ("W/TFLOPS", "W/(TFLOP/s)"),
    ],
)
def test_a_misspelt_unit_is_told_the_one_that_it_is_likely_to_mean(written, meant):
    with pytest.raises(SpecError) as caught:
        units.unit(written)
    assert caught.value.hint == f"did you mean {meant!r}?"


def test_a_unit_that_resembles_none_is_told_how_units_are_written():
    with pytest.raises(SpecError, match="there is no unit 'furlong'") as caught:
        units.unit("furlong")
    assert "20 mm2" in caught.value.hint


def test_a_power_of_a_power_is_refused_without_being_computed_for_a_hint():
    with pytest.raises(SpecError, match="there is no unit"):
        units.unit("msec**9**9**9")
