"""Keyword arguments that were renamed: old ones are accepted, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dse.system.deprecation import UNTIL

_P = ParamSpec("_P")
_R = TypeVar("_R")


def renamed_arguments(**present: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function so that it also accepts former names of its keyword arguments.

    Args:
        present: the present name of each old name: ``gain="min_improvement"``.

    Raises:
        TypeError: when the function is called with an argument under both of its names.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **given: _P.kwargs) -> _R:
            for old in present.keys() & given.keys():
                new = present[old]
                if new in given:
                    problem = f"{function.__name__}() got {new!r} and its old name {old!r}"
                    raise TypeError(problem)
                text = f"{old!r} is called {new!r} now; the old name works until version {UNTIL}"
                warnings.warn(text, FutureWarning, stacklevel=2)
                given[new] = given.pop(old)
            return function(*args, **given)

        return call

    return decorate
