"""Interface of evaluators whose constants can be fitted to a user's measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from dse.protocols.capability import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError:
    """Relative errors of fitted constants on points that were held out of the fit.

    Args:
        group: points with constants of their own, for example of a number format and software
            stack.
        split: property by which points were held out together: ``shape``, ``model`` or ``size``.
        points: number of held-out points; cross-validation holds out each point of the group once.
        mean: mean relative error.
        median: median relative error.
        naive_mean: mean relative error on the same points without the fitted constants, for example
            of the data sheet alone.
    """

    group: str
    split: str
    points: int
    mean: float
    median: float
    naive_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """Constants fitted to measurements, with their held-out errors.

    Args:
        contents: the YAML mapping that an option of the evaluator accepts.
        errors: held-out errors by group.
        refused: groups that were not fitted, with the reason and what to measure next.
        notes: constants that the measurements hardly determine, and what to measure in addition.
    """

    contents: Mapping[str, Any]
    errors: tuple[CalibrationError, ...]
    refused: tuple[str, ...]
    notes: tuple[str, ...] = ()


@runtime_checkable
class HasCalibration(Protocol, metaclass=Capability):
    """Evaluator whose constants can be fitted to a user's measurements, without a study."""

    def calibrate(self, file: Path, like: str) -> CalibrationResult:
        """Fit the constants to the measurements of a file.

        Args:
            file: the measurements.
            like: name of the built-in device or system that was measured.

        Raises:
            DseError: the file is invalid, or its measurements do not determine the constants.
        """
        ...
