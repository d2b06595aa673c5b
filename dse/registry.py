"""Registry of plug-ins by entry point; built-in and third-party ones are loaded alike."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from dse.errors import PluginError, nearest, raise_all

Group = Literal[
    "evaluators",
    "optimizers",
    "executors",
    "storages",
    "functions",
    "models",
    "assets",
    "environments",
]

GROUPS: tuple[Group, ...] = (
    "evaluators",
    "optimizers",
    "executors",
    "storages",
    "functions",
    "models",
)
"""Plug-in groups that a study can use; ``assets`` and ``environments`` are evaluator resources."""


_SIGNS = str.maketrans("", "", "-_ ")


@cache
def names(group: Group) -> Mapping[str, EntryPoint]:
    """Return the entry points of a plug-in kind, such as ``optimizers``, by plug-in name."""
    return {point.name: point for point in sorted(entry_points(group=f"dse.{group}"))}


def load(group: Group, name: str) -> Any:
    """Import a plug-in by name: a class, or a function in the group ``functions``.

    Raises:
        PluginError: there is no such plug-in, or importing it failed.
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
        **dict.fromkeys(("surrogate", "regression", "predictor"), "'learned'"),
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
"""Hints for plug-in names of other tools, by group: the equivalent of this project."""


def suggest_plugin(group: Group, name: str) -> str:
    """Return a hint for an unknown plug-in name: the name that was probably meant."""
    meant = _MEANT.get(group, {}).get(str(name).casefold().translate(_SIGNS), "")
    if meant:
        return f"write {meant}"
    hint = nearest(name, names(group))
    return _KINDS if group == "evaluators" and not hint.startswith("did you") else hint


def options_of(plugin: Any) -> Mapping[str, inspect.Parameter]:
    """Return the keyword-only parameters of a plug-in's constructor, by name."""
    signature = inspect.signature(plugin)
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def check_options(group: Group, name: str, plugin: Any, options: Mapping[str, Any]) -> None:
    """Check options for a plug-in: each must exist, and no required one may be missing.

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
    """Return the names of a plug-in's required options."""
    empty = inspect.Parameter.empty
    return [name for name, one in options_of(plugin).items() if one.default is empty]


_INSTEAD: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cmd", "command", "script", "program", "args", "argv"), ("run",)),
    **dict.fromkeys(("path", "csv", "filename", "table", "source", "from"), ("file",)),
    **dict.fromkeys(("outputs", "output", "formulas", "formula", "expressions"), ("metrics",)),
    **dict.fromkeys(("inputs", "parameters", "arguments"), ("reads",)),
    **dict.fromkeys(("n_jobs", "jobs", "processes", "n_workers", "num_workers"), ("workers",)),
    **dict.fromkeys(("population", "population_size", "popsize", "size"), ("pop_size",)),
    **dict.fromkeys(("environment", "environ"), ("env",)),
    **dict.fromkeys(("folder", "directory", "workdir"), ("cwd",)),
}
"""Equivalent options of this project's plug-ins for option names that other tools use."""


def _suggest_option(option: str, known: Mapping[str, inspect.Parameter]) -> str:
    """Return a hint for an unknown option of a plug-in: the option that was probably meant."""
    meant = next((one for one in _INSTEAD.get(str(option), ()) if one in known), "")
    if meant:
        return f"write {meant!r}"
    return nearest(option, known) or "it has no options"


def make(group: Group, name: str, *arguments: Any, **options: Any) -> Any:
    """Build a plug-in instance with these arguments and options.

    Args:
        group: the kind of plug-in, such as ``optimizers``.
        name: the plug-in's name.
        *arguments: positional arguments, which the program supplies.
        **options: keyword options, which the study gives.

    Raises:
        PluginError: the plug-in or an option is unknown, or a required option is missing.
        SpecErrors: several options are wrong.
    """
    plugin = load(group, name)
    check_options(group, name, plugin, options)
    return plugin(*arguments, **options)
