"""The systolic array against runs of SCALE-Sim 3.0.0 (PyPI, MIT), InterfaceBandwidth CALC.

``scalesim_3_0_0.csv`` holds 60 of them, ``tests/data`` a larger set; words are bytes, shares are
percent.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.scalesim_counts import ScaleSimArray, report_counts
from dse_evaluators.accelerators.systolic.systolic import Systolic
from dse_evaluators.workloads.catalogue import WORKLOADS
from dse_evaluators.workloads.layers import Layer
from tests import tables

CARRIED = Path(__file__).with_name("scalesim_3_0_0.csv")

QUANTITIES = {
    "total_cycles": ("cycles", 1.0),
    "overall_util_pct": ("overall_utilization", 100.0),
    "mapping_eff_pct": ("mapping_efficiency", 100.0),
    "compute_util_pct": ("compute_utilization", 100.0),
    "sram_ifmap_reads": ("sram_ifmap_reads", 1.0),
    "sram_filter_reads": ("sram_filter_reads", 1.0),
    "sram_ofmap_writes": ("sram_ofmap_writes", 1.0),
    "dram_ifmap_reads": ("dram_ifmap_reads", 1.0),
    "dram_filter_reads": ("dram_filter_reads", 1.0),
    "dram_ofmap_writes": ("dram_ofmap_writes", 1.0),
}

CONVOLUTION = ("ifmap_h", "ifmap_w", "filt_h", "filt_w", "channels", "filters", "stride")
PRODUCT = ("M", "K", "", "K", "", "N", "")

# file, quantity, runs that report it
REFERENCE_RUNS = [
    *(("scalesim_reference.csv", quantity, 201) for quantity in QUANTITIES),
    *(
        (f"scalesim_resnet50_{array}.csv", quantity, 21)
        for array in ("32x32_ws", "128x128_os")
        for quantity in QUANTITIES
        if quantity not in ("mapping_eff_pct", "compute_util_pct")
    ),
]


def runs(path: Path) -> list[dict[str, str]]:
    """Its rows with a result in CALC mode."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if not row.get("error") and row.get("bw_mode", "CALC") == "CALC"]


def layer_of(row: dict[str, str]) -> Layer:
    """SCALE-Sim turns a product of M x K by K x N into a convolution of 1 x K windows."""
    names = PRODUCT if row.get("op") == "gemm" else CONVOLUTION
    height, width, window, across, channels, filters, stride = (
        int(float(row[name])) if name else 1 for name in names
    )
    return Layer(
        name=row.get("workload", ""),
        height=height,
        width=width,
        filter_height=window,
        filter_width=across,
        channels=channels,
        filters=filters,
        stride=stride,
    )


def ours(row: dict[str, str], quantity: str) -> float:
    """What we report of that run."""
    one = np.ones(1)
    network = UniqueLayers([layer_of(row)])
    array = ScaleSimArray(
        rows=one * float(row["array_rows"]),
        columns=one * float(row["array_cols"]),
        ifmap_sram_bytes=one * 1024 * float(row["ifmap_sram_kB"]),
        filter_sram_bytes=one * 1024 * float(row["filter_sram_kB"]),
        ofmap_sram_bytes=one * 1024 * float(row["ofmap_sram_kB"]),
    )
    report = report_counts(row["dataflow"], network, network.products(one, one), array)
    attribute, scale = QUANTITIES[quantity]
    return float(getattr(report, attribute).item() * scale)


def compared(path: Path, quantity: str) -> tuple[list[float], list[float]]:
    """Ours and theirs for each run that reports the quantity."""
    rows = [row for row in runs(path) if row.get(quantity)]
    return [ours(row, quantity) for row in rows], [float(row[quantity]) for row in rows]


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_carried_run_is_matched_exactly(quantity):
    found, expected = compared(CARRIED, quantity)
    assert len(expected) >= 50
    # counts are integers: equal; shares are quotients of them: equal but for the last digits
    assert found == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(("file", "quantity", "rows"), REFERENCE_RUNS)
def test_every_run_of_the_reference_is_matched_exactly(file, quantity, rows):
    found, expected = compared(tables.CARRIED / file, quantity)
    assert len(expected) == rows
    assert found == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("rows", "dataflow", "cycles"),
    [
        (32, "ws", 5_753_486),  # 54 layers, 518 CPU-seconds of SCALE-Sim
        (128, "os", 611_561),  # 204 CPU-seconds
    ],
)
def test_resnet50_takes_the_cycles_that_scalesim_counts(rows, dataflow, cycles):
    evaluator = Systolic(workload="resnet50", mode="scalesim", rows=rows, cols=rows)
    got = evaluator.evaluate(Batch.of([{"dataflow": dataflow}]))
    assert sum(UniqueLayers(WORKLOADS["resnet50"]).counts) == 54
    assert got.columns["cycles"].tolist() == [cycles]
