"""Optimizers that a Python program passes to a study as a class, a function or an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dse.errors import StudyError
from dse.registry import check_options, load, names
from dse.schema.models import PluginSpec

PYTHON = "python:"
"""Prefix in the record of an optimizer that is no plug-in, followed by its name in Python."""

Objects = Mapping[str, Any]
"""Python objects of a study, by the texts that name them in its specification."""


def is_python_optimizer(use: str) -> bool:
    """Return whether the name in a specification is that of a class, a function or an object."""
    return use.startswith(PYTHON)


def knows_optimizer(use: str, objects: Objects) -> bool:
    """Return whether the optimizer is a plug-in that is installed, or an object that is given."""
    return use in objects if is_python_optimizer(use) else use in names("optimizers")


def load_optimizer(use: str, objects: Objects) -> Any:
    """Return what constructs the optimizer: a plug-in, or a class or function of a program.

    Raises:
        StudyError: it is an object of a Python program, which was not given.
        PluginError: there is no such plug-in, or importing it failed.
    """
    if not is_python_optimizer(use):
        return load("optimizers", use)
    if use not in objects:
        raise missing_optimizer(use)
    return objects[use]


def make_optimizer(spec: PluginSpec, subject: object, objects: Objects) -> Any:
    """Construct the optimizer of a study for a problem, with its options.

    Args:
        spec: the optimizer's name and options.
        subject: the problem to solve.
        objects: the study's Python objects.

    Raises:
        StudyError: it is an object of a Python program, which was not given.
        PluginError: there is no such plug-in, or an option is unknown or missing.
        SpecErrors: several options are wrong.
    """
    plugin = load_optimizer(spec.use, objects)
    check_options("optimizers", spec.use.removeprefix(PYTHON), plugin, spec.options)
    return plugin(subject, **spec.options)


def missing_optimizer(use: str) -> StudyError:
    """Return the error for an optimizer of a Python program that was not given."""
    name = use.removeprefix(PYTHON)
    return StudyError(
        f"the optimizer {name!r} is defined in a Python program, which has to pass it",
        hint=f"Study.load(name, optimizer={name}), or run the program that created the study; "
        "the record can be read anywhere",
    )
