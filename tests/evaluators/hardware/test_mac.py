"""Multiply-accumulates by format: figures in print, and the laws of fewer bits."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.circuits import logic_energy_factor
from dse_evaluators.accelerators.technology import OPERATIONS
from dse_evaluators.hardware.mac import MacCost
from dse_evaluators.hardware.macs import WORDS
from tests import tables

TABLE = tables.CARRIED / "energy_tables.csv"
NAMES = ("int mult 8", "int mult 32", "fp16 mult 16", "fp32 mult 32", "int add 32", "fp32 add 32")


def mac(weight, **design):
    """What ``hardware.mac`` says of one design."""
    got = MacCost().evaluate(Batch.of([{"weight_format": weight, **design}]))
    return {name: values.item() for name, values in got.columns.items()}


@pytest.mark.parametrize(
    ("word", "multiply_pj", "add_pj"),
    [("int8", 0.2, 0.1), ("fp16", 1.1, 0.9), ("fp32", 3.7, 0.9)],
)
def test_at_45_nm_it_costs_what_horowitz_prints(word, multiply_pj, add_pj):
    found = mac(word)
    assert found["multiply_energy"] == pytest.approx(multiply_pj * 1e-12)
    assert found["add_energy"] == pytest.approx(add_pj * 1e-12)


def test_at_7_nm_one_factor_for_all_operations_is_within_a_quarter_of_what_jouppi_prints():
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["node_nm"] == "7"]
    printed = {f"{row['operation']} {row['bits']}": float(row["energy_pJ"]) for row in rows}
    ours = [one.energy_j * logic_energy_factor(7.0) * 1e12 for one in OPERATIONS]
    off = np.array(ours) / [printed[name] for name in NAMES] - 1.0
    assert np.abs(off).max() <= 0.27  # 32-bit integer multiplies
    assert np.median(np.abs(off)) <= 0.16


@pytest.mark.parametrize(
    ("blocked", "plain"),
    [("mxfp8_e4m3", "fp8_e4m3"), ("mxfp4", "fp4_e2m1"), ("mxint8", "int8"), ("nvfp4", "fp4_e2m1")],
)
def test_a_scale_that_a_block_shares_costs_something_and_less_than_half_of_the_rest(blocked, plain):
    with_scale, without = mac(blocked), mac(plain)
    assert without["energy"] < with_scale["energy"] < 1.6 * without["energy"]
    assert with_scale["scale_energy"] == pytest.approx(with_scale["energy"] - without["energy"])


def test_a_block_of_sixteen_shares_less_than_one_of_thirty_two():
    assert mac("nvfp4")["scale_energy"] > mac("mxfp4")["scale_energy"]


@given(st.sampled_from(sorted(WORDS)), st.sampled_from(sorted(WORDS)))
def test_the_order_of_the_operands_does_not_matter(one, other):
    assert mac(one, activation_format=other) == pytest.approx(mac(other, activation_format=one))


@given(st.integers(2, 16), st.integers(2, 16))
def test_fewer_bits_never_cost_more(one, other):
    few, many = sorted((one, other))
    few, many = mac(f"int{few}"), mac(f"int{many}")
    assert few["energy"] <= many["energy"]
    assert few["area"] <= many["area"]


@pytest.mark.parametrize("knob", [{"activation_format": "int4"}, {"node_nm": 7}, {"voltage": 0.6}])
def test_every_knob_moves_the_energy(knob):
    assert mac("int8", **knob)["energy"] < mac("int8")["energy"]


def test_an_option_stands_for_a_node_that_the_space_lacks():
    batch = Batch.of([{"weight_format": "int8"}])
    there = MacCost(node_nm=7.0).evaluate(batch).columns
    assert there["energy"].item() == mac("int8", node_nm=7)["energy"]
    assert there["extrapolated"].item() == 1.0


@pytest.mark.parametrize("values", [{"weight_format": ("int8", "mxfp3")}, {"node_nm": (8,)}])
def test_what_has_no_figures_is_told_before_a_study_runs(values):
    with pytest.raises(SpecError):
        MacCost().check_values(values)
