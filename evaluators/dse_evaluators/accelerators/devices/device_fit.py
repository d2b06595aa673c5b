"""Calibration of a user's device: a fit to measured GEMMs, or what would have to be measured."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dse.core.values import Array, Floats, Mask
from dse.errors import SpecError
from dse.protocols import CalibrationError, CalibrationResult
from dse_evaluators.accelerators.devices.calibrations import is_plausible
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.measured_gemms import read_measured_gemms
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import RooflineConstants
from dse_evaluators.accelerators.devices.roofline_fit import (
    FOLDS,
    PRIOR,
    MeasuredGemms,
    calibration_row,
    choose_bounds,
    compute_held_out_errors,
    fit_versions,
    group_versions,
)

Bound = Literal["compute", "memory", "launch"]

LEAST_SHAPES = 20
"""Smallest number of distinct shapes of a format: four for each constant but the conversion."""

LEAST_BOUND = 3
"""Smallest number of shapes that a bound dominates, one for each fold."""

LEAST_OF_STACK = 5
"""Smallest number of distinct shapes of a stack, whose prior is the fit to all its versions."""

DOMINANT = 2.0
"""Ratio of two bounds above which the larger one dominates."""


def calibrate_device(path: Path, device: Device) -> CalibrationResult:
    """Fit the roofline constants of a device to the measured GEMMs of a CSV file.

    A format whose GEMMs cannot determine the constants is left out, with what to measure next; so
    is a stack whose fit is implausible, or no better than the data sheet on held-out shapes.

    Args:
        path: CSV file of measured GEMMs.
        device: data sheet of the device.

    Returns:
        The contents of a device file, errors on held-out shapes and models, and what was left out.

    Raises:
        SpecError: the file is invalid, or no format can be fitted.
    """
    parts = read_measured_gemms(path, device)
    families = group_versions(parts)
    by_format = defaultdict[str, list[list[MeasuredGemms]]](list)
    for family in families:
        by_format[family[0].format].append(family)
    rows, errors, refused = list[Mapping[str, Any]](), list[CalibrationError](), list[str]()
    notes = list[str]()
    for number_format, some in by_format.items():
        every = [part for family in some for part in family]
        lacks = list_missing(every)
        refused += [f"{number_format}: {text}" for text in lacks]
        notes += [f"{number_format}: {text}" for text in list_assumed(every) if not lacks]
        for family in some if not lacks else ():
            found = _fit_family(family, some)
            rows += found[0]
            errors += found[1]
            refused += found[2]
    if not rows:
        raise SpecError(
            f"{path.name} does not determine the constants of {device.name}: {'; '.join(refused)}",
            hint="measure these too, each with the same stack",
        )
    contents = {
        "like": device.name,
        "measurements": {
            "file": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "rows": sum(len(part.m) for part in parts),
        },
        "calibrations": rows,
    }
    return CalibrationResult(
        contents=contents, errors=tuple(errors), refused=tuple(refused), notes=tuple(notes)
    )


def list_missing(parts: Sequence[MeasuredGemms]) -> list[str]:
    """List the GEMMs to measure so that all roofline constants of a format can be fitted.

    Args:
        parts: measured GEMMs of one device in one format, of all stacks.
    """
    count = _count_shapes(parts, [part.m > 0 for part in parts])
    missing = []
    if count < LEAST_SHAPES:
        missing.append(f"{count} distinct shapes, of at least {LEAST_SHAPES}")
    for bound in ("compute", "memory"):
        found = count_bound(parts, bound)
        if found < LEAST_BOUND:
            missing.append(
                f"{found} shapes bound by {bound}, of at least {LEAST_BOUND}: measure "
                f"{_examples(parts[0])[bound]}"
            )
    return missing


def list_assumed(parts: Sequence[MeasuredGemms]) -> list[str]:
    """List the roofline constants that measured GEMMs hardly determine, and what to measure.

    Such constants stay near their prior. Without short GEMMs, the launch time is such a constant;
    it hardly affects the measured sizes, and for smaller sizes evaluators return ``extrapolated``.

    Args:
        parts: measured GEMMs of one device in one format, of all stacks.
    """
    found = count_bound(parts, "launch")
    if found >= LEAST_BOUND:
        return []
    example = _examples(parts[0])["launch"]
    return [f"{found} shapes bound by launch, whose time stays near its prior: measure {example}"]


def count_bound(parts: Sequence[MeasuredGemms], bound: Bound) -> int:
    """Return the number of distinct shapes that are compute or memory bound, by the data sheet."""
    masks = []
    for part in parts:
        compute_s, memory_s = part.sheet_roofs()
        long = np.maximum(compute_s, memory_s) > PRIOR.launch_s
        dominant = {
            "compute": (compute_s > DOMINANT * memory_s) & long,
            "memory": (memory_s > DOMINANT * compute_s) & long,
            "launch": ~long,
        }
        masks.append(dominant[bound])
    return _count_shapes(parts, masks)


def _count_shapes(parts: Sequence[MeasuredGemms], masks: Sequence[Mask]) -> int:
    pairs = zip(parts, masks, strict=True)
    return len({shape for part, mask in pairs for shape in _shapes(part.take(mask))})


def _shapes(part: MeasuredGemms) -> list[tuple[float, ...]]:
    return list(zip(part.m.tolist(), part.n.tolist(), part.k.tolist(), strict=True))


def _examples(part: MeasuredGemms) -> Mapping[str, str]:
    """Return, for each bound, shapes of which it takes most of the time on the device."""
    recipe, device = RECIPES[part.format], part.sheet
    rate, bandwidth = device.flops_per_s[recipe.rate], device.dram_bytes_per_s
    moved = 2 * recipe.operand_bytes + recipe.result_bytes
    least = max(DOMINANT * moved * rate / bandwidth / 2, (PRIOR.launch_s * rate / 2) ** (1 / 3))
    wide = (PRIOR.launch_s * bandwidth / recipe.operand_bytes) ** 0.5
    return {
        "compute": f"m, n and k from {_power_of_two(least)}",
        "memory": f"m up to 16, n and k from {_power_of_two(wide)}",
        "launch": "m up to 16, n and k up to 256",
    }


def _power_of_two(least: Floats | float) -> int:
    return int(2 ** np.ceil(np.log2(least)))


def _fit_family(
    family: list[MeasuredGemms], families: list[list[MeasuredGemms]]
) -> tuple[list[Mapping[str, Any]], list[CalibrationError], list[str]]:
    """Return rows of constants, held-out errors, and the stacks that were left out, with why."""
    most = choose_bounds(family, families)
    by_shape = compute_held_out_errors(family, _split_shapes(family), most)
    rows, errors, refused = list[Mapping[str, Any]](), list[CalibrationError](), list[str]()
    kept = list[MeasuredGemms]()
    for part, constants, off in zip(family, fit_versions(family, most), by_shape, strict=True):
        reason = _unusable(part, constants, off)
        if reason:
            refused.append(f"{_label(part)}: {reason}")
            continue
        kept.append(part)
        errors.append(_error(part, "shape", off))
        rows.append(_plain(calibration_row(part, constants, off)))
    if kept and len({name for part in family for name in part.model} - {""}) >= FOLDS:
        by_model = compute_held_out_errors(family, attrgetter("model"), most)
        named = zip(family, by_model, strict=True)
        errors += [_error(part, "model", off) for part, off in named if part in kept]
    return rows, errors, refused


def _split_shapes(family: Sequence[MeasuredGemms]) -> Callable[[MeasuredGemms], Array]:
    """Return the function that gives the fold of each GEMM; folds have equal numbers of shapes.

    Folds by a hash alone, as those of the shipped tables, can be empty where shapes are few.
    """
    shapes = {shape for part in family for shape in _shapes(part)}
    ranked = sorted(shapes, key=lambda shape: hashlib.sha256(repr(shape).encode()).digest())
    fold = {shape: place % FOLDS for place, shape in enumerate(ranked)}
    return lambda part: np.array([fold[shape] for shape in _shapes(part)])


def _unusable(part: MeasuredGemms, constants: RooflineConstants, off: Floats) -> str:
    count = len(set(_shapes(part)))
    if count < LEAST_OF_STACK:
        return f"{count} distinct shapes, of at least {LEAST_OF_STACK}"
    if not is_plausible(constants):
        return "the fitted constants are better than the data sheet; are operands in a cache?"
    ours, naive = off.mean(), part.naive_errors().mean()
    if ours >= naive:
        return f"held-out error of {ours:.0%}, {naive:.0%} by the data sheet alone"
    return ""


def _error(part: MeasuredGemms, split: str, off: Floats) -> CalibrationError:
    return CalibrationError(
        group=_label(part),
        split=split,
        points=len(off),
        mean=float(off.mean()),
        median=float(np.median(off)),
        naive_mean=float(part.naive_errors().mean()),
    )


def _label(part: MeasuredGemms) -> str:
    return " ".join(filter(None, (part.format, part.framework, part.version)))


def _plain(row: Mapping[str, object]) -> Mapping[str, Any]:
    """Return a row with numbers in place of the texts of a CSV file, without the device."""
    texts = ("format", "framework", "version")
    return {
        name: value if name in texts or isinstance(value, int) else float(str(value))
        for name, value in row.items()
        if name != "device"
    }
