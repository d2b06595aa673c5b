"""A chip's metrics at one node, scaled: what it has at another; and the laws of nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.systolic.systolic import Systolic
from dse_evaluators.hardware.node import NodeFactors
from dse_evaluators.hardware.nodes import BELOW, node_of

CHIP = {
    "rows": 16,
    "cols": 32,
    "dataflow": "os",
    "ifmap_sram": 4096.0,
    "filter_sram": 8192.0,
    "ofmap_sram": 4096.0,
    "weight_format": "int4",
    "activation_format": "int8",
    "sparsity": 0.25,
}


CHIPS = st.fixed_dictionaries(
    {
        "rows": st.sampled_from([4, 8, 24, 64]),
        "cols": st.sampled_from([4, 16, 48]),
        "dataflow": st.sampled_from(["os", "ws", "is"]),
        "ifmap_sram": st.sampled_from([2048.0, 8192.0, 100_000.0]),
        "filter_sram": st.sampled_from([2048.0, 65536.0]),
        "ofmap_sram": st.sampled_from([4096.0, 32768.0]),
        "weight_format": st.sampled_from(["int2", "int8", "int16"]),
        "activation_format": st.sampled_from(["int4", "int8", "fp16"]),
        "sparsity": st.sampled_from([0.0, 0.5]),
        "cores": st.sampled_from([1, 4]),
        "vector_lanes": st.sampled_from([0, 16]),
        "batch": st.sampled_from([1, 8]),
    }
)


def at(chip, *, nm, voltage, clock, bytes_per_cycle):
    """What ``accelerators.systolic`` says of a chip at a node, a voltage and a clock."""
    model = Systolic(
        clock=clock, voltage=voltage, node_nm=nm, dram_bandwidth=bytes_per_cycle * clock
    )
    return {name: v.item() for name, v in model.evaluate(Batch.of([chip])).columns.items()}


def at_reference(chip, bytes_per_cycle):
    """The chip at 45 nm, 0.9 V and 1 GHz, with so many bytes from DRAM in a cycle."""
    return at(chip, nm=45.0, voltage=0.9, clock=1e9, bytes_per_cycle=bytes_per_cycle)


def factors(**design):
    """What ``hardware.node`` says of one design."""
    got = NodeFactors().evaluate(Batch.of([design]))
    return {name: values.item() for name, values in got.columns.items()}


def scaled(chip, node):
    """The formulas by which a study takes a chip to a node."""
    latency = chip["cycles"] / node["frequency"]
    area = chip["area"] * node["area_factor"]
    parts = {
        "mac_energy": chip["mac_energy"] * node["logic_factor"],
        "sram_energy": chip["sram_energy"] * node["sram_factor"],
        "vector_energy": chip["vector_energy"] * node["logic_factor"],
        "dram_energy": chip["dram_energy"],
        "leakage_energy": area * node["leakage"] * latency,
    }
    return {"latency": latency, "area": area, "energy": sum(parts.values()), **parts}


@pytest.mark.parametrize("nm", [22.0, 28.0, 32.0, 45.0, 65.0, 90.0])
@pytest.mark.parametrize(("voltage", "clock"), [(0.9, 5e8), (0.7, 3e8), (1.0, 4e8)])
def test_a_chip_taken_to_a_node_is_the_chip_of_that_node(nm, voltage, clock):
    truth = at(CHIP, nm=nm, voltage=voltage, clock=clock, bytes_per_cycle=2.0)
    ours = scaled(at_reference(CHIP, 2.0), factors(node_nm=nm, voltage=voltage, clock=clock))
    assert ours == pytest.approx({name: truth[name] for name in ours}, rel=1e-12)


@given(CHIPS, st.floats(22.0, 90.0), st.floats(0.5, 1.0), st.sampled_from([0.25, 1.0, 8.0]))
def test_so_is_any_chip_at_any_node_that_the_fit_reaches(chip, nm, voltage, bytes_per_cycle):
    node = factors(node_nm=nm, voltage=voltage, clock_share=0.75)
    truth = at(
        chip,
        nm=nm,
        voltage=voltage,
        clock=node["frequency"],
        bytes_per_cycle=bytes_per_cycle,
    )
    ours = scaled(at_reference(chip, bytes_per_cycle), node)
    assert ours == pytest.approx({name: truth[name] for name in ours}, rel=1e-9)


@pytest.mark.parametrize("name", ["logic_factor", "sram_factor", "area_factor"])
def test_a_smaller_node_never_takes_more_energy_or_area(name):
    nodes = (5, 7, 10, 16, 22, 28, 32, 45, 65, 90)
    found = [factors(node_nm=nm, voltage=0.9)[name] for nm in nodes]
    assert found == sorted(found)


def test_a_smaller_node_is_never_slower():
    nodes = (90, 65, 45, 32, 28, 22, 16, 10, 7, 5)
    found = [factors(node_nm=nm, voltage=0.9)["highest_frequency"] for nm in nodes]
    assert found == sorted(found)


def test_a_smaller_node_costs_and_emits_more_for_its_area():
    nodes = (90, 65, 45, 32, 28, 22, 16, 10, 7, 5)
    found = [factors(node_nm=nm, voltage=0.9) for nm in nodes]
    assert [one["price_per_area"] for one in found] == sorted(o["price_per_area"] for o in found)
    assert [one["carbon_per_area"] for one in found] == sorted(o["carbon_per_area"] for o in found)


@pytest.mark.parametrize("nm", sorted(BELOW))
def test_what_the_sram_fit_does_not_reach_is_called_extrapolated(nm):
    assert factors(node_nm=nm, voltage=0.9)["extrapolated"] == 1.0


@pytest.mark.parametrize("nm", [22.0, 45.0, 90.0])
def test_what_it_reaches_is_not(nm):
    assert factors(node_nm=nm, voltage=0.9)["extrapolated"] == 0.0


@pytest.mark.parametrize("nm", [3.0, 6.0, 12.0, 91.0])
def test_a_node_without_figures_is_refused(nm):
    with pytest.raises(SpecError, match="no figures"):
        node_of(nm)


def test_logic_at_7_nm_shrinks_as_cells_do_within_what_stillmaker_has_for_all_circuits():
    # Stillmaker and Baas 2017, table of areas: 0.059 from 45 to 7 nm, rounded to a thousandth
    assert node_of(7.0).area == pytest.approx(0.059, rel=0.3)


@given(st.floats(0.35, 1.2), st.floats(0.35, 1.2))
def test_a_higher_voltage_is_never_slower_and_never_saves(low, high):
    low, high = sorted((low, high))
    batch = Batch.of([{"node_nm": 22, "voltage": low}, {"node_nm": 22, "voltage": high}])
    got = NodeFactors().evaluate(batch).columns
    rising = ("highest_frequency", "logic_factor", "sram_factor", "leakage")
    assert all(got[name][0] <= got[name][1] for name in rising)


def test_a_clock_that_the_voltage_does_not_allow_is_infeasible_and_says_by_how_much():
    got = NodeFactors().evaluate(Batch.of([{"node_nm": 45, "voltage": 0.9, "clock": 1.2e9}]))
    assert got.failures[0].kind == "infeasible"
    assert "1000 MHz: 200 MHz less than 1200 MHz" in got.failures[0].reason


def test_below_the_threshold_nothing_switches():
    got = NodeFactors().evaluate(Batch.of([{"node_nm": 45, "voltage": 0.3}]))
    assert "no transistor switches" in got.failures[0].reason


def test_a_clock_of_nothing_is_infeasible():
    got = NodeFactors().evaluate(Batch.of([{"node_nm": 45, "voltage": 0.9, "clock": 0.0}]))
    assert "a clock of 0 Hz is not positive" in got.failures[0].reason


def test_of_no_designs_it_says_nothing():
    one = Batch.of([{"node_nm": 45, "voltage": 0.9}])
    got = NodeFactors().evaluate(one.take(np.zeros(0, dtype=np.int64)))
    assert got.columns["frequency"].shape == (0,)


def test_a_share_of_the_clock_is_that_of_the_fastest():
    half = factors(node_nm=32, voltage=0.8, clock_share=0.5)
    assert half["frequency"] == half["highest_frequency"] / 2


@pytest.mark.parametrize(
    ("option", "metric"),
    [
        ({"reference_nm": 22.0}, "logic_factor"),
        ({"nominal_clock": 2e9}, "frequency"),
        ({"threshold": 0.2}, "frequency"),
        ({"alpha": 1.5}, "frequency"),
        ({"fab_grid": "iceland"}, "carbon_per_area"),
        ({"abatement": 99.0}, "carbon_per_area"),
    ],
)
def test_every_option_moves_a_metric(option, metric):
    batch = Batch.of([{"node_nm": 28, "voltage": 0.7}])
    free, set_ = NodeFactors().evaluate(batch), NodeFactors(**option).evaluate(batch)
    assert not np.array_equal(free.columns[metric], set_.columns[metric])


def test_a_node_that_has_no_figures_is_told_before_a_study_runs():
    with pytest.raises(SpecError, match="12 nm"):
        NodeFactors().check_values({"node_nm": (7, 12)})
