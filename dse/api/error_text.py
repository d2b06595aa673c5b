"""Translation of error hints from command-line options to Python arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dse.errors import DseError

_IN_PYTHON = (
    ("--joint-reference", "joint_reference=True"),
    ("--ignore space", 'ignore=["space"]'),
    ("--ignore evaluators", 'ignore=["evaluators"]'),
    ("--storage URL", "storage=URL"),
    ("(--name)", "(name=...)"),
    ("'reference:'", "reference="),
    ("'one=study-*'", '{"one": [study, other]}'),
)
"""Pairs of a command-line fragment in a hint and its equivalent in Python."""


@contextmanager
def in_python() -> Iterator[None]:
    """Rewrite the hints of errors raised in the block: Python arguments for CLI options."""
    try:
        yield
    except DseError as error:
        error.hint = hint_in_python(getattr(error, "hint", ""))
        raise


def hint_in_python(hint: str) -> str:
    """Return an error's hint with command-line options replaced by Python arguments."""
    for option, argument in _IN_PYTHON:
        hint = hint.replace(option, argument)
    return hint
