"""Carbon is an objective that any study of a chip can ask for."""

from __future__ import annotations

import numpy as np
import pytest

from dse.schema.study.plan import plan_of

SPACE = """\
space: arrays
parameters:
  rows:     {ordinal: [8, 16, 32]}
  cols:     {ordinal: [8, 16, 32]}
  lifetime: {ordinal: [1, 3, 5], unit: yr}
"""

STUDY = """\
study: arrays
question: Which array emits least?
space: space.yaml
evaluators:
  chip: {use: accelerators.systolic, workload: digits-cnn}
  die:  {use: hardware.die, node_nm: 45}
  life: {use: hardware.carbon, rate: 100 1/s, grid: europe, dram_capacity: 1 GB}
objectives:
  - minimize: life.carbon
  - minimize: chip.latency
constraints:
  - die.cost <= 5 $
optimizer: exhaustive
seed: 1
"""


@pytest.fixture
def problem(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    return plan_of(tmp_path / "study.yaml").problem


def test_a_chips_energy_latency_and_area_find_their_way_without_a_word(problem):
    known = problem.known(next(problem.space.enumerate())).columns
    # Europe: 300 g/kWh
    kilowatt_hours = known["life.runs"] * known["chip.energy"] / 3.6e6
    np.testing.assert_allclose(known["life.operational"], kilowatt_hours * 0.300)
    np.testing.assert_array_equal(known["life.silicon"], known["die.embodied"])


def test_a_longer_life_emits_more_in_all_and_less_for_each_run(problem):
    batch = next(problem.space.enumerate())
    known = problem.known(batch).columns
    order = np.argsort(batch["lifetime"], kind="stable").reshape(3, -1)  # by life, then array
    carbon, each = known["life.carbon"][order], known["life.carbon_per_run"][order]
    assert (np.diff(carbon, axis=0) > 0).all()
    assert (np.diff(each, axis=0) < 0).all()
