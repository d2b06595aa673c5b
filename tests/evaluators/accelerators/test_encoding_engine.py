"""Engines for neural graphics: cycles, tables and schedules by hand."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.encoding_engine import EncodingEngine

GPU = {
    "samples": 1e8,
    "clock": "1 GHz",
    "bandwidth": "900 GB/s",
    "kernel_time": "200 ms",
    "rest_time": "80 ms",
    "fusion": 8,
}
TABLE = 2**19 * 2 * 2  # bytes of a full level: two numbers in fp16


def run(**design):
    given = {"processors": 10, "sram": float(TABLE)} | design
    found = EncodingEngine(**GPU).evaluate(Batch.of([given]))
    assert not found.failures
    return {name: column[0] for name, column in found.columns.items()}


def test_a_sample_takes_a_cycle_to_encode_and_one_for_each_tile_of_the_mlp():
    found = run()
    assert found["encoding_time"] == pytest.approx(0.01)
    assert found["mlp_time"] == pytest.approx(0.03)
    assert run(engines=4, banks=2)["encoding_time"] == pytest.approx(0.01 * 4 * 4)
    assert run(width=128)["mlp_time"] == pytest.approx(0.01 * (2 + 4 + 2))


def test_the_rest_overlaps_or_is_added():
    assert run()["frame_time"] == pytest.approx(0.03)
    assert run(overlapped=False)["frame_time"] == pytest.approx(0.04)
    assert run(processors=1000)["speedup"] == pytest.approx(28)  # bound by 80 ms / 8


def test_tables_are_dense_until_they_are_hashed():
    cells = np.floor(16 * 128 ** (np.arange(16) / 15) + 1e-9)
    entries = np.minimum((cells + 1) ** 3, 2**19)
    assert run()["table_size"] == pytest.approx(4 * entries.sum())


def test_levels_that_do_not_fit_are_read_from_the_memory_of_the_gpu():
    full = (np.floor(16 * 128 ** (np.arange(16) / 15) + 1e-9) + 1) ** 3 >= 2**19
    found = run(sram=TABLE - 1.0)
    assert found["levels_outside"] == full.sum()
    assert found["memory_time"] == pytest.approx(1e8 * full.sum() * 8 * 32 / 900e9)
    assert found["bottleneck"] == 2
    assert run()["levels_outside"] == 0


def test_grids_that_would_shrink_are_infeasible_and_an_efficiency_above_one_is_refused():
    batch = Batch.of([{"processors": 8, "sram": 1e6, "finest": 8}])
    assert EncodingEngine(**GPU).evaluate(batch).failures[0].kind == "infeasible"
    with pytest.raises(SpecError, match=r"efficiency cannot be 1\.5"):
        EncodingEngine(efficiency=1.5)
