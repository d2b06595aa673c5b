"""Calibrate a device on a third of its open GEMMs, and print the error on the other two thirds.

    python benchmarks/calibrate_third.py [--device h100-sxm] [--kernels] [--data ../shared/data]

The GEMMs are those of serving stacks, few for each of many versions, or with ``--kernels`` those of
Vidur, more than a thousand of one stack.

No shape is on both sides. Three splits are made, so that each third is fitted once; what is printed
of each format is over all three, for the stacks that the calibration kept:

- third: constants that ``dse calibrate devices`` fits to a third, on the other two thirds;
- two thirds: constants fitted to two thirds of the same split, on the remaining third;
- shipped: the constants of ``calibrations.csv`` for the same stack (medians over stacks where it
  has none) on the same GEMMs as the first, to all of which they were fitted.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gemm_roofline import aiconfigurator, vidur
from reference_tables import DATA

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_of, calibration_on
from dse_evaluators.accelerators.devices.device_fit import calibrate_device
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.platforms import devices_of
from dse_evaluators.accelerators.devices.roofline_fit import MeasuredGemms

THIRDS = 3
SIDES = ("third", "two thirds", "shipped")


def split(parts: list[MeasuredGemms]) -> list[Ints]:
    """Return the third of each GEMM of each part; one of a shape in all parts."""
    shapes = {shape for part in parts for shape in zip(part.m, part.n, part.k, strict=True)}
    ranked = sorted(
        shapes, key=lambda s: hashlib.sha256("{:g} {:g} {:g}".format(*s).encode()).digest()
    )
    third = {shape: place % THIRDS for place, shape in enumerate(ranked)}
    return [
        np.array([third[shape] for shape in zip(part.m, part.n, part.k, strict=True)])
        for part in parts
    ]


def calibrate(parts: list[MeasuredGemms], sheet: Device) -> Device:
    """Return the device of the file that ``dse calibrate devices`` writes for these GEMMs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "products.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("m", "n", "k", "dtype", "time_s", "framework", "version"))
            for part in parts:
                for m, n, k, seconds in zip(part.m, part.n, part.k, part.seconds, strict=True):
                    shape = (int(m), int(n), int(k))
                    rows.writerow((*shape, part.format, seconds, part.framework, part.version))
        contents = calibrate_device(path, sheet).contents
    return devices_of({"own": dict(contents)})["own"]


def relative_errors(part: MeasuredGemms, device: Device) -> Floats:
    """Return the relative errors of a device's constants for the stack of a part."""
    stack = f"{part.framework}-{part.version}"
    constants = calibration_on(device, part.format, stack).constants
    return np.abs(part.predict(constants) / part.seconds - 1)


def shipped_errors(part: MeasuredGemms) -> Floats:
    """Return the relative errors of the shipped constants, of the stack where it has some."""
    try:
        found = calibration_of(part.device, part.format, f"{part.framework}-{part.version}")
    except SpecError:
        found = calibration_of(part.device, part.format)
    return np.abs(part.predict(found.constants) / part.seconds - 1)


def judge(parts: list[MeasuredGemms]) -> Mapping[tuple[str, str], list[Floats]]:
    """Return the relative errors by format and side, over three splits of one device's GEMMs."""
    thirds, sheet = split(parts), parts[0].sheet
    errors = defaultdict[tuple[str, str], list[Floats]](list)
    for place in range(THIRDS):
        inside = [part.take(third == place) for part, third in zip(parts, thirds, strict=True)]
        outside = [part.take(third != place) for part, third in zip(parts, thirds, strict=True)]
        small, large = calibrate(inside, sheet), calibrate(outside, sheet)
        kept = stacks_of(small) & stacks_of(large)
        for seen, rest in zip(inside, outside, strict=True):
            if (rest.format, rest.framework, rest.version) in kept:
                errors[rest.format, "third"].append(relative_errors(rest, small))
                errors[rest.format, "two thirds"].append(relative_errors(seen, large))
                errors[rest.format, "shipped"].append(shipped_errors(rest))
    return errors


def stacks_of(device: Device) -> set[tuple[str, str, str]]:
    """Return the formats and stacks with constants of a calibrated device."""
    return {(row["format"], row["framework"], row["version"]) for row in device.calibrations}


def main() -> None:
    """Fit, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--device", default="h100-sxm")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    measured = vidur if options.kernels else aiconfigurator
    parts = [part for part in measured(options.data) if part.device == options.device]
    errors = judge(parts)
    tell = csv.writer(sys.stdout).writerow
    tell(("format", "constants", "points", "mape", "median"))
    for number_format in (*sorted({key for key, _ in errors}), "all"):
        for side in SIDES:
            wanted = [key for key in errors if key[1] == side and number_format in (key[0], "all")]
            off = np.concatenate([one for key in wanted for one in errors[key]])
            tell((number_format, side, len(off), f"{off.mean():.3f}", f"{np.median(off):.3f}"))


if __name__ == "__main__":
    main()
