"""Circuit costs against the tables that they were fitted to, and against one that they were not."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from dse_evaluators.accelerators.circuits import (
    leakage_w_per_mm2,
    logic_energy_factor,
    mac_area_mm2,
    mac_energies_j,
    mac_energy_j,
    sram,
)
from dse_evaluators.accelerators.systolic.systolic_parameters import FORMAT_CODES
from dse_evaluators.accelerators.technology import (
    LEAKAGE_W_PER_MM2,
    SRAM_ACCESS_S,
    SRAM_AREA_MM2,
    SRAM_READ_J,
    SRAM_WRITE_J,
)
from dse_evaluators.formats.words import FORMATS
from tests import tables

CACTI = tables.CARRIED / "cacti_sram.csv"

# Nine runs of CACTI 7: node nm, KiB, bus bits, read pJ, write pJ, area mm2.
CARRIED = np.array(
    [
        (22, 128, 64, 11.5901, 8.20516, 0.22989125694),
        (22, 2048, 256, 134.898, 139.563, 3.6650325108),
        (32, 256, 256, 76.3347, 82.683, 1.15455245992),
        (45, 2, 64, 3.22513, 4.91846, 0.0179156408),
        (45, 8, 64, 7.46693, 9.2281, 0.060144390355),
        (45, 64, 64, 27.7687, 24.6471, 0.458276665796),
        (45, 512, 256, 207.129, 236.756, 3.8168935768),
        (65, 32, 256, 58.441, 112.505, 0.5119858690769),
        (90, 1024, 64, 366.102, 326.65, 28.0816027648),
    ]
)


def all_runs():
    """The columns of ``CARRIED`` for every run."""
    names = ("node_nm", "size_kB", "bus_bits", "read_pJ", "write_pJ", "area_mm2", "access_ns")
    with CACTI.open(newline="", encoding="utf-8") as file:
        return np.array([[float(row[name]) for name in names] for row in csv.DictReader(file)])


def errors(runs, law, column, unit):
    """Relative errors of a law over runs of CACTI."""
    found = [sram(law, row[1] * np.array([1024.0]), row[2:3], row[0]).item() for row in runs]
    return np.abs(np.array(found) / (runs[:, column] * unit) - 1.0)


# law, column, its unit, the median and the largest error that its table states
LAWS = [
    (SRAM_READ_J, 3, 1e-12, 0.080, 0.51),
    (SRAM_WRITE_J, 4, 1e-12, 0.057, 0.28),
    (SRAM_AREA_MM2, 5, 1.0, 0.047, 0.57),
]
ACCESS = (SRAM_ACCESS_S, 6, 1e-9, 0.051, 0.38)


@pytest.mark.parametrize(("law", "column", "unit", "median", "largest"), [*LAWS, ACCESS])
def test_the_sram_law_errs_over_all_runs_as_its_table_says(law, column, unit, median, largest):
    found = errors(all_runs(), law, column, unit)
    assert len(found) == 100
    assert np.median(found) <= median
    assert found.max() <= largest


@pytest.mark.parametrize(("law", "column", "unit", "median", "largest"), LAWS)
def test_the_sram_law_is_within_a_tenth_of_most_carried_runs(law, column, unit, median, largest):
    assert np.median(errors(CARRIED, law, column, unit)) <= 0.10


def test_reads_and_writes_go_with_the_node_by_one_factor():
    assert SRAM_READ_J.node == SRAM_WRITE_J.node


@pytest.mark.parametrize(
    ("word", "joules"),
    [
        ("int8", 0.2e-12 + 0.1e-12),  # 8-bit multiply, 32-bit add
        ("fp16", 1.1e-12 + 0.9e-12),  # 16-bit multiply, 32-bit add
        ("fp32", 3.7e-12 + 0.9e-12),
    ],
)
def test_a_mac_of_a_tabulated_format_costs_what_horowitz_prints(word, joules):
    assert mac_energy_j(FORMATS[word], FORMATS[word]) == pytest.approx(joules, rel=1e-12)


def test_bf16_stands_to_fp16_as_jouppi_prints_which_the_law_was_not_fitted_to():
    # ISCA 2021, table 2, multiply at 7 nm: 0.21 and 0.34 pJ, each rounded to 0.01
    add = 0.9e-12
    bf16, fp16 = (mac_energy_j(FORMATS[word], FORMATS[word]) - add for word in ("bf16", "fp16"))
    assert 0.205 / 0.345 <= bf16 / fp16 <= 0.215 / 0.335


@pytest.mark.parametrize("cost", [mac_energy_j, mac_area_mm2])
def test_an_integer_mac_with_fewer_bits_costs_less(cost):
    costs = [cost(FORMATS[f"int{bits}"], FORMATS["int8"]) for bits in range(2, 17)]
    assert costs == sorted(costs)


def test_a_float_operand_makes_a_float_multiplier():
    mixed = mac_energy_j(FORMATS["int4"], FORMATS["fp16"])
    assert mixed > mac_energy_j(FORMATS["int4"], FORMATS["int16"])


def test_the_table_of_energies_is_that_of_the_formats():
    table = mac_energies_j(45.0)
    place = int(FORMAT_CODES["int4"]), int(FORMAT_CODES["int8"])
    assert table[place] == mac_energy_j(FORMATS["int4"], FORMATS["int8"])


def test_logic_at_7_nm_costs_the_median_share_that_jouppi_prints():
    # 45 nm over 7 nm of the six operations: 0.30, 0.309, 0.35, 0.354, 0.42, 0.48
    assert logic_energy_factor(7.0) == pytest.approx((0.35 * 1.31 / 3.7) ** 0.5, rel=1e-9)


@pytest.mark.parametrize(("node", "watts"), LEAKAGE_W_PER_MM2.items())
def test_leakage_goes_through_its_table(node, watts):
    assert leakage_w_per_mm2(node) == pytest.approx(watts, rel=1e-12)
