"""Is our SCALE-Sim mode the real SCALE-Sim? Random layers through both, in one command.

``python benchmarks/scalesim_exact.py`` draws layers, arrays (square and not) and dataflows, runs
each through SCALE-Sim 3.0.0 in its own environment (``dse environments install scalesim``) and
through ``accelerators/scalesim.py``, and prints how many of each count agree. It ends with status 1
if the cycles of any layer differ. The seed is the clock's and is printed; ``--seed`` repeats it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from dse.core.metric import Failure
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.scalesim_counts import (
    Report,
    ScaleSimArray,
    report_counts,
)
from dse_evaluators.accelerators.systolic.schedule import FLOWS, Flow
from dse_evaluators.outside.layer_shapes import shapes
from dse_evaluators.outside.service import ExternalService, TimeLimits
from dse_evaluators.outside.tool import worker
from dse_evaluators.workloads.layers import Layer

COUNTS = (
    "cycles",
    "sram_ifmap_reads",
    "sram_filter_reads",
    "sram_ofmap_writes",
    "dram_ifmap_reads",
    "dram_filter_reads",
    "dram_ofmap_writes",
)
SHARES = {
    "utilization": "overall_utilization",
    "mapping_efficiency": "mapping_efficiency",
    "compute_utilization": "compute_utilization",
}
NAMES = (*COUNTS, *SHARES)
LIMITS = TimeLimits(design_s=600.0)
MOST_MACS = 20_000_000
SAME = 1e-9
"""Shares are quotients: what two orders of rounding may differ by."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One layer on one array."""

    layer: Layer
    rows: int
    cols: int
    flow: Flow
    sram_kib: tuple[int, int, int]

    def design(self) -> dict[str, object]:
        """What the worker is told."""
        kib = dict(zip(("ifmap_sram", "filter_sram", "ofmap_sram"), self.sram_kib, strict=True))
        return {
            "rows": self.rows,
            "cols": self.cols,
            "dataflow": self.flow,
            "layers": shapes([self.layer]),
            **{name: 1024 * size for name, size in kib.items()},
        }


def cases(count: int, rng: np.random.Generator) -> Iterator[Case]:
    """Layers of any shape that takes seconds at most, on arrays of 1 to 64 rows and columns."""
    while count:
        layer = _layer(rng)
        case = Case(
            layer=layer,
            rows=int(rng.integers(1, 65)),
            cols=int(rng.integers(1, 65)),
            flow=FLOWS[rng.integers(len(FLOWS))],
            sram_kib=tuple(int(2 ** rng.uniform(0, 7)) for _ in range(3)),  # type: ignore[arg-type]
        )
        # SCALE-Sim writes a line for each cycle, of which a narrow array needs many.
        narrow_macs = layer.macs / min(case.rows, case.cols)
        if layer.macs <= MOST_MACS and narrow_macs <= MOST_MACS / 4:
            count -= 1
            yield case


def _layer(rng: np.random.Generator) -> Layer:
    """A product of matrices, one time in three; else a convolution."""
    product = rng.integers(3) == 0
    filter_height, filter_width = (1, 1) if product else rng.integers(1, 6, size=2)
    return Layer(
        name="drawn",
        height=int(filter_height + rng.integers(0, 256 if product else 40)),
        width=1 if product else int(filter_width + rng.integers(0, 40)),
        filter_height=int(filter_height),
        filter_width=int(filter_width),
        channels=int(2 ** rng.uniform(0, 10 if product else 7)),
        filters=int(2 ** rng.uniform(0, 9)),
        stride=1 if product else int(rng.integers(1, 4)),
    )


def ours(case: Case) -> Mapping[str, float]:
    """Our counts of a case."""
    network, one = UniqueLayers((case.layer,)), np.ones(1)
    array = ScaleSimArray(
        rows=one * case.rows,
        columns=one * case.cols,
        ifmap_sram_bytes=one * 1024 * case.sram_kib[0],
        filter_sram_bytes=one * 1024 * case.sram_kib[1],
        ofmap_sram_bytes=one * 1024 * case.sram_kib[2],
    )
    report: Report = report_counts(case.flow, network, network.products(one, one), array)
    names = {name: SHARES.get(name, name) for name in NAMES}
    return {name: float(getattr(report, own).flat[0]) for name, own in names.items()}


def theirs(drawn: Sequence[Case], processes: int) -> Iterator[Mapping[str, float]]:
    """What SCALE-Sim counts for each case, in their order."""
    program = worker("scalesim")
    idle: SimpleQueue[ExternalService] = SimpleQueue()
    for _ in range(processes):
        idle.put(ExternalService(program, {}, LIMITS, {"scalesim": "3.0.0"}))

    def answer(case: Case) -> Mapping[str, float]:
        service = idle.get()
        try:
            told = service.answer(case.design(), NAMES)
        finally:
            idle.put(service)
        if isinstance(told, Failure):
            raise SystemExit(f"SCALE-Sim has no answer to {case}: {told.reason}")
        return {name: reading.value for name, reading in told.items()}

    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(answer, drawn)


def agree(name: str, one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """True if both say the same: counts to the last one, shares but for their rounding."""
    return abs(one[name] - other[name]) <= (SAME if name in SHARES else 0.0)


def compared(count: int, seed: int, processes: int = 2) -> dict[str, list[Case]]:
    """The cases in which each quantity differs."""
    drawn = list(cases(count, np.random.default_rng(seed)))
    differ: dict[str, list[Case]] = {name: [] for name in NAMES}
    for case, real in zip(drawn, theirs(drawn, processes), strict=True):
        own = ours(case)
        for name in NAMES:
            if not agree(name, own, real):
                differ[name].append(case)
                print(
                    f"{name}: SCALE-Sim {real[name]:g}, ours {own[name]:g}: {case}", file=sys.stderr
                )
    return differ


def main() -> None:
    """Compare and print a row for each quantity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="default: the clock")
    parser.add_argument("--processes", type=int, default=2)
    told = parser.parse_args()
    seed = time.time_ns() // 1_000_000 if told.seed is None else told.seed
    print(f"seed {seed}", flush=True)
    started = time.monotonic()
    differ = compared(told.points, seed, told.processes)
    table = csv.writer(sys.stdout)
    table.writerow(("quantity", "points", "equal"))
    for name, found in differ.items():
        table.writerow((name, told.points, told.points - len(found)))
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    sys.exit(1 if differ["cycles"] else 0)


if __name__ == "__main__":
    main()
