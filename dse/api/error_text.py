"""Hints that name a command's options, in the words of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dse.errors import DseError

_IN_PYTHON = (
    ("--joint-reference", "joint_reference=True"),
    ("--may-differ space", 'may_differ=["space"]'),
    ("--may-differ evaluators", 'may_differ=["evaluators"]'),
    ("--storage URL", "storage=URL"),
    ("(--name)", "(name=...)"),
    ("'reference:'", "reference="),
    ("'one=study-*'", '{"one": [study, other]}'),
)
"""What a hint says to who types commands, and what he writes in Python."""


@contextmanager
def in_python() -> Iterator[None]:
    """Rewrite the hints of errors raised within the block for use in Python."""
    try:
        yield
    except DseError as error:
        error.hint = hint_in_python(getattr(error, "hint", ""))
        raise


def hint_in_python(hint: str) -> str:
    """The hint with Python's arguments in place of options."""
    for option, argument in _IN_PYTHON:
        hint = hint.replace(option, argument)
    return hint
