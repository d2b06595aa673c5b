"""Base of every shape: an object whose keys are all known, each with its meaning below it."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12


class Shape(TypedDict):
    """An object that JSON Schema is made of: other keys are refused, the texts are meanings."""


# How pydantic is told so without being imported by every command.
Shape.__pydantic_config__ = {"extra": "forbid", "use_attribute_docstrings": True}  # type: ignore[attr-defined]

Plain = bool | int | float | str
"""A parameter's value, as JSON has it."""

Design = dict[str, Plain]
"""A design by parameter, in SI units where a parameter has a unit; what is absent has no key."""

Goal = Literal["minimize", "maximize"]
State = Literal[
    "pending", "running", "done", "infeasible", "failed", "outside", "screened", "stopped"
]
FaultKind = Literal["infeasible", "raised", "timeout", "crashed", "invalid", "memory", "lost"]
