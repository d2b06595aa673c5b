"""Fitted constants with their provenance: points used for the fit, held-out points, errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse.protocols import HeldOutError

SUFFIX = ".fits.json"
"""Suffix of the files of fits, which are next to the modules that use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Set of fitted constants, with its errors on held-out points.

    A point is one measured number, with the name that its source uses. ``fitted_on`` and
    ``judged_on`` (held out) are disjoint. ``attempts`` is the number of model forms or choices
    tried before this one. ``judged_mean`` and ``judged_max`` are relative errors on ``judged_on``.

    Raises:
        ValueError: a point is in both lists or twice in one, or ``judged_on`` is empty.
    """

    name: str
    constants: Mapping[str, float]
    fitted_on: tuple[str, ...]
    judged_on: tuple[str, ...]
    attempts: int
    judged_mean: float
    judged_max: float
    source: str
    note: str = ""

    def __post_init__(self) -> None:
        both = set(self.fitted_on) & set(self.judged_on)
        if both:
            raise ValueError(f"{self.name}: fitted and judged on {', '.join(sorted(both))}")
        for points in (self.fitted_on, self.judged_on):
            if len(set(points)) < len(points):
                raise ValueError(f"{self.name}: a point is listed twice")
        if not self.judged_on:
            raise ValueError(f"{self.name}: judged_on is empty")

    @property
    def held_out_error(self) -> HeldOutError:
        """Numbers of fitted and held-out points, and the errors on the held-out ones."""
        return HeldOutError(
            name=self.name,
            fitted=len(self.fitted_on),
            held_out=len(self.judged_on),
            mean=self.judged_mean,
            largest=self.judged_max,
            source=self.source,
        )


def fits_in(path: Path) -> Mapping[str, Fit]:
    """Return the fits in a JSON file by name.

    Raises:
        ValueError: a fit is invalid (see :class:`Fit`), or two have the same name.
    """
    rows = json.loads(path.read_text(encoding="utf-8"))
    fits = [_fit(row) for row in rows]
    found = {fit.name: fit for fit in fits}
    if len(found) < len(fits):
        raise ValueError(f"{path.name}: two fits have the same name")
    return found


def _fit(row: Mapping[str, object]) -> Fit:
    points = {key: tuple(_texts(row[key])) for key in ("fitted_on", "judged_on")}
    return Fit(**{**row, **points})  # type: ignore[arg-type]  # types from JSON; tests check the fields


def _texts(points: object) -> list[str]:
    assert isinstance(points, list)
    return [str(point) for point in points]
