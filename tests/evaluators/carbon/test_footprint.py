"""Carbon over a life: parts that sum, and every knob where it should move it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.carbon.footprint import Footprint

CHIP = {"energy": 2e-3, "latency": 1e-3, "embodied": 3.0}
YEAR_S = 31557600.0


def footprint(options=None, **chip):
    """What ``hardware.carbon`` says of one chip."""
    got = Footprint(**(options or {})).evaluate(Batch.of([CHIP | chip]))
    return {name: values.item() for name, values in got.columns.items()}


def test_a_watt_for_a_year_on_the_worlds_grid_is_4_kg():
    # 8.766 kWh of 481 g
    found = footprint({"lifetime": "1 yr", "utilization": 1.0}, energy=1.0, latency=1.0)
    assert found["operational"] == pytest.approx(8.766 * 0.481)


@given(
    st.floats(1e-9, 1.0),
    st.floats(1e-9, 1.0),
    st.floats(0.0, 1e3),
    st.floats(1e-6, 1.0),
)
def test_its_parts_sum_to_it(energy, latency, embodied, utilization):
    options = {"dram_capacity": "8 GB", "flash_capacity": "1 TB", "idle_power": "1 W"}
    found = footprint(
        options, energy=energy, latency=latency, embodied=embodied, utilization=utilization
    )
    parts = ("operational", "silicon", "memory", "storage")
    assert found["carbon"] == pytest.approx(sum(found[part] for part in parts))


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_dirtier_grid_never_emits_less(one, other):
    clean, dirty = sorted((one, other))
    clean, dirty = footprint(grid_intensity=clean), footprint(grid_intensity=dirty)
    assert clean["carbon"] <= dirty["carbon"]


def test_a_longer_life_spreads_what_was_embodied_over_more_runs():
    short, long = footprint(lifetime=YEAR_S), footprint(lifetime=5 * YEAR_S)
    assert long["carbon_per_run"] < short["carbon_per_run"]


def test_at_a_rate_that_is_asked_for_a_faster_chip_does_no_more():
    slow, fast = (footprint({"rate": "10 1/s"}, latency=latency) for latency in (1e-2, 1e-4))
    assert slow["carbon"] == fast["carbon"]


def test_a_chip_that_is_too_slow_for_the_rate_is_infeasible_and_says_by_how_much():
    got = Footprint(rate="1000 1/s").evaluate(Batch.of([CHIP | {"latency": 2e-3}]))
    assert got.failures[0].kind == "infeasible"
    assert "2 times its capacity" in got.failures[0].reason


def test_what_weighs_more_is_told():
    assert footprint(embodied=1e6)["bottleneck"] == 1.0
    assert footprint(embodied=0.0)["bottleneck"] == 0.0


@pytest.mark.parametrize(
    ("options", "metric"),
    [
        ({"rate": 1.0}, "runs"),
        ({"utilization": 0.1}, "runs"),
        ({"lifetime": "5 yr"}, "runs"),
        ({"grid": "iceland"}, "operational"),
        ({"grid_intensity": "0.1 kg/kW/h"}, "operational"),
        ({"pue": 1.5}, "operational"),
        ({"idle_power": "1 W"}, "operational"),
        ({"dram_capacity": "1 GB"}, "memory"),
        ({"flash_capacity": "1 GB"}, "storage"),
    ],
)
def test_every_option_moves_its_part(options, metric):
    assert footprint(options)[metric] != footprint()[metric]


def test_the_kinds_of_memory_move_what_it_embodies():
    options = {"dram_capacity": "1 GB", "flash_capacity": "1 GB"}
    other = options | {"dram": "ddr4_10nm", "flash": "nand_30nm"}
    assert footprint(options)["memory"] != footprint(other)["memory"]
    assert footprint(options)["storage"] != footprint(other)["storage"]


@pytest.mark.parametrize(
    "options",
    [{"lifetime": "3 kg"}, {"pue": 0.5}, {"grid": "atlantis"}, {"dram": "hbm3"}, {"rate": -1.0}],
)
def test_an_option_that_means_nothing_is_refused(options):
    with pytest.raises(SpecError):
        Footprint(**options)
