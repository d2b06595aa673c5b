"""Calibration of ``clusters.serving`` on a user's measured services."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.errors import SpecError
from dse.protocols import CalibrationResult
from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.clusters.measured_rows import MeasuredRow, RowFormat, read_measured_rows
from dse_evaluators.clusters.scale_fit import describe_file, fit_scales
from dse_evaluators.clusters.serving.engine import PLAIN
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.serving.serving_plan import READINGS, SPELLINGS
from dse_evaluators.workloads.model_source import transformer_of

FORM = RowFormat(
    time="tpot",
    options={"isl": None, "osl": None},
    inputs=READINGS,
    required=("tp", "batch"),
    example="model,tp,batch,isl,osl,weight_format,tpot_ms",
)


def calibrate_serving_rows(path: Path, like: str) -> CalibrationResult:
    """Fit the constants of a device to measured times per output token.

    Args:
        path: CSV file with the columns model, tp, batch, isl, osl and tpot_ms, and other inputs of
            ``clusters.serving``; or results of ``vllm bench serve --save-result``.
        like: name of the device that was measured.

    Raises:
        SpecError: a row is invalid, or the rows do not determine the constants.
    """
    device = device_of(like)
    rows = read_measured_rows(path, FORM)
    _check_rows(rows, device)
    formats = {PLAIN, *(SPELLINGS[row.design["weight_format"]] for row in rows)}
    base = {name: calibration_on(device, name) for name in sorted(formats)}
    found = fit_scales(rows, device, base, predict_tpot, "tpot")
    contents = {
        "like": device.name,
        "measurements": describe_file(path, rows),
        "calibrations": found.calibrations,
    }
    return CalibrationResult(contents=contents, errors=found.errors, refused=(), notes=found.notes)


def predict_tpot(device: Device, rows: Sequence[MeasuredRow]) -> Floats:
    """Return the modelled seconds per output token of n services, (n,).

    Args:
        device: the device, whose constants are those of its ``calibrations``.
        rows: the services.
    """
    seconds = np.zeros(len(rows))
    option: Mapping[str, Any] | str = device.name
    if device.calibrations:
        option = {"like": device.name, "calibrations": [dict(one) for one in device.calibrations]}
    for (model, isl, osl), places in _group(rows).items():
        served = Serving(model=model, device=option, isl=isl, osl=osl, waiting=True)
        batch = Batch.of([rows[place].design for place in places])
        seconds[places] = served.evaluate(batch).columns["tpot"]
    return seconds


def _group(rows: Sequence[MeasuredRow]) -> Mapping[tuple[str, int, int], list[int]]:
    groups = defaultdict[tuple[str, int, int], list[int]](list)
    for place, row in enumerate(rows):
        groups[row.model, row.options["isl"], row.options["osl"]].append(place)
    return groups


def _check_rows(rows: Sequence[MeasuredRow], device: Device) -> None:
    """Check that each row can exist.

    Raises:
        SpecError: a model is unknown, or a service is infeasible on the device.
    """
    for model in dict.fromkeys(row.model for row in rows):
        try:
            transformer_of(model)
        except SpecError as error:
            raise error.at(next(row.where for row in rows if row.model == model)) from error
    for (model, isl, osl), places in _group(rows).items():
        served = Serving(model=model, device=device.name, isl=isl, osl=osl, waiting=True)
        failures = served.evaluate(Batch.of([rows[place].design for place in places])).failures
        for at, failure in sorted(failures.items()):
            hint = f"check the row, and that {device.name} was measured"
            problem = f"the service cannot exist on {device.name}: {failure.reason}"
            raise SpecError(problem, where=rows[places[at]].where, hint=hint)
