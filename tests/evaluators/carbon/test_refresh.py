"""How often servers are best replaced, and how that goes with the grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.carbon.refresh import Refresh

PERIODS = tuple(range(1, 13))


def years(intensity, **options):
    """Carbon a year for each period."""
    batch = Batch.of([{"refresh_period": p, "grid_intensity": intensity} for p in PERIODS])
    return Refresh(**options).evaluate(batch).columns


def best(intensity, **options):
    """The period with the least carbon."""
    return PERIODS[int(np.argmin(years(intensity, **options)["carbon"]))]


@pytest.mark.parametrize(("intensity", "period"), [(0.02, 12), (0.1, 12), (0.4, 6), (0.8, 4)])
def test_the_best_period_is_that_of_an_earlier_count(intensity, period):
    # 1,200 kg, 350 W at 60 %, 15 % a year, over 12 years: an earlier prototype of the same sum
    assert best(intensity) == period


@given(
    st.floats(0.0, 2.0),
    st.floats(0.0, 2.0),
    st.floats(10.0, 1e4),
    st.floats(1.0, 2e3),
    st.floats(0.0, 1.0),
)
def test_a_dirtier_grid_never_asks_for_a_longer_period(one, other, embodied, power, gain):
    clean, dirty = sorted((one, other))
    options = {"embodied": embodied, "power": power, "gain": gain}
    assert best(dirty, **options) <= best(clean, **options)


def test_its_parts_sum_to_it():
    found = years(0.3, price=5000.0, electricity=0.1)
    assert found["carbon"] == pytest.approx(found["embodied"] + found["operational"])
    assert found["cost"] == pytest.approx(found["purchase_cost"] + found["electricity_cost"])


def test_servers_that_never_get_better_are_kept():
    assert best(0.8, gain=0.0) == 12


def test_one_server_for_the_whole_horizon_draws_its_power_in_every_year():
    kwh = 0.35 * 0.6 * 8766
    assert years(0.4)["operational"][-1] == pytest.approx(kwh * 0.4)
    assert years(0.4)["embodied"][-1] == pytest.approx(1200 / 12)


@pytest.mark.parametrize("period", [0.0, -1.0])
def test_a_period_of_no_time_is_infeasible(period):
    batch = Batch.of([{"refresh_period": period, "grid_intensity": 0.1}])
    assert Refresh().evaluate(batch).failures[0].kind == "infeasible"


@pytest.mark.parametrize(
    ("knob", "metric"),
    [
        ({"utilization": 0.9}, "operational"),
        ({"pue": 1.5}, "operational"),
        ({"provisioning": 0.5}, "embodied"),
        ({"reuse": 0.5}, "embodied"),
        ({"shifted": 0.5}, "operational"),
        ({"server_embodied": 300.0}, "embodied"),
        ({"server_power": 500.0}, "operational"),
        ({"refresh_period": 3}, "purchases"),
        ({"grid_intensity": 0.9}, "operational"),
    ],
)
def test_every_knob_moves_a_metric(knob, metric):
    free = {"refresh_period": 6, "grid_intensity": 0.4}
    got = Refresh().evaluate(Batch.of([free | knob]))
    plain = Refresh().evaluate(Batch.of([free]))
    assert got.columns[metric][0] != plain.columns[metric][0]


@pytest.mark.parametrize(
    ("option", "metric"),
    [
        ({"embodied": "2 t"}, "embodied"),
        ({"power": "1 kW"}, "operational"),
        ({"gain": 0.3}, "operational"),
        ({"horizon": "6 yr"}, "embodied"),
        ({"price": 1.0}, "purchase_cost"),
        ({"electricity": 1.0}, "electricity_cost"),
        ({"utilization": 0.1}, "operational"),
        ({"pue": 2.0}, "operational"),
    ],
)
def test_every_option_moves_a_metric(option, metric):
    assert years(0.4, **option)[metric][4] != years(0.4)[metric][4]


def test_how_clean_the_cleaner_hours_are_decides_what_waiting_for_them_saves():
    design = {"refresh_period": 6, "grid_intensity": 0.4, "shifted": 0.5}
    half, none = (Refresh(clean_hours=share).evaluate(Batch.of([design])) for share in (0.5, 0.0))
    assert half.columns["operational"].item() == pytest.approx(
        1.5 * none.columns["operational"].item()
    )


@pytest.mark.parametrize("option", [{"horizon": 0.0}, {"gain": -0.5}, {"power": "1 kg"}])
def test_an_option_that_means_nothing_is_refused(option):
    with pytest.raises(SpecError):
        Refresh(**option)
