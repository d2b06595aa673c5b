"""Where training keeps its activations: lifetimes, refreshes, and what holds for every memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.accelerators.lifetimes.memory_kinds import KINDS, retention_s
from dse_evaluators.accelerators.lifetimes.training_cost import ReversibleTraining, refreshes
from dse_evaluators.accelerators.lifetimes.training_memory import TrainingMemory

MODEL = TrainingMemory()
BASE = {"memory": "edram", "reversible_blocks": 6, "area": 3.0, "spill": True, "celsius": 95}

designs = st.fixed_dictionaries(
    {
        "memory": st.sampled_from(sorted(KINDS)),
        "reversible_blocks": st.integers(0, 12),
        "area": st.floats(0.1, 30),
        "spill": st.just(value=True),
        "refresh": st.sampled_from(["lifetime", "all"]),
        "cell_retention": st.floats(1e-6, 1e-3),
        "celsius": st.floats(0, 120),
        "batch": st.integers(1, 8),
        "number_format": st.sampled_from(["int4", "int8", "int16", "fp32"]),
        "multipliers": st.integers(16, 16384),
        "clock": st.floats(1e8, 2e9),
        "dram_bandwidth": st.floats(1e8, 1e11),
        "macs_per_activation": st.integers(1, 1000),
    }
)


def metrics(rows):
    """The columns of these designs, all of which can exist."""
    got = MODEL.evaluate(Batch.of(rows))
    assert not got.failures
    return got.columns


def training(reversible: float) -> ReversibleTraining:
    """Twelve blocks, each of which takes 40 us forward."""
    return ReversibleTraining(
        blocks=12, reversible=np.array([reversible]), forward_s=np.array([40e-6])
    )


def test_an_ordinary_activation_waits_for_all_later_blocks_and_a_reversible_one_for_its_own():
    assert training(0).lifetimes_s[0, 0] == pytest.approx(12 * (40e-6 + 80e-6))
    assert training(12).lifetimes_s[:, 0] == pytest.approx(40e-6 + 1.5 * 80e-6)


def test_an_ordinary_network_keeps_all_activations_and_a_reversible_one_two():
    assert [float(training(count).kept[0]) for count in (0, 6, 11, 12)] == [12, 8, 3, 2]


# S. Q. Zhang et al., CAMEL, HPCA 2024, table V: longest lifetimes in us, and refreshes with cells
# that hold for 3.35 us.
@pytest.mark.parametrize(("lifetime_us", "times"), [(2.66, 0), (3.10, 0), (3.40, 1), (4.13, 1)])
def test_data_are_refreshed_as_often_as_camel_prints(lifetime_us, times):
    assert refreshes(np.array(lifetime_us), np.array(3.35)) == times


def test_ten_degrees_halve_what_cells_hold():
    assert retention_s(np.array([105.0, 95.0]), np.array(45e-6)) == pytest.approx([45e-6, 90e-6])


def test_edram_is_denser_and_leaks_less_than_sram_by_the_shares_of_its_table():
    """Xia and Zhang, Kelle, MICRO 2025, section 2.3: over twice as dense; 154 mW for 415 mW."""
    assert 1 / KINDS["edram"].area_share > 2
    assert KINDS["edram"].leakage_share == pytest.approx(154 / 415)


@given(designs)
def test_energy_and_time_are_the_sums_of_parts_that_are_not_negative(design):
    got = metrics([design])
    names = ("mac", "access", "refresh", "leakage", "dram")
    energies = [got[f"{name}_energy"][0] for name in names]
    assert min(energies) >= 0
    assert sum(energies) == pytest.approx(got["energy"][0], rel=1e-12)
    assert got["compute_time"] + got["wait_time"] == pytest.approx(got["latency"], rel=1e-12)
    assert (got["wait_time"] > 0) == (got["bottleneck"] == 1)


@given(designs, st.floats(1, 100))
def test_more_bandwidth_is_never_slower(design, factor):
    wider = design | {"dram_bandwidth": design["dram_bandwidth"] * factor}
    got = metrics([design, wider])
    assert got["latency"][1] <= got["latency"][0]


@given(designs)
def test_unlimited_bandwidth_leaves_the_time_of_multiplying(design):
    got = metrics([design | {"dram_bandwidth": 1e300}])
    assert got["wait_time"] == 0


@given(designs, st.floats(1, 100))
def test_a_larger_memory_never_means_more_traffic(design, factor):
    got = metrics([design, design | {"area": design["area"] * factor}])
    assert got["dram_traffic"][1] <= got["dram_traffic"][0]


@given(designs)
def test_fewer_bits_never_mean_more_bytes(design):
    got = metrics([design | {"number_format": f"int{bits}"} for bits in range(2, 17)])
    assert (np.diff(got["storage"]) >= 0).all()
    assert (np.diff(got["dram_traffic"]) >= 0).all()


@given(designs, st.floats(0, 50))
def test_a_hotter_memory_is_never_refreshed_less(design, degrees):
    got = metrics([design, design | {"celsius": design["celsius"] + degrees}])
    assert got["refreshed"][1] >= got["refreshed"][0]


@given(designs)
def test_refreshing_by_lifetime_never_takes_more_than_refreshing_all(design):
    got = metrics([design | {"refresh": policy} for policy in ("lifetime", "all")])
    assert got["refresh_energy"][0] <= got["refresh_energy"][1]


@given(designs)
def test_only_edram_is_refreshed(design):
    got = metrics([design | {"memory": memory} for memory in ("sram", "dram")])
    assert (got["refresh_energy"] == 0).all()


@settings(max_examples=25)
@given(st.lists(designs, min_size=2, max_size=5))
def test_a_step_costs_the_same_alone_and_among_others(rows):
    together, first = metrics(rows), metrics(rows[:1])
    assert {name: values[0] for name, values in together.items()} == {
        name: values[0] for name, values in first.items()
    }


def test_where_data_live_no_longer_than_cells_hold_nothing_is_refreshed():
    design = BASE | {"reversible_blocks": 12, "area": 4.0}
    lifetime_s = metrics([design])["longest_lifetime"][0]
    at_95 = {"celsius": 105, "cell_retention": lifetime_s * 1.001}
    shorter = {"celsius": 105, "cell_retention": lifetime_s * 0.999}
    got = metrics([design | at_95, design | shorter])
    assert list(got["refreshes"]) == [0, 12]


def test_what_does_not_fit_and_may_not_go_elsewhere_cannot_be_and_says_by_how_much():
    small = {"memory": "sram", "reversible_blocks": 0, "area": 2.0, "spill": False}
    got = MODEL.evaluate(Batch.of([small, small | {"spill": True}, small | {"memory": "dram"}]))
    assert list(got.failures) == [0]
    assert got.failures[0].kind == "infeasible"
    assert got.failures[0].reason == "needs 768.0 KiB on the chip, has 132.7 KiB: 635.3 KiB short"


@pytest.mark.parametrize(
    "other",
    [
        {"memory": "sram"},
        {"reversible_blocks": 3},
        {"area": 2.0},
        {"refresh": "all"},
        {"cell_retention": 1e-5},
        {"celsius": 65},
        {"batch": 2},
        {"number_format": "int4"},
        {"multipliers": 512},
        {"clock": 1e9},
        {"dram_bandwidth": 1e8},
        {"macs_per_activation": 576},
    ],
    ids=lambda other: next(iter(other)),
)
def test_every_knob_moves_some_metric(other):
    got = metrics([BASE, BASE | other])
    assert any(values[0] != values[1] for values in got.values())


@pytest.mark.parametrize("values", [{"memory": ("flash",)}, {"reversible_blocks": (13,)}])
def test_what_cannot_be_run_is_told_before_it_is(values):
    with pytest.raises(SpecError):
        MODEL.check_values(values)


def test_a_network_has_blocks():
    with pytest.raises(PluginError, match="blocks"):
        TrainingMemory(blocks=0)
