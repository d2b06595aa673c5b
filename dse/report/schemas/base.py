"""Base class and common types of the JSON schemas: objects with fixed, documented keys."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict  # pydantic requires this one before Python 3.12


class Shape(TypedDict):
    """Base class of JSON objects with a schema: no extra keys, docstrings as descriptions."""


# Configures pydantic without importing it in every command.
Shape.__pydantic_config__ = {"extra": "forbid", "use_attribute_docstrings": True}  # type: ignore[attr-defined]

Plain = bool | int | float | str
"""Value of a parameter in JSON."""

Design = dict[str, Plain]
"""Values by parameter, in SI units if a parameter has a unit; inactive ones have no key."""

Goal = Literal["minimize", "maximize"]
State = Literal[
    "pending", "running", "done", "infeasible", "failed", "outside", "screened", "stopped"
]
FailureKind = Literal["infeasible", "raised", "timeout", "crashed", "invalid", "memory", "lost"]
