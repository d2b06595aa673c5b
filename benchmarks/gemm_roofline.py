"""Fits the roofline of ``accelerators.gpu`` to measured products, and tells its error on others.

    python benchmarks/gemm_roofline.py [--data ../shared/data] [--write CALIBRATIONS.csv]

Shapes are in three folds: what is told of a shape comes from constants that were fitted without it
(in any version of any framework). ``--write`` writes the constants fitted to all shapes.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
from reference_tables import DATA, find_table
from scipy.optimize import least_squares

from dse.core.values import Array, Floats, Mask
from dse_evaluators.accelerators.devices.calibrations import (
    COLUMNS,
    MOST_EXPONENT,
    MOST_SHARE,
    RANGES,
    is_plausible,
)
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import KernelWork, RooflineConstants, times

FOLDS = 3
SCALE = 0.1
"""Residuals of the logarithm beyond this count as outliers (soft L1)."""

# Where a fit starts and how far (in the logarithm) it may go at the price of one point's residual
# of SCALE: one prior for all; a version's is what its framework's versions have together.
PRIOR = RooflineConstants(
    compute_share=0.7,
    memory_share=0.75,
    exponent=1.0,  # less 1: two roofs never add up to more than their sum
    launch_s=4e-6,
    chain_s=0.5e-9,
    conversion_bytes=3.0,
)
SPREAD = np.array([0.2, 0.2, 0.7, 0.7, 0.7, 0.5])
WIDE = 2.0

DEVICES = {
    "a100": "a100-sxm-80gb",
    "a100_sxm": "a100-sxm-80gb",
    "a40": "a40",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "b60": "arc-b60",
    "gb200": "gb200",
    "gb300": "gb300",
    "h100": "h100-sxm",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
}


_NAMES = [field.name for field in fields(RooflineConstants)]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Products that were timed with one stack, on one device, in one format."""

    device: str
    format: str
    framework: str
    version: str
    m: Floats  # (p,)
    n: Floats  # (p,)
    k: Floats  # (p,)
    seconds: Floats  # (p,)
    model: Array  # (p,), the network that a shape is of, where that is known

    @property
    def fold(self) -> Array:
        """The fold of each shape."""
        shapes = zip(self.m, self.n, self.k, strict=True)
        return np.array([zlib.crc32(f"{m:g},{n:g},{k:g}".encode()) % FOLDS for m, n, k in shapes])

    def take(self, rows: Mask) -> Measured:
        """Some of the points."""
        parts = {name: getattr(self, name)[rows] for name in ("m", "n", "k", "seconds", "model")}
        return replace(self, **parts)

    def work(self) -> KernelWork:
        """What each product does."""
        recipe = RECIPES[self.format]
        operands = recipe.operand_bytes * (self.m * self.k + self.k * self.n)
        return KernelWork(
            flops=2 * self.m * self.n * self.k,
            moved_bytes=operands + recipe.result_bytes * self.m * self.n,
            chain=self.k,
            converted=self.m * self.k * recipe.converts,
        )

    def predicted(self, constants: RooflineConstants) -> Floats:
        """The seconds of each point."""
        device = device_of(self.device)
        rate = device.flops_per_s[RECIPES[self.format].rate]
        told = times(self.work(), constants, flops_per_s=rate, bytes_per_s=device.dram_bytes_per_s)
        return told.total_s

    def naive(self) -> Floats:
        """The higher of the two roofs of the sheet."""
        work, device = self.work(), device_of(self.device)
        rate = device.flops_per_s[RECIPES[self.format].rate]
        return np.maximum(work.flops / rate, work.moved_bytes / device.dram_bytes_per_s)

    def naive_errors(self) -> Floats:
        """The relative error of those two roofs at each point."""
        return np.abs(self.naive() / self.seconds - 1)


