"""Fits the kernels that widen narrow weights, and prints their error on products kept back.

    python benchmarks/weight_only.py [--data ../shared/data] [--write FITS.json]

Every third matrix (n, k), by a hash of its sides, is kept back with all of its products. For each
device and width it prints the error that weights widened for nothing would have, that of the
constants on the products kept back, and that of the medians of the other devices, as a device
that nobody measured has them; then the speed-up of four bits on H200, by rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from gemm_roofline import DEVICES
from reference_tables import DATA, find_table
from scipy.optimize import least_squares

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.devices.calibrations import calibration_of
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.roofline import RooflineConstants, times
from dse_evaluators.accelerators.devices.roofline_fit import PRIOR, SCALE, SPREAD, WIDE
from dse_evaluators.accelerators.devices.weight_only import (
    FITTED,
    VECTOR_ROWS,
    WeightOnly,
    rates_of,
    weight_only_of,
    widened_times,
    without,
    work_of,
)

KEPT_BACK = 3
"""One matrix of so many is judged on and never fitted to."""

FORMS = 22
"""Forms that were compared before this one was kept: docs/devices.md."""

SIDES = (4096, 5120, 6144, 7168, 8192, 10240, 12288, 16384)
"""Of the matrices whose median speed-up is printed."""

ROWS = (1, 4, 16, 32, 64, 128)
MEASURED_SPEEDUPS = (1.98, 1.37, 1.19, 1.10, 1.00, 0.85)
"""Of TensorRT-LLM's int4 over its bf16 on H200 in the public set; nothing was fitted to them."""


@dataclass(frozen=True, kw_only=True)
class Products:
    """Products of one device, stack and width; each column (p,)."""

    device: str
    stack: str
    width: int
    m: Floats
    n: Floats
    k: Floats
    seconds: Floats

    @property
    def kept_back(self) -> Mask:
        """True for the products of matrices that no constant is fitted to."""
        sides = zip(self.n, self.k, strict=True)
        return np.array([zlib.crc32(f"{n:g},{k:g}".encode()) % KEPT_BACK == 0 for n, k in sides])

    def take(self, rows: Mask) -> Products:
        parts = {name: getattr(self, name)[rows] for name in ("m", "n", "k", "seconds")}
        return Products(device=self.device, stack=self.stack, width=self.width, **parts)

    def errors(self, kernels: WeightOnly) -> Floats:
        work = work_of(self.m, self.n, self.k, self.width / 8)
        found = widened_times(work, kernels, rates_of(device_of(self.device)), self.m)
        return np.abs(found.total_s / self.seconds - 1)

    def free(self) -> Floats:
        """The errors of the plain product whose weights are narrower and widened for nothing."""
        work = work_of(self.m, self.n, self.k, self.width / 8)
        rates = rates_of(device_of(self.device))
        found = times(
            work,
            calibration_of(self.device, "bf16").constants,
            flops_per_s=rates.tiles_flops_per_s,
            bytes_per_s=rates.bytes_per_s,
        )
        return np.abs(found.total_s / self.seconds - 1)

    def names(self) -> list[str]:
        sides = zip(self.m, self.n, self.k, strict=True)
        return [f"{m:g}x{n:g}x{k:g}" for m, n, k in sides]


