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


_SIGNS = str.maketrans("", "", "-_ ")


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
        hint = suggest_plugin(group, name)
        raise PluginError(f"there is no {group[:-1]} {name!r}", hint=hint, part=["use"])
    try:
        return found.load()
    except ImportError as error:
        raise PluginError(
            f"the {group[:-1]} {name!r} cannot be imported: {error}",
            hint=f"it is {found.value}; is its extra installed?",
        ) from error


_KINDS = (
    "'use: command' runs a program, 'use: expression' computes formulas, 'use: table' reads "
    "measured designs; dse plugins list shows all"
)

_MEANT: Mapping[str, Mapping[str, str]] = {
    "evaluators": {
        **dict.fromkeys(("shell", "script", "program", "subprocess", "exec"), "'command'"),
        **dict.fromkeys(("formula", "formulas", "analytical"), "'expression'"),
        **dict.fromkeys(("csv", "parquet", "dataframe"), "'table'"),
        **dict.fromkeys(("function", "callable"), "'python'"),
    },
    "optimizers": {
        **dict.fromkeys(("bayesian", "bo", "gp", "gpsampler"), "'grey-box' or 'qlognehvi'"),
        **dict.fromkeys(("botorch", "qnehvi", "ehvi"), "'qlognehvi'"),
        **dict.fromkeys(("grid", "gridsearch", "bruteforce"), "'exhaustive' or 'factorial'"),
        **dict.fromkeys(("ga", "genetic", "evolutionary", "nsgaii", "nsga"), "'nsga2'"),
        **dict.fromkeys(("optuna", "tpesampler"), "'tpe'"),
        **dict.fromkeys(("randomsearch", "randomsampler"), "'random'"),
    },
    "executors": {
        **dict.fromkeys(
            ("parallel", "threads", "thread", "multiprocessing", "pool", "joblib"), "'processes'"
        ),
        **dict.fromkeys(("local", "sequential", "none", "sync"), "'serial'"),
    },
}
"""What other tools call a plug-in of ours."""


def suggest_plugin(group: Group, name: str) -> str:
    """Return the hint for a plug-in's name that there is not."""
    meant = _MEANT.get(group, {}).get(str(name).casefold().translate(_SIGNS), "")
    if meant:
        return f"write {meant}"
    hint = nearest(name, names(group))
    return _KINDS if group == "evaluators" and not hint.startswith("did you") else hint


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
            hint=_suggest_option(option, known),
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


_INSTEAD: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cmd", "command", "script", "program", "args", "argv"), ("run",)),
    **dict.fromkeys(("path", "csv", "filename", "table", "source"), ("file",)),
    **dict.fromkeys(("outputs", "output", "formulas", "formula", "expressions"), ("metrics",)),
    **dict.fromkeys(("inputs", "parameters", "arguments"), ("reads",)),
    **dict.fromkeys(("n_jobs", "jobs", "processes", "n_workers", "num_workers"), ("workers",)),
    **dict.fromkeys(("population", "population_size", "popsize", "size"), ("pop_size",)),
    **dict.fromkeys(("environment", "environ"), ("env",)),
    **dict.fromkeys(("folder", "directory", "workdir"), ("cwd",)),
}
"""What other tools call an option, and what plug-ins of ours do."""


def _suggest_option(option: str, known: Mapping[str, inspect.Parameter]) -> str:
    """Return the hint for an option that a plug-in does not have."""
    meant = next((one for one in _INSTEAD.get(str(option), ()) if one in known), "")
    if meant:
        return f"write {meant!r}"
    return nearest(option, known) or "it has no options"


def make(group: Group, name: str, *arguments: Any, **options: Any) -> Any:
    """The plug-in made with these arguments and options.

    Raises:
        PluginError: it is unknown, or an option is.
    """
    plugin = load(group, name)
    check_options(group, name, plugin, options)
    return plugin(*arguments, **options)
