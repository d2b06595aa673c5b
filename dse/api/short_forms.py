"""Short Python forms of a parameter's domain: a list, a tuple of two ends, a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.errors import SpecError


def domain(name: str, given: Any) -> Any:
    """Return the space-file entry of a parameter whose domain is given in a short Python form.

    A list enumerates the values: an ordinal parameter if all are numbers, else a categorical one;
    ``[True, False]`` is a boolean. A tuple of two ends is an integer range if both are integers,
    else a real range, whose ends may be quantities (``"1 GHz"``). A ``range`` is an integer range
    with a step. A mapping is used as the file entry itself. Numpy numbers count as numbers, and a
    numpy array of shape (n,) as a list.

    Raises:
        SpecError: the value has none of these forms.
    """
    if isinstance(given, Mapping):
        return given
    if isinstance(given, range):
        return _of_range(name, given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, tuple):
        return _of_ends(name, tuple(map(_plain, given)))
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise SpecError(
            f"{given!r} does not describe the values of {name}",
            where=f"parameters.{name}",
            hint='write [16, 32, 64], ["int8", "int4"], (1, 8), (0.1, 0.9), range(0, 65, 8) '
            'or {"real": ["200 MHz", "1.6 GHz"], "scale": "log"}',
        )
    given = list(map(_plain, given))
    if all(isinstance(one, bool) for one in given) and set(given) == {True, False}:
        return {"boolean": True}
    ordered = all(isinstance(one, int | float) and not isinstance(one, bool) for one in given)
    return {"ordinal" if ordered else "choice": given}


def _plain(value: Any) -> Any:
    """Return a numpy scalar as a Python number, so that integers are recognized."""
    return value.item() if isinstance(value, np.generic) else value


def _of_range(name: str, given: range) -> dict[str, Any]:
    if len(given) == 0 or given.step < 0:
        raise SpecError(f"{given!r} is empty or descending", where=f"parameters.{name}")
    domain = {"integer": [given[0], given[-1]]}
    return {**domain, "step": given.step} if given.step > 1 and len(given) > 1 else domain


def _of_ends(name: str, ends: tuple[Any, ...]) -> dict[str, Any]:
    if len(ends) != 2:
        raise SpecError(
            f"{ends!r} has {len(ends)} ends",
            where=f"parameters.{name}",
            hint="write two ends as a tuple: (1, 8), or a list of values: [1, 2, 4]",
        )
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    return {"integer" if whole else "real": list(ends)}
