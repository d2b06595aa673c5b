"""Dies: how many work, what they cost and emit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.hardware.die import Die
from dse_evaluators.hardware.dies import (
    DESIGN_DOLLARS,
    WAFER_DOLLARS,
    YIELDS,
    Wafer,
    design_dollars,
    murphy,
    negative_binomial,
    poisson,
    seeds,
    wafer_dollars,
)


def die(area, **options):
    """What ``hardware.die`` says of one area."""
    got = Die(**{"node_nm": 7.0, **options}).evaluate(Batch.of([{"area": area}]))
    return {name: values.item() for name, values in got.columns.items()}


@pytest.mark.parametrize(("area_mm2", "share"), [(17.92, 0.80), (100.0, 0.320)])
def test_murphys_law_gives_the_yields_that_were_worked_out_for_tsmcs_5_nm(area_mm2, share):
    # AnandTech on TSMC at IEDM 2019: 80 % of dies of 17.92 mm2 are 1.271 defects a cm2, and then
    # 32.0 % of dies of 100 mm2
    found = murphy(np.array([area_mm2 * 1.271e-2]), 0.0).item()
    assert found == pytest.approx(share, abs=0.0005)


@pytest.mark.parametrize("law", sorted(YIELDS))
def test_without_defects_every_die_works(law):
    assert YIELDS[law](np.zeros(1), 3.0).item() == 1.0


@given(st.floats(0.0, 20.0))
def test_the_more_faults_cluster_the_more_dies_work(failures):
    at = np.array([failures])
    shares = [law(at, 3.0).item() for law in (poisson, murphy, seeds)]
    assert shares == pytest.approx(sorted(shares), rel=1e-12)


@given(st.floats(0.0, 5.0))
def test_faults_in_many_clusters_fall_as_independent_ones(failures):
    at = np.array([failures])
    assert negative_binomial(at, 1e7).item() == pytest.approx(poisson(at, 0.0).item(), rel=1e-5)


def test_faults_in_one_cluster_are_those_of_seeds():
    at = np.array([0.1, 1.0, 4.0])
    assert negative_binomial(at, 1.0) == pytest.approx(seeds(at, 0.0))


@given(st.floats(0.5, 5000.0), st.floats(0.5, 5000.0))
def test_a_larger_die_never_costs_or_emits_less(one, other):
    small, large = sorted((one, other))
    small, large = die(small), die(large)
    assert small["cost"] <= large["cost"]
    assert small["embodied"] <= large["embodied"]
    assert small["dies_per_wafer"] >= large["dies_per_wafer"]


def test_all_dies_together_are_never_larger_than_the_wafer():
    areas = np.geomspace(0.1, 1e5, 50)
    assert (Wafer().dies(areas) * areas <= Wafer().usable_mm2).all()


@pytest.mark.parametrize("nm", sorted(WAFER_DOLLARS))
def test_a_tabulated_price_is_that_of_the_table(nm):
    assert wafer_dollars(nm) == pytest.approx(WAFER_DOLLARS[nm])


def test_prices_between_tabulated_nodes_lie_between_theirs():
    assert WAFER_DOLLARS[28.0] < wafer_dollars(22.0) < WAFER_DOLLARS[20.0]
    assert DESIGN_DOLLARS[40.0] < design_dollars(32.0) < DESIGN_DOLLARS[28.0]


@pytest.mark.parametrize("nm", [3.0, 130.0])
def test_a_node_without_a_price_is_refused_unless_one_is_given(nm):
    with pytest.raises(SpecError, match="no wafer price"):
        Die(node_nm=nm)


def test_a_price_that_is_given_is_taken():
    assert die(100.0, node_nm=3.0, wafer_price=20000.0)["cost"] > die(100.0)["cost"]


def test_a_die_as_large_as_the_wafer_is_infeasible():
    got = Die(node_nm=7.0).evaluate(Batch.of([{"area": 60000.0}, {"area": 100.0}, {"area": 0.0}]))
    assert set(got.failures) == {0, 2}
    assert "no die of 60000 mm2 fits" in got.failures[0].reason


@pytest.mark.parametrize(
    ("option", "metric"),
    [
        ({"node_nm": 28.0}, "cost"),
        ({"law": "poisson"}, "yield_share"),
        ({"clusters": 2.0}, "yield_share"),
        ({"defects": "0.5 1/cm2"}, "yield_share"),
        ({"wafer_price": 1.0}, "cost"),
        ({"wafer_mm": 200.0}, "dies_per_wafer"),
        ({"grid": "iceland"}, "embodied"),
        ({"abatement": 95.0}, "die_embodied"),
        ({"packages": 2.0}, "packaging_embodied"),
    ],
)
def test_every_option_moves_a_metric(option, metric):
    assert die(400.0, **option)[metric] != die(400.0)[metric]


@pytest.mark.parametrize(("nm", "flag"), [(7.0, 0.0), (22.0, 1.0), (90.0, 1.0)])
def test_a_node_between_rows_or_above_28_nm_is_called_extrapolated(nm, flag):
    assert die(50.0, node_nm=nm)["extrapolated"] == flag


@pytest.mark.parametrize(
    "option", [{"law": "poison"}, {"clusters": 0.0}, {"defects": -1.0}, {"abatement": 90.0}]
)
def test_an_option_that_means_nothing_is_refused(option):
    with pytest.raises(SpecError):
        Die(node_nm=7.0, **option)
