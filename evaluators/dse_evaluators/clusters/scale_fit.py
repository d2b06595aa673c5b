"""Fit of a device's roofline constants to measured services or training steps, as three scales."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse.protocols import CalibrationError
from dse_evaluators.accelerators.devices.calibrations import (
    MOST_EXPONENT,
    MOST_SHARE,
    RANGES,
    DeviceCalibration,
)
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.roofline import RooflineConstants
from dse_evaluators.accelerators.devices.roofline_fit import FOLDS, SCALE, SPREAD, WIDE
from dse_evaluators.clusters.measured_rows import MeasuredRow

SCALED = ("compute_share", "memory_share", "launch_s")
"""Constants of all formats that are multiplied, each by one factor."""

LEAST_ROWS = 12
"""Smallest number of different rows: four for each factor."""

LEAST_EFFECT = 0.05
"""Smallest change of log times over the change of a constant's logarithm, other constants free."""

WRONG_UNIT = 30.0
"""Median ratio of measured and modelled times from which on the unit must be wrong."""

_ADVICE = {
    "compute_share": "rows with long prompts or large batches, which compute limits",
    "memory_share": "rows of a large model at a small batch, which reading weights limits",
    "launch_s": "rows of a small model at batch 1, which launches limit",
}
_PRIOR_SPREAD = np.array([SPREAD[0], SPREAD[1], SPREAD[3]])
_TINY = 1e-15

Predict = Callable[[Device, Sequence[MeasuredRow]], Floats]
"""Function of a device and n rows that returns their modelled seconds, (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFit:
    """Device whose constants were fitted, with errors by shape and by model.

    Args:
        calibrations: constants by number format, in the form of a device's YAML file.
        errors: errors on held-out rows, with the error of the shipped constants as naive error.
        notes: constants that the rows do not determine, and what to measure.
    """

    calibrations: list[Mapping[str, Any]]
    errors: tuple[CalibrationError, ...]
    notes: tuple[str, ...]


def fit_scales(
    rows: Sequence[MeasuredRow],
    device: Device,
    base: Mapping[str, DeviceCalibration],
    predict: Predict,
    group: str,
) -> ScaleFit:
    """Fit factors of the constants of a device to measured rows, by robust least squares.

    The residual, the scale of residuals and the prior are the same as in :mod:`.roofline_fit`,
    which fits the constants to single products; the prior's mode is the shipped constants.
    Constants that the rows do not determine stay at this mode.

    Args:
        rows: the measured rows.
        device: the device whose shipped constants are the prior.
        base: the shipped constants, by number format.
        predict: function of a device and rows that returns modelled seconds.
        group: name of the measured time, for the errors.

    Raises:
        SpecError: there are too few rows, the unit of the time is wrong, the rows determine no
            constant, or the fit is no better than the shipped constants on held-out rows.
    """
    shapes = [_shape(row) for row in rows]
    if len(set(shapes)) < LEAST_ROWS:
        raise SpecError(
            f"there are {len(set(shapes))} different rows, of at least {LEAST_ROWS}",
            hint="; ".join(_ADVICE.values()),
        )
    problem = _Fit(rows=rows, device=device, base=base, predict=predict)
    shipped = problem.errors(np.zeros(len(SCALED)), np.arange(len(rows)))
    _check_unit(shipped, rows[0])
    every = np.arange(len(rows))
    logs = problem.fit(every)
    effects = problem.effects(logs)
    weak = [name for name, effect in zip(SCALED, effects, strict=True) if effect < LEAST_EFFECT]
    if len(weak) == len(SCALED):
        raise SpecError(
            "the rows determine no constant: their times hardly depend on any alone",
            hint="; ".join(_ADVICE.values()),
        )
    folds = {"shape": np.array([zlib.crc32(text.encode()) % FOLDS for text in shapes])}
    models = list(dict.fromkeys(row.model for row in rows))
    if len(models) > 1:
        folds["model"] = np.array([models.index(row.model) for row in rows])
    naive = float(np.abs(np.expm1(shipped)).mean())
    errors = tuple(
        _error(problem.hold_out(places), group, split, naive) for split, places in folds.items()
    )
    if errors[0].mean >= naive:
        raise SpecError(
            f"the shipped constants of {device.name} are as good: {naive:.1%} on all rows, the "
            f"fitted ones {errors[0].mean:.1%} on held-out rows",
            hint=f"keep {device.name}, or measure more rows",
        )
    fitted = {name: problem.scaled(one, logs) for name, one in base.items()}
    return ScaleFit(
        calibrations=[_record(name, one, errors[0], len(rows)) for name, one in fitted.items()],
        errors=errors,
        notes=(
            *(f"{name} stays near its prior: measure {_ADVICE[name]}" for name in weak),
            *_warn_of_models(errors, naive),
        ),
    )


def _warn_of_models(errors: Sequence[CalibrationError], naive: float) -> list[str]:
    return [
        f"on held-out models the error is {one.mean:.1%}, that of the shipped constants "
        f"{naive:.1%}: use the constants for these models, or measure more models"
        for one in errors
        if one.split == "model" and one.mean > naive
    ]


def describe_file(path: Path, rows: Sequence[MeasuredRow]) -> dict[str, Any]:
    """Return the name, hash and number of rows of a file of measurements."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": path.name, "sha256": digest, "rows": len(rows)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    rows: Sequence[MeasuredRow]
    device: Device
    base: Mapping[str, DeviceCalibration]
    predict: Predict

    def scaled(self, calibration: DeviceCalibration, logs: Floats) -> DeviceCalibration:
        constants = calibration.constants
        changes = {
            name: float(getattr(constants, name)) * float(np.exp(log))
            for name, log in zip(SCALED, logs, strict=True)
        }
        return replace(calibration, constants=replace(constants, **changes))

    def errors(self, logs: Floats, places: Ints) -> Floats:
        """Return the logarithm of modelled over measured seconds of some rows."""
        rows = [self.rows[place] for place in places.tolist()]
        calibrations = tuple(
            _record(name, self.scaled(one, logs)) for name, one in self.base.items()
        )
        seconds = self.predict(replace(self.device, calibrations=calibrations), rows)
        return np.log(seconds / np.array([row.seconds for row in rows]))

    def fit(self, places: Ints) -> Floats:
        shares = [
            max(float(getattr(one.constants, name)) for one in self.base.values())
            for name in SCALED[:2]
        ]
        most = np.array([*(np.log(MOST_SHARE / share) for share in shares), np.log(1e3)])
        most = np.maximum(most, 1e-6)

        def residuals(logs: Floats) -> Floats:
            off = self.errors(logs, places) / SCALE
            return np.concatenate([off, logs / (_PRIOR_SPREAD * WIDE)])

        found = least_squares(
            residuals,
            np.zeros(len(SCALED)),
            loss="soft_l1",
            max_nfev=40,
            bounds=(np.full(len(SCALED), -np.log(1e3)), most),
        )
        return np.asarray(found.x)

    def effects(self, logs: Floats) -> list[float]:
        """Return the effect of each constant on log times, with the other constants free."""
        every, step = np.arange(len(self.rows)), 1e-3
        columns = []
        for place in range(len(SCALED)):
            moved = np.array(logs)
            moved[place] -= step
            columns.append((self.errors(logs, every) - self.errors(moved, every)) / step)
        slopes = np.stack(columns, axis=1)
        found = []
        for place in range(len(SCALED)):
            others = np.delete(slopes, place, axis=1)
            along = np.linalg.lstsq(others, slopes[:, place], rcond=None)[0]
            rest = slopes[:, place] - others @ along
            found.append(float(np.sqrt((rest**2).mean())))
        return found

    def hold_out(self, folds: Ints) -> Floats:
        """Return the relative error of each row, by constants fitted without its fold."""
        off = np.zeros(len(self.rows))
        for fold in np.unique(folds):
            inside = np.flatnonzero(folds == fold)
            logs = self.fit(np.flatnonzero(folds != fold))
            off[inside] = np.abs(np.expm1(self.errors(logs, inside)))
        return off


