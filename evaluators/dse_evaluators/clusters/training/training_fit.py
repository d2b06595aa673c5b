"""Calibration of ``clusters.training`` on a user's measured training steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.errors import SpecError
from dse.protocols import CalibrationResult
from dse_evaluators.accelerators.devices.calibrations import DeviceCalibration, calibration_on
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.measured_rows import MeasuredRow, RowFormat, read_measured_rows
from dse_evaluators.clusters.scale_fit import describe_file, fit_scales
from dse_evaluators.clusters.systems import system_of
from dse_evaluators.clusters.training.plan_inputs import READINGS
from dse_evaluators.clusters.training.training import Training

FORM = RowFormat(
    time="step_time",
    options={"sequence": 4096},
    inputs=READINGS,
    required=("tp", "pp", "dp", "microbatch", "global_batch"),
    example="model,sequence,tp,pp,dp,microbatch,global_batch,number_format,step_time_s",
)


def calibrate_training_rows(path: Path, like: str) -> CalibrationResult:
    """Fit the constants of a system's device to the times of measured training steps.

    Args:
        path: CSV file with the columns model, tp, pp, dp, microbatch, global_batch and step_time_s,
            and other inputs of ``clusters.training``.
        like: name of the system that was measured.

    Raises:
        SpecError: a row is invalid, or the rows do not determine the constants.
    """
    system = system_of(like)
    device = device_of(system.device)
    rows = read_measured_rows(path, FORM)
    _check_rows(rows, like)
    formats = dict.fromkeys(str(row.design["number_format"]) for row in rows)
    base = {name: _calibration(device, name) for name in formats}
    found = fit_scales(rows, device, base, partial(predict_step, like), "step time")
    contents = {
        "like": system.name,
        "device": {
            "like": device.name,
            "measurements": describe_file(path, rows),
            "calibrations": found.calibrations,
        },
    }
    return CalibrationResult(contents=contents, errors=found.errors, refused=(), notes=found.notes)


def predict_step(system: str, device: Device, rows: Sequence[MeasuredRow]) -> Floats:
    """Return the modelled seconds of n training steps, (n,).

    Args:
        system: name of the system.
        device: device of the system; its ``calibrations`` replace the shipped constants.
        rows: the steps.
    """
    option: Mapping[str, Any] | str = system
    if device.calibrations:
        own = {"like": device.name, "calibrations": [dict(one) for one in device.calibrations]}
        option = {"like": system, "device": own}
    seconds = np.zeros(len(rows))
    for (model, sequence), places in _group(rows).items():
        trained = Training(model=model, system=option, sequence=sequence, reserve=0.0)
        batch = Batch.of([rows[place].design for place in places])
        seconds[places] = trained.evaluate(batch).columns["step_time"]
    return seconds


def _calibration(device: Device, number_format: str) -> DeviceCalibration:
    """Return the constants of training kernels in a format, in the form of a device file."""
    chip = chips_of(device)[number_format]
    return replace(calibration_on(device, number_format), constants=chip.constants)


def _group(rows: Sequence[MeasuredRow]) -> Mapping[tuple[str, int], list[int]]:
    groups = defaultdict[tuple[str, int], list[int]](list)
    for place, row in enumerate(rows):
        groups[row.model, row.options["sequence"]].append(place)
    return groups


def _check_rows(rows: Sequence[MeasuredRow], system: str) -> None:
    """Check that each row can exist; memory is not checked, which depends on the software.

    Raises:
        SpecError: a model is unknown, the device lacks a format, or a plan does not divide evenly.
    """
    device = system_of(system).device
    known = chips_of(device)
    for row in rows:
        number_format = str(row.design["number_format"])
        if number_format not in known:
            problem = f"{device} has no rate in {number_format}"
            raise SpecError(problem, where=row.where, hint=", ".join(known))
    for (model, sequence), places in _group(rows).items():
        try:
            trained = Training(model=model, system=system, sequence=sequence, reserve=0.0)
        except SpecError as error:
            raise error.at(rows[places[0]].where) from error
        failures = trained.evaluate(Batch.of([rows[place].design for place in places])).failures
        for at, failure in sorted(failures.items()):
            if "of memory" not in failure.reason:
                problem = f"the plan cannot exist on {system}: {failure.reason}"
                hint = "check the row, and the system"
                raise SpecError(problem, where=rows[places[at]].where, hint=hint)
