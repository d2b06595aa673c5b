"""Functions that make models, found as entry points of the group ``dse.models``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dse.errors import PluginError

_GROUP = "dse.models"
_OURS = "dse_evaluators."


def registered_names() -> tuple[str, ...]:
    """Return the names of the models that other packages register."""
    return tuple(sorted(_others()))


def distribution_of(name: str) -> str:
    """Return the name and version of the package that registers a model.

    Args:
        name: a name of :func:`registered_names`.
    """
    found = _others()[name].dist
    return "?" if found is None else f"{found.name} {found.version}"


def load_factory(name: str, *, built_in: bool = False) -> Callable[[], Any]:
    """Import the function that makes a model.

    Args:
        name: name of the model.
        built_in: whether it is a model of this package; otherwise it is one of another package.

    Raises:
        PluginError: the function cannot be imported, or is not a function.
    """
    point = (_built_in() if built_in else _others())[name]
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # other people's code
        raise PluginError(
            f"the model {name!r} cannot be imported: {type(error).__name__}: {error}",
            hint=f"it is {point.value}",
            part=["model"],
        ) from error
    if not callable(found):
        hint = "a function without arguments"
        raise PluginError(f"the model {name!r} is {point.value}, which is no function", hint=hint)
    made: Callable[[], Any] = found
    return made


@cache
def _others() -> Mapping[str, EntryPoint]:
    found = sorted(entry_points(group=_GROUP))
    return {point.name: point for point in found if not point.value.startswith(_OURS)}


@cache
def _built_in() -> Mapping[str, EntryPoint]:
    found = entry_points(group=_GROUP)
    return {point.name: point for point in found if point.value.startswith(_OURS)}
