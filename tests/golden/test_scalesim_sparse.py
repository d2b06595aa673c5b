"""N:M sparsity against runs of SCALE-Sim 3.0.0 (PyPI, MIT) with its sparsity support.

``scalesim_3_0_0_sparse.csv`` holds 60 of 212 layers and arrays that were drawn at random, weights
stationary, with a pattern for each layer and the block ELLPACK representation. It counts the
metadata in words of 32 bits, and every other word as one.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dse.core.batch import Batch
from dse_evaluators.accelerators.systolic import full
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.systolic_parameters import settings
from dse_evaluators.accelerators.systolic.totals import Totals
from dse_evaluators.workloads.layers import Layer

CARRIED = Path(__file__).with_name("scalesim_3_0_0_sparse.csv")
SIDES = {
    "ifmap_h": "height",
    "ifmap_w": "width",
    "filt_h": "filter_height",
    "filt_w": "filter_width",
    "channels": "channels",
    "filters": "filters",
    "stride": "stride",
}


@pytest.fixture(scope="module")
def runs() -> list[dict[str, str]]:
    with CARRIED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ours(run: dict[str, str]) -> Totals:
    """The same layer on the same array, with weights of a byte."""
    layer = Layer(name="", **{own: int(run[theirs]) for theirs, own in SIDES.items()})
    design = {"rows": int(run["array_rows"]), "cols": int(run["array_cols"]), "n_m": run["n_m"]}
    knobs = settings(Batch.of([design | {"dram_bandwidth": 1e300}]), {"dataflow": "ws"})
    return full.totals("ws", UniqueLayers([layer]), knobs)


def test_every_run_takes_as_many_cycles(runs):
    assert len(runs) == 60
    found = [ours(run) for run in runs]
    assert [(one.cycles - one.stall_cycles).item() for one in found] == [
        float(run["total_cycles"]) for run in runs
    ]


def test_every_run_reads_as_many_weights_and_bits_of_place(runs):
    bits = [8.0 * ours(run).buffers.filter.read_bytes.item() for run in runs]
    told = [8 * int(run["sram_filter_reads"]) + 32 * float(run["metadata_words"]) for run in runs]
    assert bits == pytest.approx(told, rel=1e-12)
