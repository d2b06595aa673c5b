"""Tables of model errors on measurements, and the error of a design by its nearest group."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.values import Ints
from dse.protocols import ErrorOrigin, ModelError
from dse_evaluators.csv_files.csv_records import read_rows, record_of

UNKNOWN = ModelError("data sheet only", group="no measurement of this metric")

_SIBLINGS = {"bf16": "fp16", "fp16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Mean relative error of a model on the measurements of one device and format.

    ``kind`` is the kind of model or kernel. ``within`` is the error after the common factor of each
    group (model, device, software, format) is divided out; NaN if it is unknown.
    """

    kind: str
    device: str
    format: str
    points: int
    mean: float
    within: float = math.nan


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """Table of model errors by kind of model, device and number format.

    The script ``benchmarks/model_errors.py`` writes the table.
    """

    groups: tuple[ErrorGroup, ...]

    @staticmethod
    def read(path: Path) -> ErrorTable:
        """Return the table of model errors that a CSV file holds."""
        return ErrorTable(tuple(record_of(row, ErrorGroup) for row in read_rows(path)))

    def nearest(self, kind: str, device: str, number_format: str) -> ModelError:
        """Return the model error of the most similar group of measurements.

        The error is ``held out`` if kind, device and format match. Otherwise groups of the same
        kind and device are used, else of the same kind and format, else of the same kind. The error
        of several groups is the mean over their points.

        Args:
            kind: the kind of model or kernel.
            device: name of the device.
            number_format: the number format; bf16 and fp16 stand for one another.
        """
        formats = (number_format, _SIBLINGS.get(number_format, number_format))
        alike = [one for one in self.groups if one.kind == kind]
        same = [one for one in alike if one.device == device]
        narrow = [one for one in alike if one.format in formats]
        exact = [one for one in same if one.format in formats]
        found = exact or same or narrow or alike
        if not found:
            return UNKNOWN
        return _error_of(found, is_measured=bool(exact))


def _error_of(found: Sequence[ErrorGroup], *, is_measured: bool) -> ModelError:
    points = np.array([one.points for one in found])
    known = [one for one in found if not math.isnan(one.within)]
    within = math.nan
    if known:
        within = float(
            np.average([one.within for one in known], weights=[one.points for one in known])
        )
    devices = ", ".join(dict.fromkeys(one.device for one in found))
    formats = ", ".join(dict.fromkeys(one.format for one in found))
    return ModelError(
        origin="held out" if is_measured else "extrapolated",
        mean=float(np.average([one.mean for one in found], weights=points)),
        within=within,
        group=f"{found[0].kind}, {devices}, {formats}: {points.sum()} points",
    )


def state_errors(
    provided: Collection[str],
    errors: Sequence[ModelError],
    measured: Collection[str],
    exact: Collection[str],
) -> dict[str, list[ModelError]]:
    """Return the model errors of all metrics, with zero error for exact metrics.

    Args:
        provided: the names of all metrics.
        errors: the errors of the measured metrics, for n designs.
        measured: names of the measured metrics.
        exact: names of the metrics without an error.
    """
    unknown = [one._replace(origin=_worse(one), mean=math.nan, within=math.nan) for one in errors]
    return {
        name: list(errors) if name in measured else unknown
        for name in provided
        if name not in exact
    }


def _worse(error: ModelError) -> ErrorOrigin:
    return "data sheet only" if error.origin == "data sheet only" else "extrapolated"


def extrapolate(error: ModelError, is_outside: bool) -> ModelError:  # noqa: FBT001 - a column's entry
    """Mark a model error as extrapolated if the design is unlike all measured groups."""
    if not is_outside or error.origin != "held out":
        return error
    return error._replace(origin="extrapolated")


def gather_errors(
    size: int,
    parts: Sequence[tuple[Ints, Mapping[str, Sequence[ModelError]]]],
) -> dict[str, list[ModelError]]:
    """Merge the model errors of separate sets of designs into those of all ``size`` designs.

    Args:
        size: the number of designs.
        parts: the indices of some designs, and their errors by metric.
    """
    found: dict[str, list[ModelError]] = {}
    for rows, errors in parts:
        for name, column in errors.items():
            own = found.setdefault(name, [UNKNOWN] * size)
            for row, one in zip(rows.tolist(), column, strict=True):
                own[row] = one
    return found
