"""Checks of optimizer, executor and storage settings before a study creates these plug-ins.

An optimizer may also be a class, a function or an object of a Python program. A check of the file's
keys, some of which may be misspelt, finds whether it is a study or a space.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from inspect import unwrap
from itertools import islice
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.errors import DseError, PluginError, SpecError, StorageError, StudyError, nearest
from dse.protocols import ExpectsImprovement, OptimizerTraits, traits_of
from dse.registry import Group, check_options, load, make, names
from dse.schema.models import BudgetSpec, PluginSpec, StudySpec
from dse.schema.space.file import SpaceSpec
from dse.schema.yaml.option_types import find_mistyped_option
from dse.schema.yaml.source import SourceDocument
from dse.storage.address import FORMS, check_address
from dse.system.credentials import mask_url

AUTO = "auto"

_POSTGRES = ("postgres", "pgsql", "psycopg", "psycopg2")


def check_is_space(source: SourceDocument, where: str) -> None:
    """Check that the file which a study names as its space is not a study file.

    Raises:
        SpecError: the file is a study file.
    """
    if is_study(source.value):
        problem = f"{source.path.name} is a study, and no space"
        raise SpecError(problem, where=where, hint="name the file that has 'parameters:'")


def check_plugin(group: Group, spec: PluginSpec) -> None:
    """Check that a plug-in is installed and accepts its options.

    Raises:
        SpecError: the optimizer ``auto`` is given options.
        PluginError: there is no such plug-in, or it has no such option.
    """
    if spec.use != AUTO:
        check_options(group, spec.use, load(group, spec.use), spec.options)
    elif spec.options and group == "optimizers":
        first = next(iter(spec.options))
        problem = f"'auto' has no option {first!r}"
        raise SpecError(problem, hint="name an optimizer", part=[first])


def check_optimizer(spec: PluginSpec, objects: Objects) -> None:
    """Check that the optimizer is installed or given, and accepts its options.

    Args:
        spec: the optimizer's name and options.
        objects: the study's Python objects.

    Raises:
        StudyError: the study names an object of a Python program, and that object was not given.
        SpecError: the optimizer ``auto`` is given options.
        PluginError: there is no such plug-in, or it has no such option.
    """
    if not spec.use.startswith(PYTHON):
        check_plugin("optimizers", spec)
        return
    plugin = load_optimizer(spec.use, objects)
    check_options("optimizers", spec.use.removeprefix(PYTHON), plugin, spec.options)


def optimizer_traits(spec: PluginSpec, objects: Objects = MappingProxyType({})) -> OptimizerTraits:
    """Return the traits of a study's optimizer; defaults for ``auto`` or unknown names.

    Args:
        spec: the optimizer's name.
        objects: the study's Python objects.
    """
    known = knows_optimizer(spec.use, objects)
    return traits_of(load_optimizer(spec.use, objects)) if known else OptimizerTraits()


def check_listable(spec: PluginSpec, space: DesignSpace, objects: Objects) -> None:
    """Check that the space is finite and small enough for the ``exhaustive`` optimizer.

    Args:
        spec: the optimizer's name.
        space: the study's space.
        objects: the study's Python objects.

    Raises:
        SpecError: the feasible designs cannot be enumerated.
    """
    if optimizer_traits(spec, objects).enumerates and space.count() is None:
        problem = "the legal designs cannot be listed: there is a real parameter, or too many"
        raise SpecError(problem, hint="give real parameters steps, or use another optimizer")


def check_gain(budget: BudgetSpec, spec: PluginSpec, objects: Objects) -> None:
    """Check that the optimizer can report the expected gain that ``min_improvement`` needs.

    Args:
        budget: the study's budget.
        spec: the optimizer's name.
        objects: the study's Python objects.

    Raises:
        SpecError: the optimizer does not report the expected gain.
    """
    if budget.min_improvement is None or not knows_optimizer(spec.use, objects):
        return
    if not isinstance(load_optimizer(spec.use, objects), ExpectsImprovement):
        problem = f"the optimizer {spec.use!r} does not report an expected improvement"
        raise SpecError(problem, hint="remove 'min_improvement', or use another optimizer")


def check_gap_space(gap: object, problem: Problem) -> None:
    """Check that the gap of a study without measured metrics can cover all legal designs.

    Without measurements no surrogate is fitted, so a sample of the designs bounds nothing about the
    others.

    Args:
        gap: the gap that a budget states; ``None`` if it states none.
        problem: the study's problem.

    Raises:
        SpecError: all metrics are modelled, and the space is too large to enumerate.
    """
    if gap is None or problem.measured:
        return
    from dse.optimizers.bayesian.gap_candidates import LISTED, is_listed

    if not is_listed(problem):
        text = f"no metric is measured, and the space has no list of at most {LISTED:,} designs"
        hint = (
            "remove 'gap'; the optimizer exhaustive searches every legal design, which leaves 0 %"
        )
        raise SpecError(f"the gap has no bound: {text}", hint=hint)


def check_library(folder: str | None, spec: PluginSpec, objects: Objects) -> None:
    """Check that the optimizer learns from a library of studies.

    Args:
        folder: the library that the study names; ``None`` if it names none.
        spec: the optimizer's name.
        objects: the study's Python objects.

    Raises:
        SpecError: the optimizer does not learn from a library. ``auto`` passes, because it chooses
            an optimizer later.
    """
    if folder is None or spec.use == AUTO or not knows_optimizer(spec.use, objects):
        return
    if not optimizer_traits(spec, objects).learns_from_library:
        problem = f"the optimizer {spec.use!r} does not learn from a library of studies"
        raise SpecError(problem, hint="use 'optimizer: grey-box' or 'auto', or remove the library")


def check_workers(spec: PluginSpec) -> None:
    """Check that an executor's number of workers is valid.

    Raises:
        SpecError: the number is not an integer of at least 1.
    """
    workers = spec.options.get("workers", 1)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        hint = "it is a whole number, at least 1"
        raise SpecError(f"workers is {workers!r}", hint=hint, part=["workers"])


def check_early_stopping(spec: PluginSpec) -> None:
    """Check that an executor may pass on the intermediate results that early stopping needs.

    Raises:
        SpecError: nothing in the executor's class has the name ``on_report``.
    """
    if spec.use in names("executors") and not _may_report(load("executors", spec.use)):
        raise build_early_stopping_error(f"the executor {spec.use!r}")


def build_early_stopping_error(executor: str) -> SpecError:
    """Return the error of early stopping with an executor that passes on no intermediate results.

    Args:
        executor: the words that name the executor.
    """
    able = []
    for name in sorted(names("executors")):
        with suppress(DseError):  # it cannot be loaded here
            found = load("executors", name)
            able += [name] if isinstance(found, type) and _may_report(found) else []
    return SpecError(
        f"early_stopping has no effect with {executor}: no intermediate results are passed on",
        hint=f"remove it, or use an executor with 'on_report': {', '.join(able)}",
    )


def _may_report(executor: Any) -> bool:
    """Return whether an executor may set ``on_report``, which its constructor does as a rule.

    An executor is not constructed to find out, because it may start workers. An executor that is
    not a class, or that computes its attributes, counts as one that may; the study's run then
    checks it.
    """
    if not isinstance(executor, type):
        return True
    words: set[object] = set()
    for base in executor.__mro__:
        words |= {*vars(base), *vars(base).get("__annotations__", {})}
        for member in vars(base).values():
            code = getattr(unwrap(member) if callable(member) else member, "__code__", None)
            words |= {*code.co_names, *code.co_consts} if code is not None else set()
    return not words.isdisjoint({"on_report", "__getattr__"})


def check_storage(url: str | None) -> None:
    """Check that a text is a storage URL, without opening the storage.

    Raises:
        SpecError: the text is not a valid URL, or no storage has its scheme.
    """
    if url is None:
        return
    scheme, colon, rest = url.partition(":")
    kind = scheme.partition("+")[0]
    if not colon or not rest.startswith("//"):
        raise SpecError(f"{mask_url(url)!r} is no URL of a storage", hint=_meant(url))
    if kind in _POSTGRES:
        hint = f"write {mask_url(f'postgresql+psycopg:{rest}')}"
        raise SpecError(f"there is no storage {scheme!r}", hint=hint)
    if kind not in names("storages"):
        near = nearest(kind, names("storages"))
        hint = near if near.startswith("did you mean") else f"write {FORMS}"
        raise SpecError(f"there is no storage {scheme!r}", hint=hint)
    if kind == "sqlite" and len(rest) > 2 and not rest.startswith("///"):
        hint = f"write three slashes before a file: sqlite:///{rest.lstrip('/')}"
        raise SpecError(f"{mask_url(url)!r} names no file", hint=hint)
    if kind in ("sqlite", "postgresql"):
        try:
            check_address(url)
        except StorageError as error:
            raise SpecError(error.problem, hint=error.hint) from None


def _meant(url: str) -> str:
    """Return a hint with the probable correct form of an invalid storage URL."""
    scheme, colon, rest = url.partition(":")
    server = scheme.partition("+")[0] in (*_POSTGRES, "postgresql")
    if server or "@" in url:
        own = (rest if server else url).lstrip("/")
        return f"write {mask_url('postgresql+psycopg://' + own)}"
    file = rest.lstrip("/") if colon else url
    return f"of a file: sqlite:///{file}" if file.strip() else f"write {FORMS}"


def make_with_options(
    group: Group,
    use: str,
    subject: object,
    options: Mapping[str, Any],
    objects: Objects = MappingProxyType({}),
) -> Any:
    """Construct a plug-in, or an optimizer of a Python program, with its options.

    Args:
        group: the plug-in group.
        use: the name of the plug-in or optimizer.
        subject: the object for which it is constructed, such as a problem.
        options: its options.
        objects: the study's Python objects.

    Raises:
        PluginError: the plug-in refuses an option; the message names one of a wrong type.
    """
    try:
        if use in objects:
            return make_optimizer(PluginSpec(use=use, **options), subject, objects)
        return make(group, use, subject, **options)
    except DseError as error:
        first = next((key for key in options if key in error.problem), None)
        error.part = error.part or (() if first is None else (first,))
        raise
    except (TypeError, ValueError, AttributeError) as error:
        wrong = find_mistyped_option(objects.get(use) or load(group, use), options)
        if wrong is None:
            raise PluginError(f"the {group[:-1]} {use!r} refuses its options: {error}") from error
        option, kind = wrong
        problem = f"the option {option!r} of {use!r} cannot be {options[option]!r}"
        raise PluginError(problem, hint=f"its type is {kind}", part=[option]) from error


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
        StudyError: the study names an object of a Python program, and that object was not given.
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
        StudyError: the study names an object of a Python program, and that object was not given.
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


_DECISIVE = frozenset({"study", "evaluators", "objectives"})
_OF_STUDIES, _OF_SPACES = StudySpec.model_fields.keys(), SpaceSpec.model_fields.keys()
_SIMILAR = 0.8
_MOST_KEYS = 100
"""Number of keys that are checked for misspellings: each comparison is slow."""


def is_study(value: Mapping[str, Any]) -> bool:
    """Return whether a YAML value is the content of a study file, even with misspelt keys.

    The key ``evaluator:`` alone is enough, and so is ``space: x.yaml`` with any second key.
    """
    if value.keys() & _DECISIVE:
        return True
    if "parameters" in value:
        return False
    if _names_file(value.get("space")):
        return len(value) > 1
    if value.keys() & (_OF_SPACES - _OF_STUDIES):
        return False
    own = sorted(_OF_STUDIES - _OF_SPACES)
    keys = islice(value, _MOST_KEYS)
    return any(get_close_matches(str(key)[:60], own, n=1, cutoff=_SIMILAR) for key in keys)


def is_space(value: Mapping[str, Any]) -> bool:
    """Return whether a YAML value is a space file: not a study, and with a key of a space."""
    return not is_study(value) and bool(value.keys() & _OF_SPACES)


def _names_file(value: object) -> bool:
    return isinstance(value, str) and PurePath(value).suffix in (".yaml", ".yml")
