"""What a served token costs in dollars and carbon, and where it is served."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.upkeep import EMBODIED_KG

PLAN = {"tp": 4, "batch": 32, "weight_format": "fp8", "kv_format": "fp8"}
PRICES = dict.fromkeys(
    ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200", "b300-sxm", "gb300"), 5.0
)


def served(*designs, **options):
    usual = {"model": "llama3-70b", "device": "h200-sxm", "isl": 2048, "osl": 256}
    batch = Batch.of([{**PLAN, **each} for each in designs])
    return Serving(**{**usual, **options}).evaluate(batch)


def told(**options):
    return {name: values[0] for name, values in served({}, **options).columns.items()}


def test_an_hour_of_all_devices_costs_its_price():
    one = told(price_per_hour=2.5)
    hour = one["cost_per_token"] * one["throughput"] * 3600
    assert hour == pytest.approx(4 * 2.5, rel=1e-12)


def test_nobody_knows_the_cost_without_a_price():
    assert "cost_per_token" not in told(device="gb300")
    assert "cost_per_token" in told(device="h100-sxm")


def test_carbon_is_that_of_the_grid_and_of_the_making():
    """0.369 kg a kilowatt hour, 1.5 times for the building; and a device lasts a year."""
    one = told(grid="usa", pue=1.5, lifetime="1 yr")
    assert one["operational_carbon"] == pytest.approx(
        one["energy_per_token"] / 3.6e6 * 0.369 * 1.5, rel=1e-12
    )
    year_s = 365.25 * 86_400
    assert one["embodied_carbon"] == pytest.approx(
        4 * EMBODIED_KG / (one["throughput"] * year_s), rel=1e-3
    )
    parts = one["operational_carbon"] + one["embodied_carbon"]
    assert one["carbon_per_token"] == pytest.approx(parts, rel=1e-12)


@settings(max_examples=25)
@given(st.sampled_from(sorted(PRICES)), st.sampled_from(["iceland", "india"]), st.integers(1, 128))
def test_a_chosen_device_and_grid_tell_what_settled_ones_do(device, grid, batch):
    design = {"batch": batch, "weight_format": "bf16"}
    free = served(
        {"device": device, "grid": grid, **design},
        {"device": "b200-sxm", "grid": "usa", **design},
        device=None,
        grid=None,
        price_per_hour=PRICES,
    )
    settled = served(design, device=device, grid=grid, price_per_hour=5.0)
    assert (0 in free.failures) == (0 in settled.failures)
    for name, values in settled.columns.items():
        assert free.columns[name][0] == values[0]


def test_a_device_without_units_for_a_format_is_infeasible():
    found = served(
        {"device": "a100-sxm-80gb"}, {"device": "h200-sxm"}, device=None, price_per_hour=PRICES
    )
    assert {row: failure.reason for row, failure in found.failures.items()} == {
        0: "a100-sxm-80gb has no units for fp8"
    }


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"device": ["h100-sxm", "gb300"]}, "no price is known for gb300"),
        ({"device": ["mi300x"]}, "no measured fabric for device mi300x"),
        ({"grid": ["atlantis"]}, "grid cannot be"),
        ({"weight_bits": [-1]}, "weight_bits cannot be"),
    ],
)
def test_places_and_words_that_there_cannot_be_are_refused(values, words):
    with pytest.raises(SpecError, match=words):
        Serving(model="llama3-70b", device=None, grid=None).check_values(values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pue": 0.5}, "pue cannot be"),
        ({"grid": "atlantis"}, "atlantis"),
        ({"lifetime": "3 kg"}, "kg"),
    ],
)
def test_upkeep_that_there_cannot_be_is_refused(options, words):
    with pytest.raises(SpecError, match=words):
        Serving(model="llama3-70b", **options)


@settings(max_examples=25)
@given(st.floats(1.0, 16.0), st.floats(0.1, 4.0))
def test_shorter_words_never_move_more(bits, less):
    words, cached = ({name: bits / (1 + less)} for name in ("weight_bits", "kv_bits"))
    found = served(words, {"weight_bits": bits}, cached, {"kv_bits": bits}).columns
    assert found["memory"][0] <= found["memory"][1] * (1 + 1e-12)
    for name in ("memory", "attention_time", "tpot", "energy_per_token"):
        assert found[name][2] <= found[name][3] * (1 + 1e-12)
    assert found["weights_memory"][0] < found["weights_memory"][1]
    assert found["cache_memory"][2] < found["cache_memory"][3]


@settings(max_examples=25)
@given(st.sampled_from([(1.0, 5.9), (6.1, 7.9)]), st.floats(0, 1), st.floats(0, 1))
def test_shorter_weights_are_never_slower_in_the_same_kernel(ends, one, other):
    low, high = ends
    short, long = sorted(low + share * (high - low) for share in (one, other))
    found = served({"weight_bits": short}, {"weight_bits": long}).columns
    for name in ("products_time", "tpot", "energy_per_token"):
        assert found[name][0] <= found[name][1] * (1 + 1e-12)


def test_words_as_long_as_the_format_change_nothing():
    usual, told_so = (
        served(each).columns
        for each in (
            {"weight_format": "bf16"},
            {"weight_format": "bf16", "weight_bits": 16, "kv_bits": 8},
        )
    )
    assert {name: values[0] for name, values in usual.items()} == {
        name: values[0] for name, values in told_so.items()
    }


def test_words_shorter_than_their_format_are_told_to_be_guessed():
    flags = served({}, {"weight_bits": 4.5}).columns["extrapolated"]
    assert flags.tolist() == [0.0, 1.0]