def _measured(rows: Iterable[tuple[tuple[str, str, str, str], Iterable[object]]]) -> list[Measured]:
    """One for each stack, device and format."""
    groups = defaultdict[tuple[str, str, str, str], list[Iterable[object]]](list)
    for key, point in rows:
        groups[key].append(point)
    found = []
    for (device, fmt, framework, version), points in sorted(groups.items()):
        m, n, k, seconds, model = (np.array(column) for column in zip(*points, strict=True))
        parts = {"m": m, "n": n, "k": k, "seconds": seconds}
        found.append(
            Measured(
                device=device,
                format=fmt,
                framework=framework,
                version=version,
                model=model,
                **{name: column.astype(float) for name, column in parts.items()},
            )
        )
    return found


def vidur(folder: Path) -> list[Measured]:
    """The products of transformers' linear layers; up and gate are one product."""
    rows = []
    with find_table(folder, "gemm_kernels_measured_vidur.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            tp, m, width = (
                int(row[name]) for name in ("num_tensor_parallel_workers", "num_tokens", "n_embd")
            )
            inner = int(row["n_expanded_embd"]) // tp
            heads, kv_heads = int(row["n_head"]), int(row["n_kv_head"])
            shapes = {
                "attn_pre_proj_ms": ((heads + 2 * kv_heads) * (width // heads) // tp, width),
                "attn_post_proj_ms": (width, width // tp),
                "mlp_up_proj_ms": (inner * (1 + (row["use_gated_mlp"] == "True")), width),
                "mlp_down_proj_ms": (width, inner),
            }
            key = (DEVICES[row["device"]], "fp16", "vidur", "7d47513")
            rows += [
                (key, (m, n, k, float(row[name]) / 1e3, row["model"]))
                for name, (n, k) in shapes.items()
            ]
    return _measured(rows)


def aiconfigurator(folder: Path) -> list[Measured]:
    """The products of serving stacks; one whose time is told for no rows at all is left out."""
    rows = []
    with find_table(folder, "gemm_measured.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            framework, _, version = row["framework"].partition("-")
            fmt = row["dtype"].replace("bfloat16", "bf16")
            key = (DEVICES[row["device"]], fmt, framework, version)
            m, n, k = (int(row[name]) for name in "mnk")
            if m > 0:
                rows.append((key, (m, n, k, float(row["latency_ms"]) / 1e3, "")))
    return _measured(rows)


FREE = np.full(len(_NAMES), np.inf)
POSSIBLE = np.log([MOST_SHARE, MOST_SHARE, MOST_EXPONENT - 1, *(np.inf,) * 3])
"""The largest logarithms of the constants of a fit, and of one that a device could have."""


def fitted(
    parts: list[Measured],
    prior: RooflineConstants = PRIOR,
    wide: float = WIDE,
    *,
    most: Floats = FREE,
) -> RooflineConstants:
    """The constants that all of these have together, near the prior where they tell little."""
    middle = np.minimum(np.log(astuple(prior)), most - 1e-6)

    def at(logs: Floats) -> RooflineConstants:
        constants = RooflineConstants(**dict(zip(_NAMES, np.exp(logs).tolist(), strict=True)))
        return replace(constants, exponent=1 + constants.exponent)

    def residuals(logs: Floats) -> Floats:
        off = [np.log(part.predicted(at(logs)) / part.seconds) / SCALE for part in parts]
        return np.concatenate([*off, (logs - middle) / (SPREAD * wide)])

    bounds = (np.full_like(most, -np.inf), most)
    found = least_squares(residuals, middle, loss="soft_l1", max_nfev=60, bounds=bounds)
    return at(found.x)


def limits(family: list[Measured], families: list[list[Measured]]) -> Floats:
    """The largest logarithms of the constants of a framework's versions.

    Where no version of any framework has constants that the device could have in the format (a
    cache that holds the operands from one run to the next looks like a memory of twice its rate),
    all are fitted among those that it could: otherwise nothing measured of it would be used.
    """
    alike = [each for each in families if _key(each) == _key(family)]
    free = [constants for each in alike for constants in of_versions(each)]
    return FREE if any(map(is_plausible, free)) else POSSIBLE


def _key(family: list[Measured]) -> tuple[str, str]:
    return family[0].device, family[0].format


def of_versions(parts: list[Measured], most: Floats = FREE) -> list[RooflineConstants]:
    """The constants of each version of one framework."""
    together = fitted(parts, most=most)
    if len(parts) == 1:
        return [together]
    prior = replace(together, exponent=np.maximum(together.exponent - 1, 1e-3))
    return [fitted([part], prior, wide=1.0, most=most) for part in parts]


def held_out(
    parts: list[Measured], fold_of: Callable[[Measured], Array], most: Floats = FREE
) -> list[Floats]:
    """The relative error of each point, by constants that saw no point of its fold."""
    off = [np.full(len(part.m), np.nan) for part in parts]
    for fold in np.unique(np.concatenate([fold_of(part) for part in parts])):
        seen = [part.take(fold_of(part) != fold) for part in parts]
        for part, errors, constants in zip(parts, off, of_versions(seen, most), strict=True):
            rows = fold_of(part) == fold
            errors[rows] = np.abs(part.predicted(constants) / part.seconds - 1)[rows]
    return off


def calibration(part: Measured, constants: RooflineConstants, errors: Floats) -> dict[str, object]:
    """One row of the table of constants."""
    told = dict(zip(_NAMES, astuple(constants), strict=True))
    ranges = {
        f"{end}_{name}": f"{pick(getattr(part, name)):g}"
        for name in "mnk"
        for end, pick in (("least", np.min), ("most", np.max))
    }
    return {
        **{name: getattr(part, name) for name in ("device", "format", "framework", "version")},
        "points": len(part.m),
        **{name: f"{value:.4g}" for name, value in told.items()},
        "heldout_mape": f"{errors.mean():.3f}",
        "heldout_median": f"{np.median(errors):.3f}",
        "naive_mape": f"{part.naive_errors().mean():.3f}",
        **ranges,
    }


def families(parts: list[Measured]) -> list[list[Measured]]:
    """The versions of one framework, on one device in one format, together."""
    groups = defaultdict[tuple[str, str, str], list[Measured]](list)
    for part in parts:
        groups[part.device, part.format, part.framework].append(part)
    return list(groups.values())


def main() -> None:
    """Fit, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tell = csv.writer(sys.stdout).writerow
    tell(("what", "device", "format", "points", "naive_mape", "mape", "median"))
    kernels, served = families(vidur(options.data)), families(aiconfigurator(options.data))
    for family in kernels:
        whole = held_out(family, lambda part: part.model)
        tell(("vidur, whole models held out", *_figures(family, whole)))
    rows, judged = list[dict[str, object]](), list[tuple[Measured, Floats]]()
    for family in kernels + served:
        most = limits(family, kernels + served)
        errors = held_out(family, lambda part: part.fold, most)
        tell((f"{family[0].framework}, shapes held out", *_figures(family, errors)))
        fits = zip(family, of_versions(family, most), errors, strict=True)
        rows += [calibration(*each) for each in fits]
        judged += list(zip(family, errors, strict=True)) if family in served else []
    for number_format in sorted({part.format for part, _ in judged}):
        alike = [each for each in judged if each[0].format == number_format]
        tell(("serving stacks, shapes held out", *_figures(*zip(*alike, strict=True))))
    tell(("serving stacks, shapes held out", *_figures(*zip(*judged, strict=True))))
    if options.write:
        _write(options.write, rows)


def _figures(parts: Sequence[Measured], errors: Sequence[Floats]) -> tuple[object, ...]:
    """Device and format where all have the same, the points, and the errors."""
    off = np.concatenate(errors)
    naive = np.concatenate([part.naive_errors() for part in parts])
    devices, formats = ({getattr(part, name) for part in parts} for name in ("device", "format"))
    return (
        devices.pop() if len(devices) == 1 else "all",
        formats.pop() if len(formats) == 1 else "all",
        len(off),
        *(f"{figure:.3f}" for figure in (naive.mean(), off.mean(), np.median(off))),
    )


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=[*COLUMNS, *RANGES], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
