"""Usage errors of commands: messages that name the rejected argument and its correction."""

from __future__ import annotations

from typing import Any

_FILES = "state '{key}:' in the study file"
_ELSEWHERE = {
    "optimizer": "state 'optimizer:' in the study file, or compare several: dse sweep --optimizer",
    "n-trials": "write --trials",
    "n-jobs": "write --workers",
    "jobs": "write --workers",
    "timeout": "write --time, or state 'timeout:' of an evaluator in the study file",
    "budget": "write --measurements, --trials, --time or --cost",
    "verbose": "see dse status NAME and dse trials NAME",
    "debug": "see dse status NAME and dse trials NAME",
}
"""Hints for options of other commands and tools, by the option's name."""


def mend_usage(error: Any) -> None:
    """Rewrite the message of a usage error to name the rejected argument and how to fix it.

    Args:
        error: the usage error that typer's parser raised.
    """
    found = _validation(error.__cause__)
    if found is not None:
        error.message = found
    elif hasattr(error, "option_name") and hasattr(error, "possibilities"):
        hint = _suggest_option(str(error.option_name).lstrip("-"))
        if hint:
            error.message, error.possibilities = f"{error.message} ({hint})", None
    elif "unexpected extra argument" in error.message:
        error.message += _suggest_setting(error)


def _validation(cause: Any) -> str | None:
    """Return a message that states the expected type of an argument, or ``None``.

    ``None`` means that the parser's own message is kept.
    """
    if not hasattr(cause, "errors"):
        return None
    first = cause.errors()[0]
    kinds = {"int_": "a whole number, such as 20", "float_": "a number, such as 0.5"}
    for kind, wanted in kinds.items():
        if first["type"].startswith(kind):
            return f"{first['input']!r} is not {wanted}"
    return None


def _suggest_option(name: str) -> str:
    from dse.schema.models import StudySpec

    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    return _FILES.format(key=name) if name in StudySpec.model_fields else ""


def _suggest_setting(error: Any) -> str:
    """Return a hint for a ``parameter=value`` argument that is not preceded by ``--set``."""
    options = {one for each in error.ctx.command.params for one in each.opts}
    inside = error.message.partition("(")[2].rstrip(")").split()
    setting = next((word for word in inside if "=" in word), None)
    if setting is None or "--set" not in options:
        return ""
    return f". Write --set before each value: --set {setting}"
