"""Error of the time of matrix products on a device, on products that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from dse.protocols import ModelError
from dse_evaluators.accelerators.devices.calibrations import calibration_on, has_calibration
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.error_table import ErrorTable, extrapolate


def product_errors(
    device: Device, number_format: str, stack: str, outside: Sequence[bool]
) -> list[ModelError]:
    """Return the errors of the modelled times of n matrix products on one device in one format.

    With a stack, or with constants fitted to the user's measurements, these are errors on held-out
    shapes. Without a stack the constants are medians over stacks, and the errors are larger.

    Args:
        device: the device.
        number_format: the number format.
        stack: the software stack; empty for the medians over all.
        outside: whether a product has sizes or a tile that were not measured, (n,).
    """
    calibration = calibration_on(device, number_format, stack)
    shares = f"{device.name} {number_format} {stack}"
    if not calibration.own:
        error = ModelError(
            "data sheet only", group=f"{device.name} was not measured in {number_format}"
        )
    elif stack or has_calibration(device, number_format):
        group = f"{device.name}, {number_format}, {calibration.stack}: {calibration.points} points"
        error = ModelError("held out", calibration.heldout_mape, math.nan, group)
    else:
        error = _table().nearest("product", device.name, number_format)
    return [extrapolate(error._replace(shares=shares), bool(one)) for one in outside]


@cache
def _table() -> ErrorTable:
    return ErrorTable.read(Path(__file__).with_name("model_errors.csv"))
