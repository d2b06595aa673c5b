"""Models that other packages register: their parts, which are made only when a study runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dse.errors import PluginError, nearest
from dse_evaluators.workloads.model_factories import distribution_of, load_factory
from dse_evaluators.workloads.own.own_function import call_own

_PARTS = ("model", "data", "quality")
_EXAMPLE = 'return {"model": make, "data": load, "quality": "accuracy"}'


@dataclass(frozen=True, slots=True)
class PluginFunction:
    """Function of an installed package that makes a model, its data or its quality metric.

    Args:
        text: description of the function for messages, with the package's version.
        function: the function.
    """

    text: str
    function: Callable[[], Any] = field(compare=False)

    def __call__(self) -> Any:
        """Call the function and return its result.

        Raises:
            EvaluationError: the call fails; the message names the function.
        """
        return call_own(self.function, self.text)


@cache
def plugin_parts(name: str) -> Mapping[str, Any]:
    """Return the options ``model``, ``data`` and ``quality`` of a registered model.

    Functions among them are called only when the model is run. Each part is identified by the
    package's version.

    Args:
        name: name of the model.

    Raises:
        PluginError: the package cannot be imported, its function fails or returns no such mapping.
    """
    factory = load_factory(name)
    label = f"the model {name!r} of {distribution_of(name)}"
    try:
        parts = factory()
    except (Exception, SystemExit) as error:  # other people's code
        problem = f"{label} fails: {type(error).__name__}: {error}"
        raise PluginError(problem, part=["model"]) from error
    if not isinstance(parts, Mapping) or "model" not in parts:
        problem = f"{label} is a {type(parts).__name__} without a key 'model'"
        raise PluginError(problem, hint=_EXAMPLE, part=["model"])
    odd = next((key for key in parts if key not in _PARTS), None)
    if odd is not None:
        hint = nearest(str(odd), _PARTS)
        raise PluginError(f"{label} has an unknown key {odd!r}", hint=hint, part=["model"])
    return {key: _deferred(f"{key} of {label}", value) for key, value in parts.items()}


def _deferred(text: str, value: Any) -> Any:  # a part of a model of another package
    """Return a path as a text, and a function as one that is called later."""
    if isinstance(value, Path):
        return str(value.resolve())
    is_plain = callable(value) and not hasattr(value, "state_dict") and "quality" not in text[:7]
    return PluginFunction(text, value) if is_plain else value
