"""Roofline constants measured on devices, by number format and software stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import RooflineConstants
from dse_evaluators.csv_files.csv_records import read_rows, record_of

COLUMNS = (
    *("device", "format", "framework", "version", "points"),
    *(field.name for field in fields(RooflineConstants)),
    *("heldout_mape", "heldout_median", "naive_mape"),
)
"""Columns of calibrations.csv; those of RANGES follow."""

RANGES = ("least_m", "most_m", "least_n", "most_n", "least_k", "most_k")
"""Smallest and largest sizes of the GEMMs, m x k by k x n, to which constants were fitted."""

# A larger share of the peak, or a larger exponent, is not a property of a device: there were too
# few points, or another bound applied (vLLM 0.24 spends 0.2 ms on the host for each fp8_block).
MOST_SHARE, MOST_EXPONENT = 1.05, 10.0


_MOST = {
    "compute_share": MOST_SHARE,
    "memory_share": MOST_SHARE,
    "exponent": MOST_EXPONENT,
    "launch_s": 1.0,
    "chain_s": 1.0,
}
"""Largest values that the constants of a user's device can have."""


def is_plausible(constants: RooflineConstants) -> bool:
    """Return whether fitted roofline constants are physically plausible."""
    share = np.maximum(constants.compute_share, constants.memory_share)
    return bool(share <= MOST_SHARE and np.max(constants.exponent) <= MOST_EXPONENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCalibration:
    """Fitted roofline constants of a device in one number format, with software stack and errors.

    Errors are relative, on GEMM shapes held out from the fit. If the constants are medians over
    several software stacks, the errors are the means over these.
    """

    constants: RooflineConstants
    stack: str
    """Stack such as ``vllm-0.24.0``, or ``2 stacks`` for a median over two."""
    points: int
    heldout_mape: float
    heldout_median: float
    ranges: tuple[float, ...]
    """Range of GEMM sizes in the fit, ordered as RANGES."""
    own: bool = True
    """False if this device was not measured in this format: constants are medians over others."""


@cache
def calibration_of(device: str, number_format: str, stack: str = "") -> DeviceCalibration:
    """Return the roofline constants of a device for a number format of ``RECIPES``.

    Args:
        device: a name of ``DEVICES``, or of a device without measurements, for which medians over
            devices are returned.
        number_format: the number format; if only one of bf16 and fp16 was measured, it serves for
            both.
        stack: a framework (``vllm``), one version of it (``vllm-0.24.0``), or empty for any.

    Raises:
        SpecError: the device was measured in that format, but not with that stack.
    """
    for alike in (number_format, _SIBLINGS.get(number_format, number_format)):
        rows = [row for row in _plausible() if (row["device"], row["format"]) == (device, alike)]
        if rows:
            return _of_stack(rows, stack)
    rows = [row for row in _plausible() if row["format"] == _measured_like(number_format)]
    return _medians(rows, own=False)


def calibration_on(device: Device, number_format: str, stack: str = "") -> DeviceCalibration:
    """Return the roofline constants of a device, which may be the user's own.

    In formats that the user has measured, the constants are fitted to these measurements; in other
    formats, the constants are taken from the device named by ``like``.

    Args:
        device: a device of the catalogue or of the user.
        number_format: the number format, as for :func:`calibration_of`.
        stack: the software stack, as for :func:`calibration_of`.

    Raises:
        SpecError: the device was measured in that format, but not with that stack.
    """
    rows = _own_rows(device, number_format)
    return _of_stack(rows, stack) if rows else calibration_of(device.name, number_format, stack)


def has_calibration(device: Device, number_format: str) -> bool:
    """Return whether a device has constants fitted to the user's measurements in a format."""
    return bool(_own_rows(device, number_format))


def _own_rows(device: Device, number_format: str) -> Sequence[Mapping[str, Any]]:
    formats = (number_format, _SIBLINGS.get(number_format, number_format))
    found = ([row for row in device.calibrations if row["format"] == one] for one in formats)
    return next(filter(None, found), [])


def check_calibration(row: object) -> Mapping[str, Any]:
    """Return a row of fitted constants of a user's device, as ``calibrations.csv`` has them.

    Raises:
        SpecError: a key is missing or unknown, or a number is out of range.
    """
    if not isinstance(row, Mapping):
        raise SpecError(f"a calibration cannot be {row!r}", hint="as dse calibrate writes it")
    texts = ("format", "framework", "version")
    keys = (*texts, *(name for name in (*COLUMNS, *RANGES) if name not in (*texts, "device")))
    odd = next((key for key in row if key not in keys), None)
    if odd is not None:
        raise SpecError(f"a calibration has no key {odd!r}", hint=nearest(str(odd), keys))
    for key in keys:
        if key not in row:
            raise SpecError(f"a calibration has no key {key!r}", hint="as dse calibrate writes it")
        value, most = row[key], _MOST.get(key, np.inf)
        if key in texts:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            hint = f"a number above 0, at most {most:g}" if most < np.inf else "a number above 0"
            raise SpecError(f"{key} of a calibration is {value!r}", hint=hint)
    if row["format"] not in RECIPES:
        hint = nearest(str(row["format"]), RECIPES)
        raise SpecError(f"format of a calibration cannot be {row['format']!r}", hint=hint)
    return {**row, **{key: str(row[key]) for key in texts}}


def _of_stack(rows: Sequence[Mapping[str, Any]], stack: str) -> DeviceCalibration:
    kept = [row for row in rows if stack in ("", row["framework"], _stack(row))]
    if not kept:
        known = {row["framework"] for row in rows} | {_stack(row) for row in rows}
        raise SpecError(
            f"{rows[0].get('device', 'the device')} was not measured in {rows[0]['format']} with "
            f"{stack!r}",
            hint=nearest(stack, known),
        )
    return _medians(kept, own=True)


def _medians(rows: Sequence[Mapping[str, Any]], *, own: bool) -> DeviceCalibration:
    def column(name: str) -> list[float]:
        return [float(row[name]) for row in rows]

    constants = {
        field.name: float(np.median(column(field.name))) for field in fields(RooflineConstants)
    }
    ends = (min if name.startswith("least") else max for name in RANGES)
    return DeviceCalibration(
        constants=RooflineConstants(**constants),
        stack=_stack(rows[0]) if len(rows) == 1 else f"{len(rows)} stacks",
        points=sum(int(row["points"]) for row in rows),
        heldout_mape=float(np.mean(column("heldout_mape"))),
        heldout_median=float(np.mean(column("heldout_median"))),
        ranges=tuple(end(column(name)) for end, name in zip(ends, RANGES, strict=True)),
        own=own,
    )


def _stack(row: Mapping[str, Any]) -> str:
    return "-".join(filter(None, (row["framework"], row["version"])))


_SIBLINGS = {"bf16": "fp16", "fp16": "bf16"}

_NARROW = {"int8": "fp8"}  # int8 was measured on no device


def _measured_like(number_format: str) -> str:
    """Return the number format whose medians over devices are used for an unmeasured format."""
    wide = RECIPES[number_format].operand_bytes >= 2
    return "bf16" if wide else _NARROW.get(number_format, number_format)


@cache
def _plausible() -> tuple[Mapping[str, str], ...]:
    rows = read_rows(Path(__file__).with_name("calibrations.csv"))
    return tuple(row for row in rows if _is_usable(row))


def _is_usable(row: Mapping[str, str]) -> bool:
    """Return whether fitted constants are plausible and beat the data sheet's roofline."""
    constants = record_of(row, RooflineConstants)
    return is_plausible(constants) and float(row["heldout_mape"]) < float(row["naive_mape"])
