"""Vectors that are looked up or computed on a device, against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_of
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.recommenders.embedding_time import EmbeddingTime

MODEL = {"device": "h100-sxm", "format": "fp16", "features": 3, "rows": 1000, "dim": 8}
HASH = {"hashes": 64, "width": 32, "layers": 2}
KINDS = [{"representation": one} for one in ("table", "hash", "hybrid")]


def find(*designs, platforms=None, **knobs):
    made = EmbeddingTime(knobs={**MODEL, **knobs}, platforms=platforms)
    return made.evaluate(Batch.of(designs))


def test_a_table_moves_its_rows_and_a_hybrid_takes_the_time_of_both():
    found = find(*KINDS, batch=4096, inflation=4).columns
    constants = calibration_of("h100-sxm", "fp16").constants
    moved = 4096 * 3 * 8 * 2 * 4
    rate = constants.memory_share * device_of("h100-sxm").dram_bytes_per_s
    table, hashed, hybrid = found["latency"]
    assert table == pytest.approx(moved / rate + constants.launch_s, rel=1e-12)
    assert hybrid == pytest.approx(table + hashed, rel=1e-12)
    np.testing.assert_allclose(found["lookup_time"], [table, 0, table])
    np.testing.assert_allclose(found["throughput"], 4096 / found["latency"])


def test_memory_is_that_of_rows_matrices_biases_and_hash_functions():
    numbers = 64 * 32 + 32 + 32 * 32 + 32 + 32 * 8 + 8
    mlps, table = 3 * (2 * numbers + 8 * 64), 1000 * 8 * 2
    found = find(*({**one, **HASH} for one in KINDS[1:]), KINDS[0]).columns["memory"]
    np.testing.assert_array_equal(found, [mlps, table + mlps, table])


def test_large_mlps_run_at_the_rate_of_the_device():
    sizes = {"hashes": 4096, "width": 4096, "layers": 1, "dim": 1024}
    found = find({"representation": "hash"}, batch=8192, **sizes).columns["latency"][0]
    flops = 2 * 8192 * 3 * (4096 * 4096 + 4096 * 1024)
    constants = calibration_of("h100-sxm", "fp16").constants
    ideal = flops / (constants.compute_share * device_of("h100-sxm").flops_per_s["fp16"])
    assert ideal < found < 1.2 * ideal


def test_a_table_that_is_larger_than_the_memory_is_infeasible_and_a_hash_is_not():
    small = {"cell": {"like": "h100-sxm", "memory": "10 kB"}, "box": {"like": "h100-sxm"}}
    sizes = {"hashes": 4, "width": 4, "layers": 1}
    found = find(*KINDS, platforms=small, device="cell", **sizes)
    assert sorted(found.failures) == [0, 2]
    assert "of 1.6e-05 GB are larger than the memory of cell" in found.failures[0].reason
    assert not find(*KINDS, platforms=small, device="box").failures


def test_a_size_of_the_hash_has_no_effect_with_a_table():
    found = find({"representation": "table", "width": 8}, {"representation": "hash", "width": 8})
    assert found.failures[0].reason == "width has no effect with a table"
    assert list(found.failures) == [0]


def test_a_device_that_is_unknown_is_refused_with_the_nearest_name():
    with pytest.raises(SpecError, match="h100") as caught:
        EmbeddingTime(knobs={"device": "h100-sx"})
    assert caught.value.hint.startswith("h100-sxm") or "h100-sxm" in caught.value.hint
