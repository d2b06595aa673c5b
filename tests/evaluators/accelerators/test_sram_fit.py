"""The SRAM laws are what their script finds, and hold for sizes that it was not shown."""

from __future__ import annotations

import csv
import io
import runpy
import sys
from pathlib import Path

import pytest

from dse_evaluators.accelerators.technology import (
    LEAKAGE_W_PER_MM2,
    SRAM_ACCESS_S,
    SRAM_AREA_MM2,
    SRAM_READ_J,
    SRAM_WRITE_J,
)
from tests import tables

ROOT = Path(__file__).parents[3]
CACTI = tables.CARRIED / "cacti_sram.csv"
LAWS = {
    "read": (SRAM_READ_J, 1e-12),
    "write": (SRAM_WRITE_J, 1e-12),
    "access": (SRAM_ACCESS_S, 1e-9),
    "area": (SRAM_AREA_MM2, 1.0),
}


@pytest.fixture(scope="module")
def tables():
    """The two tables that the script prints, each with its rows by their first column."""
    said, argv, out = io.StringIO(), sys.argv, sys.stdout
    sys.argv, sys.stdout = ["sram_fit.py", str(CACTI)], said
    try:
        runpy.run_path(str(ROOT / "benchmarks" / "sram_fit.py"), run_name="__main__")
    finally:
        sys.argv, sys.stdout = argv, out
    parts = said.getvalue().replace("\r", "").split("\n\n")
    read = [list(csv.DictReader(io.StringIO(part))) for part in parts]
    return [{next(iter(row.values())): row for row in rows} for rows in read]


@pytest.mark.parametrize("name", sorted(LAWS))
def test_a_law_of_the_table_is_what_the_script_finds(name, tables):
    law, unit = LAWS[name]
    found = {key: float(value) for key, value in tables[0][name].items() if key != "law"}
    assert law.scale == pytest.approx(found["scale"] * unit, rel=1e-3)
    powers = [found["size"], found["bus"], found["node"]]
    assert [law.size, law.bus, law.node] == pytest.approx(powers, abs=1e-4)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_half_of_the_runs_are_within_a_tenth_also_of_sizes_left_out(name, tables):
    assert float(tables[0][name]["median"]) <= 0.10
    assert float(tables[0][name]["held_median"]) <= 0.10


@pytest.mark.parametrize("nm", sorted(LEAKAGE_W_PER_MM2))
def test_leakage_is_the_median_that_the_script_finds(nm, tables):
    row = tables[1][f"{nm:.4f}"]
    assert LEAKAGE_W_PER_MM2[nm] == pytest.approx(float(row["w_per_mm2"]), abs=1e-4)
    assert float(row["median_off"]) <= 0.10
