"""The co-design study is exact: found by parts it is what looking at every design finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse.optimizers.decompose import find_exact_front
from dse.optimizers.exact.chunks import judged
from dse.optimizers.exact.exact_front import exact_front
from dse.schema.study.plan import plan_of
from dse_evaluators.carbon.footprint import Footprint
from dse_evaluators.hardware.die import Die

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "codesign_accelerator.yaml"

# The same parameters, fewer values of each.
FEW = """\
space: few
parameters:
  density:           {ordinal: [0.25, 1]}
  weight_format:     {choice: [int8, int4, fp4_e2m1]}
  activation_format: {choice: [int8, fp8_e4m3]}
  rows:              {ordinal: [8, 32]}
  cols:              {ordinal: [16, 32]}
  dataflow:          {choice: [os, ws]}
  ifmap_sram:        {ordinal: [4 KiB]}
  filter_sram:       {ordinal: [4 KiB, 16 KiB]}
  ofmap_sram:        {ordinal: [4 KiB]}
  bytes_per_cycle:   {ordinal: [2, 8]}
  node_nm:           {ordinal: [7, 22, 65]}
  voltage:           {ordinal: [0.6, 0.9], unit: V}
  clock_share:       {ordinal: [0.5, 1.0]}
  dram:              {choice: [lpddr4, ddr4]}
  dram_channels:     {ordinal: [1]}
constraints:
  - (weight_format == 'fp4_e2m1') == (activation_format == 'fp8_e4m3')
"""


@pytest.fixture
def small(tmp_path):
    """The shipped question over the few designs."""
    (tmp_path / "few.yaml").write_text(FEW)
    text = STUDY.read_text().replace("../spaces/codesign_accelerator.yaml", "few.yaml")
    (tmp_path / "study.yaml").write_text(text)
    return plan_of(tmp_path / "study.yaml").problem


def losses(problem, designs):
    """What these designs lose in each objective, the least first."""
    found, violations, _ = judged(problem, Batch.of(designs))
    assert not violations.any()
    return found[np.lexsort(found.T)]


@pytest.mark.slow
def test_found_by_parts_the_front_is_that_of_every_design(small, tmp_path):
    by_parts = find_exact_front(small)
    looked_at = exact_front(small, workers=1, checkpoint=str(tmp_path / "progress"))
    assert by_parts.total == looked_at.total == small.space.count()
    np.testing.assert_allclose(
        losses(small, by_parts.designs), losses(small, looked_at.designs), rtol=1e-12
    )


@pytest.mark.slow
def test_the_formulas_for_a_die_are_what_the_evaluators_of_dies_and_of_carbon_say(small):
    designs = find_exact_front(small).designs
    known = small.known(Batch.of(designs)).columns
    latency_s = known["chip.cycles"] / known["node.frequency"]
    area_mm2 = known["chip.area"] * known["node.area_factor"]
    nodes = np.array([float(design["node_nm"]) for design in designs])
    die = Die().evaluate(columns(area=area_mm2, node_nm=nodes)).columns
    energy_j = (
        known["chip.mac_energy"] * known["node.logic_factor"]
        + known["chip.sram_energy"] * known["node.sram_factor"]
        + known["chip.dram_traffic"] * known["dram.energy_per_byte"]
        + area_mm2 * known["node.leakage"] * latency_s
    )
    life = Footprint(rate="10 kHz", lifetime="3 yr", grid="world")
    told = life.evaluate(
        columns(energy=energy_j, latency=latency_s, embodied=die["embodied"])
    ).columns
    memory_kg = 1e9 * known["dram.carbon_per_byte"]
    ours = judged(small, Batch.of(designs))[0][:, 1]
    np.testing.assert_allclose(ours, told["carbon"] + memory_kg, rtol=1e-9)


@pytest.mark.proof
def test_the_shipped_front_speaks_for_more_than_a_billion_designs():
    problem = plan_of(STUDY).problem
    front = find_exact_front(problem)
    assert front.feasible
    assert front.total == problem.space.count() > 1_000_000_000
    assert front.groups == 3


def columns(**values):
    """A batch of these columns."""
    size = min(map(len, values.values()))
    return Batch({name: Column(column) for name, column in values.items()}, size)