def measured(folder: Path) -> list[Products]:
    """The products with weights in four and eight bits, by device."""
    groups = defaultdict[tuple[str, str, int], list[tuple[float, ...]]](list)
    with find_table(folder, "gemm_weight_only_measured.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["dtype"].endswith("_wo"):
                key = (DEVICES[row["device"]], row["framework"], int(row["dtype"][3]))
                sides = (float(row[name]) for name in "mnk")
                groups[key].append((*sides, float(row["latency_ms"]) / 1e3))
    found = []
    for (device, stack, width), points in sorted(groups.items()):
        m, n, k, seconds = np.array(points).T
        found.append(
            Products(device=device, stack=stack, width=width, m=m, n=n, k=k, seconds=seconds)
        )
    return found


Kernel = Literal["vector", "tiles"]


def fit(products: Products, kernel: Kernel) -> RooflineConstants:
    """Fit the constants of one kernel to products that it computes, near the prior of all fits."""
    work = work_of(products.m, products.n, products.k, products.width / 8)
    rates = rates_of(device_of(products.device))
    middle = np.log(astuple(PRIOR))[: len(FITTED)]

    def at(logs: Floats) -> RooflineConstants:
        values = dict(zip(FITTED, np.exp(logs).tolist(), strict=True))
        return RooflineConstants(**{**values, "exponent": 1 + values["exponent"]})

    def residuals(logs: Floats) -> Floats:
        found = times(
            work,
            at(logs),
            flops_per_s=getattr(rates, f"{kernel}_flops_per_s"),
            bytes_per_s=rates.bytes_per_s,
        )
        off = np.log(found.total_s / products.seconds) / SCALE
        return np.concatenate([off, (logs - middle) / (SPREAD[: len(FITTED)] * WIDE)])

    return at(least_squares(residuals, middle, loss="soft_l1", max_nfev=80).x)


def fitted(products: Products) -> WeightOnly:
    """Fit both kernels to the products of matrices that are not kept back."""
    seen = products.take(~products.kept_back)
    few = seen.m <= VECTOR_ROWS
    return WeightOnly(
        vector=fit(seen.take(few), "vector"),
        tiles=fit(seen.take(~few), "tiles"),
        own=True,
        source=products.stack,
    )


def record(products: Products, kernels: WeightOnly) -> dict[str, object]:
    """Return the fit as weight_only.fits.json keeps it."""
    back = products.kept_back
    errors = products.take(back).errors(kernels)
    return {
        "name": f"{products.device} int{products.width} {products.stack}",
        "constants": {
            f"{kernel}_{name}": float(f"{getattr(getattr(kernels, kernel), name):.4g}")
            for kernel in ("vector", "tiles")
            for name in FITTED
        },
        "fitted_on": products.take(~back).names(),
        "judged_on": products.take(back).names(),
        "attempts": FORMS,
        "judged_mean": float(f"{errors.mean():.4f}"),
        "judged_max": float(f"{errors.max():.4f}"),
        "source": "ai-dynamo/aiconfigurator@095f58a (Apache-2.0), products m x n x k of "
        f"{products.stack} with int{products.width} weights and 16-bit activations",
        "note": "Matrices (n, k) kept back by a hash of their sides. The form was chosen on three "
        "folds of all matrices, so the judged error is slightly kinder than an untouched one; the "
        "constants saw none of the judged products.",
    }


def speedups(width: int = 4, device: str = "h200-sxm", stack: str = "trtllm-1.2.0rc5") -> Floats:
    """Return the median speed-up over matrices of these SIDES, one for each of ROWS."""
    n, k = (side.ravel().astype(float) for side in np.meshgrid(SIDES, SIDES))
    rates, kernels = rates_of(device_of(device)), weight_only_of(device, width)
    plain = calibration_of(device, "bf16", stack).constants
    found = []
    for rows in ROWS:
        m = np.full_like(n, rows)
        wide = times(
            work_of(m, n, k, 2.0),
            plain,
            flops_per_s=rates.tiles_flops_per_s,
            bytes_per_s=rates.bytes_per_s,
        )
        narrow = widened_times(work_of(m, n, k, width / 8), kernels, rates, m)
        found.append(np.median(wide.total_s / narrow.total_s))
    return np.array(found)


def main() -> None:
    """Fit, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tell = csv.writer(sys.stdout).writerow
    tell(("device", "bits", "stack", "points", "free_mean", "mean", "median", "other_devices_mean"))
    records, everywhere = list[dict[str, object]](), list[Sequence[Floats]]()
    for products in measured(options.data):
        kernels, back = fitted(products), products.take(products.kept_back)
        records.append(record(products, kernels))
        others = without(products.device, products.width)
        errors = (back.free(), back.errors(kernels), products.errors(others))
        everywhere.append(errors)
        tell((products.device, products.width, products.stack, *_figures([errors])))
    tell(("all", "", "", *_figures(everywhere)))
    if options.write:
        text = ",\n".join(json.dumps(each) for each in records)
        options.write.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    tell(("rows", *ROWS))
    tell(("four bits on H200, measured", *MEASURED_SPEEDUPS))
    tell(("four bits on H200, modelled", *(f"{each:.2f}" for each in speedups())))


def _figures(errors: Sequence[Sequence[Floats]]) -> tuple[object, ...]:
    free, own, others = (np.concatenate(each) for each in zip(*errors, strict=True))
    figures = (free.mean(), own.mean(), np.median(own), others.mean())
    return (len(own), *(f"{figure:.3f}" for figure in figures))


if __name__ == "__main__":
    main()
