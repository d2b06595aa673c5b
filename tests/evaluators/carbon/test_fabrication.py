"""Emissions of making things, against what ACT's own tests expect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import SpecError
from dse_evaluators.carbon.fabrication import PROCESSES, carbon_kg_per_mm2
from dse_evaluators.carbon.grids import GRIDS, grid_kg_per_j
from dse_evaluators.carbon.memories import MEMORIES, memory_kg_per_byte
from dse_evaluators.hardware.die import PACKAGE_KG

YEAR_S = 31557600.0


def test_a_10_nm_die_emits_what_acts_test_works_out():
    # act/tests/model_unit_tests.py: 145 mm2, yield 0.943543, gases 95 % burnt, Taiwan, one package
    expected_g = (1.475 * 1.45 * 583 + 240 * 1.45 + 500 * 1.45) / 0.943543 + 150
    made = 145 * carbon_kg_per_mm2(10.0, grid="taiwan-2022", abatement=95.0) / 0.943543
    assert made + PACKAGE_KG == pytest.approx(expected_g * 1e-3, rel=1e-9)


def test_dram_emits_what_acts_test_works_out():
    assert 10e9 * memory_kg_per_byte("ddr3_30nm") == pytest.approx(2.3)


def test_a_grid_emits_what_acts_test_works_out():
    # 273 mW for 3.5 years at 72.3 %, in Australia: 597 g/kWh
    joules = 0.273 * 0.723 * 3.5 * YEAR_S
    expected_g = 597 * 0.273e-3 * 0.723 * 3.5 * 8766
    assert joules * grid_kg_per_j("australia-2022") == pytest.approx(expected_g * 1e-3)


@given(st.sampled_from(sorted(GRIDS)), st.floats(95.0, 99.0))
def test_a_smaller_node_never_emits_less_for_its_area(grid, abatement):
    found = [carbon_kg_per_mm2(nm, grid=grid, abatement=abatement) for nm in sorted(PROCESSES)]
    assert found == pytest.approx(sorted(found, reverse=True))


@given(st.floats(3.0, 100.0), st.floats(95.0, 99.0))
def test_burning_more_of_the_gases_never_emits_more(nm, abatement):
    assert carbon_kg_per_mm2(nm, abatement=99.0) <= carbon_kg_per_mm2(nm, abatement=abatement)


def test_above_28_nm_a_wafer_emits_what_it_does_there():
    assert carbon_kg_per_mm2(90.0) == carbon_kg_per_mm2(28.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: carbon_kg_per_mm2(2.0),
        lambda: carbon_kg_per_mm2(7.0, abatement=80.0),
        lambda: carbon_kg_per_mm2(7.0, grid="atlantis"),
        lambda: memory_kg_per_byte("hbm3"),
    ],
)
def test_what_has_no_figures_is_refused(wrong):
    with pytest.raises(SpecError):
        wrong()


def test_the_table_of_memories_has_no_row_for_what_act_lacks():
    assert not {name for name in MEMORIES if name.startswith(("hbm", "gddr", "lpddr5", "ddr5"))}
