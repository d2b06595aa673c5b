"""Fits the roofline of ``accelerators.gpu`` to measured products, and tells its error on others.

    python benchmarks/gemm_roofline.py [--data ../shared/data] [--write CALIBRATIONS.csv]

Shapes are in three folds: what is told of a shape comes from constants that were fitted without it
(in any version of any framework). ``--write`` writes the constants fitted to all shapes.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from reference_tables import DATA, find_table

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.calibrations import COLUMNS, RANGES
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.roofline_fit import (
    MeasuredGemms,
    calibration_row,
    choose_bounds,
    compute_held_out_errors,
    fit_versions,
    group_versions,
)

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


def _measured(
    rows: Iterable[tuple[tuple[str, str, str, str], Iterable[object]]],
) -> list[MeasuredGemms]:
    """One for each stack, device and format."""
    groups = defaultdict[tuple[str, str, str, str], list[Iterable[object]]](list)
    for key, point in rows:
        groups[key].append(point)
    found = []
    for (device, fmt, framework, version), points in sorted(groups.items()):
        m, n, k, seconds, model = (np.array(column) for column in zip(*points, strict=True))
        parts = {"m": m, "n": n, "k": k, "seconds": seconds}
        found.append(
            MeasuredGemms(
                sheet=device_of(device),
                format=fmt,
                framework=framework,
                version=version,
                model=model,
                **{name: column.astype(float) for name, column in parts.items()},
            )
        )
    return found


def vidur(folder: Path) -> list[MeasuredGemms]:
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


def aiconfigurator(folder: Path) -> list[MeasuredGemms]:
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


def main() -> None:
    """Fit, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tell = csv.writer(sys.stdout).writerow
    tell(("what", "device", "format", "points", "naive_mape", "mape", "median"))
    kernels, served = (
        group_versions(vidur(options.data)),
        group_versions(aiconfigurator(options.data)),
    )
    for family in kernels:
        whole = compute_held_out_errors(family, lambda part: part.model)
        tell(("vidur, whole models held out", *_figures(family, whole)))
    rows, judged = list[dict[str, object]](), list[tuple[MeasuredGemms, Floats]]()
    for family in kernels + served:
        most = choose_bounds(family, kernels + served)
        errors = compute_held_out_errors(family, lambda part: part.fold, most)
        tell((f"{family[0].framework}, shapes held out", *_figures(family, errors)))
        fits = zip(family, fit_versions(family, most), errors, strict=True)
        rows += [calibration_row(*each) for each in fits]
        judged += list(zip(family, errors, strict=True)) if family in served else []
    for number_format in sorted({part.format for part, _ in judged}):
        alike = [each for each in judged if each[0].format == number_format]
        tell(("serving stacks, shapes held out", *_figures(*zip(*alike, strict=True))))
    tell(("serving stacks, shapes held out", *_figures(*zip(*judged, strict=True))))
    if options.write:
        _write(options.write, rows)


def _figures(parts: Sequence[MeasuredGemms], errors: Sequence[Floats]) -> tuple[object, ...]:
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
