"""Constants that were fitted to measured points and judged on others, with both lists of points."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".fits.json"
"""How the files end, beside the modules that use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One set of constants.

    Points are named as their source names them, one name for one measured number. ``attempts`` is
    how many forms or choices were tried before this one; errors are relative, of the judged points.

    Raises:
        ValueError: a point was fitted and judged, a list has a point twice, or none was judged.
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
            raise ValueError(f"{self.name}: judged on nothing")


def fits_in(path: Path) -> Mapping[str, Fit]:
    """The fits of a file by their names: a JSON list of objects with the fields of a Fit.

    Raises:
        ValueError: a fit breaks its rules, or two have one name.
    """
    rows = json.loads(path.read_text(encoding="utf-8"))
    fits = [_fit(row) for row in rows]
    found = {fit.name: fit for fit in fits}
    if len(found) < len(fits):
        raise ValueError(f"{path.name}: two fits of one name")
    return found


def _fit(row: Mapping[str, object]) -> Fit:
    points = {key: tuple(_texts(row[key])) for key in ("fitted_on", "judged_on")}
    return Fit(**{**row, **points})  # type: ignore[arg-type]  # JSON's types; the fields are tested


def _texts(points: object) -> list[str]:
    assert isinstance(points, list)
    return [str(point) for point in points]
