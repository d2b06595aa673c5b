"""Optimizers passed to a study in Python: a class, a function that builds one, or an object."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dse.core.problem import Problem
from dse.errors import PluginError, SpecError
from dse.protocols import ExpectsImprovement, Optimizer, traits_of
from dse.schema.study.plugin_checks import PYTHON

Factory = Callable[..., Optimizer]
"""Class or function that is called with a problem and options, and returns an optimizer."""

Given = str | Factory | Optimizer
"""Optimizer as a program names it: a plug-in's name, a factory, or an object."""


class CopiedOptimizer:
    """Factory of copies of an optimizer object, so that each run and replay starts with a new one.

    Args:
        optimizer: the object, which has received no trials; later changes to it have no effect.

    Raises:
        PluginError: the object cannot be copied.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._original = _copy_optimizer(optimizer)
        self.traits = traits_of(optimizer)
        if isinstance(optimizer, ExpectsImprovement):
            self.expected_gain: float | None = None

    def __call__(self, problem: Problem) -> Optimizer:
        """Return a copy; ``problem`` is ignored, as the object was constructed with its own."""
        del problem
        return _copy_optimizer(self._original)


def optimizer_entry(given: Any) -> tuple[str | Mapping[str, Any], dict[str, Factory]]:
    """Return the entry of the study file for an optimizer, and the Python objects that it names.

    Args:
        given: a plug-in's name, a class, a function, an object, or a mapping with one of them as
            ``use`` and its options.

    Raises:
        SpecError: ``given`` is none of these, or options accompany an object.
        PluginError: an object cannot be copied.
    """
    options = {key: value for key, value in given.items() if key != "use"} if _is_map(given) else {}
    use = given.get("use") if _is_map(given) else given
    if isinstance(use, str) or use is None:
        return given, {}
    if _is_object(use) and options:
        raise SpecError(
            f"the optimizer {type(use).__name__} is an object, which takes no options",
            hint='pass its class with them: {"use": Annealing, "cooling": 0.9}',
        )
    name = PYTHON + _name(use)
    factory = CopiedOptimizer(use) if _is_object(use) else use
    if not callable(factory):
        raise SpecError(
            f"{use!r} is no optimizer",
            hint="pass the name of a plug-in, a class, or an object with ask, tell and events",
        )
    return {"use": name, **options}, {name: factory}


def name_optimizers(given: Sequence[Given]) -> tuple[list[str], dict[str, Factory]]:
    """Return the names of optimizers in a specification, and the Python objects that they name.

    Args:
        given: names of plug-ins, classes, functions or objects.

    Raises:
        SpecError: a value in ``given`` is no optimizer, or two optimizers have the same name.
        PluginError: an object cannot be copied.
    """
    uses: list[str] = []
    objects: dict[str, Factory] = {}
    for one in given:
        entry, found = optimizer_entry(one)
        use = entry if isinstance(entry, str) else str(entry["use"])
        if found and use in objects:
            raise SpecError(
                f"two optimizers are called {use.removeprefix(PYTHON)!r}",
                hint="give their classes or functions different names",
            )
        uses.append(use)
        objects |= found
    return uses, objects


def _is_map(given: object) -> bool:
    return isinstance(given, Mapping)


def _is_object(given: object) -> bool:
    """Return whether the value is an optimizer itself, not a class or function that builds one."""
    return not isinstance(given, type) and hasattr(given, "ask") and hasattr(given, "tell")


def _name(given: Any) -> str:
    """Return the name of a class, of a function, of a partial's function, or of an object's class.

    Characters that a study's name may not contain, such as those of ``<lambda>``, are omitted.
    """
    inner = given.func if isinstance(given, functools.partial) else given
    name = str(getattr(inner, "__name__", type(inner).__name__))
    return "".join(one for one in name if one.isalnum() or one in "_-.") or "optimizer"


def _copy_optimizer(optimizer: Optimizer) -> Optimizer:
    try:
        return copy.deepcopy(optimizer)
    except Exception as error:  # any exception of a user's object
        raise PluginError(
            f"the optimizer {type(optimizer).__name__} cannot be copied: {error}",
            hint="pass its class, which is constructed with the problem: optimizer=Annealing",
        ) from error