def _check_unit(off: Floats, row: MeasuredRow) -> None:
    ratio = float(np.exp(np.median(off)))
    if not 1 / WRONG_UNIT < ratio < WRONG_UNIT:
        raise SpecError(
            f"the modelled times are {ratio:.3g} times the measured ones (median)",
            where=f"{row.where.rpartition(':')[0]}:1",
            hint="check the unit of the time, and the device",
        )


def _shape(row: MeasuredRow) -> str:
    return repr((row.model, sorted(row.options.items()), sorted(row.design.items())))


def _error(off: Floats, group: str, split: str, naive: float) -> CalibrationError:
    return CalibrationError(
        group=group,
        split=split,
        points=len(off),
        mean=float(off.mean()),
        median=float(np.median(off)),
        naive_mean=naive,
    )


def _record(
    number_format: str,
    one: DeviceCalibration,
    error: CalibrationError | None = None,
    points: int = 1,
) -> Mapping[str, Any]:
    """Return constants in the form of a device's YAML file, with their held-out errors."""
    named = {
        each.name: max(float(getattr(one.constants, each.name)), _TINY)
        for each in fields(RooflineConstants)
    }
    named["exponent"] = min(named["exponent"], MOST_EXPONENT)
    return {
        "format": number_format,
        "framework": "",
        "version": "",
        "points": points,
        **named,
        "heldout_mape": max(error.mean, _TINY) if error else 1.0,
        "heldout_median": max(error.median, _TINY) if error else 1.0,
        "naive_mape": max(error.naive_mean, _TINY) if error else 1.0,
        **dict(zip(RANGES, map(float, one.ranges), strict=True)),
    }
