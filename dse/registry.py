"""Plug-ins by entry point: ours come through the same door as anyone's."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from dse.errors import PluginError, nearest, raise_all

Group = Literal[
    "evaluators", "optimizers", "executors", "storages", "functions", "assets", "environments"
]

GROUPS: tuple[Group, ...] = ("evaluators", "optimizers", "executors", "storages", "functions")
"""What a study can name; ``assets`` and ``environments`` are tables of what evaluators need."""


@cache
def names(group: Group) -> Mapping[str, EntryPoint]:
    """The entry points of one group by name."""
    return {point.name: point for point in sorted(entry_points(group=f"dse.{group}"))}


def load(group: Group, name: str) -> Any:
    """The plug-in of that name: a class, or for ``functions`` a function.

    Raises:
        PluginError: there is none, or importing it failed.
    """
    found = names(group).get(name)
    if found is None:
        raise PluginError(f"there is no {group[:-1]} {name!r}", hint=nearest(name, names(group)))
    try:
        return found.load()
    except ImportError as error:
        raise PluginError(
            f"the {group[:-1]} {name!r} cannot be imported: {error}",
            hint=f"it is {found.value}; is its extra installed?",
        ) from error


def options_of(plugin: Any) -> Mapping[str, inspect.Parameter]:
    """The keyword options that a plug-in's constructor takes."""
    signature = inspect.signature(plugin)
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def check_options(group: Group, name: str, plugin: Any, options: Mapping[str, Any]) -> None:
    """Nothing, if the plug-in knows every option and gets all that it needs.

    Raises:
        PluginError: an option is unknown or missing.
        SpecErrors: several are.
    """
    known = options_of(plugin)
    errors = [
        PluginError(
            f"the {group[:-1]} {name!r} has no option {option!r}",
            hint=nearest(option, known),
            part=[option],
        )
        for option in options
        if option not in known
    ]
    errors += [
        PluginError(f"the {group[:-1]} {name!r} needs the option {option!r}")
        for option in required(plugin)
        if option not in options
    ]
    raise_all(errors)


def required(plugin: Any) -> list[str]:
    """The options that a plug-in cannot do without."""
    empty = inspect.Parameter.empty
    return [name for name, one in options_of(plugin).items() if one.default is empty]


def make(group: Group, name: str, *arguments: Any, **options: Any) -> Any:
    """The plug-in made with these arguments and options.

    Raises:
        PluginError: it is unknown, or an option is.
    """
    plugin = load(group, name)
    check_options(group, name, plugin, options)
    return plugin(*arguments, **options)
