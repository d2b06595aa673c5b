"""Kinds of DRAM, and that nothing is said where no source says it."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.hardware.drams import DRAMS, dram_of
from dse_evaluators.hardware.memory import Dram


@pytest.mark.parametrize(
    ("kind", "gigabytes_per_s"),
    [("ddr4", 25.6), ("hbm2", 256.0), ("hbm3", 819.2), ("gddr6", 64.0), ("lpddr5", 12.8)],
)
def test_a_channels_rate_is_its_width_times_its_standards_rate(kind, gigabytes_per_s):
    assert DRAMS[kind].channel_bytes_per_s == pytest.approx(gigabytes_per_s * 1e9)


@pytest.mark.parametrize("kind", ["lpddr5", "ddr5", "hbm2e", "hbm3"])
def test_a_kind_whose_energy_nobody_published_is_refused(kind):
    with pytest.raises(SpecError, match="no energy of"):
        dram_of(kind)


@pytest.mark.parametrize(
    ("kind", "pj_per_bit"), [("hbm2", 3.97), ("lpddr2", 20.0), ("lpddr4", 8.0)]
)
def test_a_bits_energy_is_that_of_its_source(kind, pj_per_bit):
    got = Dram().evaluate(Batch.of([{"dram": kind}])).columns["energy_per_byte"].item()
    assert got == pytest.approx(pj_per_bit * 8e-12)


def test_channels_add_up():
    batch = Batch.of([{"dram": "ddr4", "dram_channels": n} for n in (1, 4)])
    one, four = Dram().evaluate(batch).columns["bandwidth"]
    assert four == 4 * one


def test_a_kind_that_there_is_not_is_told_before_a_study_runs():
    with pytest.raises(SpecError, match="ddr7"):
        Dram().check_values({"dram": ("ddr4", "ddr7")})
