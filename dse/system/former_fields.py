"""Former names of fields of dataclasses, which programs may still use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from dse.system.deprecation import UNTIL

T = TypeVar("T")


def accept_former_field(former: str, present: str) -> Callable[[type[T]], type[T]]:
    """Return a class decorator: a field may be given and read by its former name, with a warning.

    Args:
        former: the former name of the field.
        present: its present name.
    """

    def decorate(cls: type[T]) -> type[T]:
        start = cls.__init__

        @wraps(start)
        def initialize(self: T, *values: Any, **fields: Any) -> None:
            if former in fields:
                _warn(cls, former, present)
                fields[present] = fields.pop(former)
            start(self, *values, **fields)

        def read(self: T, name: str) -> Any:
            if name != former:
                raise AttributeError(f"{cls.__name__!r} has no attribute {name!r}")
            _warn(cls, former, present)
            return getattr(self, present)

        cls.__init__ = initialize  # type: ignore[assignment, method-assign]
        cls.__getattr__ = read  # type: ignore[attr-defined]
        return cls

    return decorate


def _warn(cls: type, former: str, present: str) -> None:
    text = f"{cls.__name__}.{former} is {cls.__name__}.{present} now; it is read until {UNTIL}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
