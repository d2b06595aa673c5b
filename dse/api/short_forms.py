"""Python's short words for a parameter: a list, a tuple of two ends, a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.errors import SpecError


def domain(name: str, told: Any) -> Any:
    """Return the entry for a parameter in a space file.

    A list holds its values: numbers in their order, else words to choose from; two truths are a
    boolean. A tuple holds two ends: of whole numbers, else of a real, where quantities (``"1
    GHz"``) are read. A ``range`` is whole numbers with a step. A mapping is what the file would say
    itself. Numbers of numpy are numbers, and an array of it, (n,), is a list.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(told, Mapping):
        return told
    if isinstance(told, range):
        return _of_range(name, told)
    if isinstance(told, np.ndarray) and told.ndim == 1:
        told = told.tolist()
    if isinstance(told, tuple):
        return _of_ends(name, tuple(map(_plain, told)))
    if isinstance(told, str) or not isinstance(told, Sequence):
        raise SpecError(
            f"{told!r} says nothing of what {name} may be",
            where=f"parameters.{name}",
            hint='write [16, 32, 64], ["int8", "int4"], (1, 8), (0.1, 0.9), range(0, 65, 8) '
            'or {"real": ["200 MHz", "1.6 GHz"], "scale": "log"}',
        )
    told = list(map(_plain, told))
    if all(isinstance(one, bool) for one in told) and set(told) == {True, False}:
        return {"boolean": True}
    ordered = all(isinstance(one, int | float) and not isinstance(one, bool) for one in told)
    return {"ordinal" if ordered else "choice": told}


def _plain(value: Any) -> Any:
    """A number of numpy as Python's, so that a whole one is seen to be whole."""
    return value.item() if isinstance(value, np.generic) else value


def _of_range(name: str, told: range) -> dict[str, Any]:
    if len(told) == 0 or told.step < 0:
        raise SpecError(f"{told!r} does not rise", where=f"parameters.{name}")
    domain = {"integer": [told[0], told[-1]]}
    return {**domain, "step": told.step} if told.step > 1 and len(told) > 1 else domain


def _of_ends(name: str, told: tuple[Any, ...]) -> dict[str, Any]:
    if len(told) != 2:
        raise SpecError(
            f"{told!r} has {len(told)} ends",
            where=f"parameters.{name}",
            hint="two ends go in a tuple: (1, 8); values to choose from in a list: [1, 2, 4]",
        )
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in told)
    return {"integer" if whole else "real": list(told)}
