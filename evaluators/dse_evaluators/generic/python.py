"""The evaluator ``python``: a Python function that returns the metrics of a design or a batch."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.design import base, nest_members
from dse.core.metric import Failure, Metrics
from dse.core.values import Array, Floats, Ints
from dse.errors import EvaluationError, InfeasibleError, PluginError, nearest
from dse.protocols import EVERYTHING
from dse_evaluators.generic.answer import Answer, columns_of, readings, shown
from dse_evaluators.generic.options import kind_of, metrics_of, reads_of, texts_of, units_of

_GROUP = "dse.functions"

_REGISTERING = (
    f"a study imports no code by its path: a package registers functions under {_GROUP!r}, and a"
    " program of yours is called by 'use: command'"
)

_ABSENT: Mapping[str, str] = {
    "given": "{!r} is a function of the Python program that began the study",
    "told": "the metrics of {!r} are supplied by the Python program that began the study",
}
"""Reason why a study cannot be run here, by the prefix of its function's text."""

Function = Callable[..., Any]  # the result is validated after the call


class Python:
    """Evaluator that calls a function with the parameters as keyword arguments.

    The function returns a mapping from metrics to numbers. A number may come with its standard
    error, as a tuple: ``{"power": (3.1, 0.2)}``. The function raises
    :class:`~dse.errors.InfeasibleError` for an infeasible design. A parameter that is inactive in a
    design is not passed, so that the function's default applies. A list is passed as one argument:
    ``bits=[4, 8, 8]``, in a batch as an array (n, 3); ``kept={"conv1": True}``.

    Args:
        function: the name of an entry point of the group ``dse.functions``, or the function. The
            text ``given:NAME`` denotes a function that a Python program passes (:mod:`dse.api`),
            and ``told:NAME`` metrics that such a program supplies itself; without that program,
            the evaluator can be inspected but not run.
        metrics: the unit of each metric that the function returns.
        reads: the parameters to pass; by default those of the function's signature.
        optional: further parameters to pass if the space has them.
        units: the unit in which each parameter is passed; by default the coherent SI unit: Hz for
            a parameter in MHz.
        kind: ``modelled`` for a function that is fast and deterministic. ``dse check`` and
            ``dse report`` call a function of a package only if its attribute ``pure`` is true.
        batch: whether the function takes numpy columns, each (n,), and returns columns.
        test: arguments with which the function measures on a test split: ``{split: test}``. Each
            needs a default, with which the function measures on the examples of the search.
        version: must be changed whenever the function's results change; by default the version of
            the distribution that registers the function.
    """

    def __init__(  # noqa: PLR0913 - its options are its arguments
        self,
        *,
        function: str | Function,
        metrics: Mapping[str, str],
        reads: Sequence[str] | None = None,
        optional: Sequence[str] = (),
        units: Mapping[str, str] | None = None,
        kind: str = "measured",
        batch: bool = False,
        test: Mapping[str, Any] | None = None,
        version: str | None = None,
    ) -> None:
        self.provides = metrics_of(metrics)
        self.kind = kind_of(kind)
        self.missing = _missing(function)
        self._function: EntryPoint | Function
        self._function, its_version = (_nobody, "1") if self.missing else _find_function(function)
        self._batch = batch
        self.version = its_version if version is None else str(version)
        if reads is None:
            self.reads, self.optional = _signature(_load_function(self._function))
        else:
            self.reads = reads_of(reads)
            self.optional = frozenset(texts_of("optional", optional)) - self.reads
        self._test = _test_arguments(test, self.optional if reads is None else None, self.reads)
        self.optional -= self._test.keys()
        self._fixed: Mapping[str, Any] = {}
        self.units = units_of(units, self.reads | self.optional)

    @property
    def pure(self) -> bool:
        """Whether the function may be called outside a study run.

        The value is true for a function that a Python program passes, and for a package's function
        with the attribute ``pure = True``; the package is imported to find out.
        """
        if self.missing:
            return False
        try:
            function = _load_function(self._function)
        except Exception:  # noqa: BLE001 - a function that cannot be imported is never called
            return False
        return function is self._function or getattr(function, "pure", False) is True

    @property
    def starts(self) -> tuple[str, ...]:
        """Description of a package's function, with its path; empty for a passed function."""
        one = self._function
        if not isinstance(one, EntryPoint):
            return ()
        return (f"the Python function {one.name!r} of this machine: {one.value}",)

    def test_evaluator(self) -> Python | None:
        """Return an evaluator that passes the arguments of the option ``test``, if it is given."""
        if not self._test or self._fixed:
            return None
        held_out = copy.copy(self)
        held_out._fixed = self._test  # noqa: SLF001 - of this class
        return held_out

    def evaluate(self, batch: Batch) -> Metrics:
        function = _load_function(self._function)
        if self._fixed:
            function = functools.partial(function, **self._fixed)
        inputs = self.reads | self.optional
        every = EVERYTHING in self.reads
        view = batch.renamed({n: n for n in batch.names if every or base(n) in inputs})
        if self._batch:
            return self._in_columns(function, view)
        answers = [self._of(function, view.row(row)) for row in range(len(view))]
        return columns_of(answers, tuple(self.provides))

    def _of(self, function: Function, design: Mapping[str, Any]) -> Answer:
        try:
            returned = function(**nest_members(design))
        except InfeasibleError as error:
            return Failure(kind="infeasible", reason=error.problem)
        except Exception as error:  # noqa: BLE001 - any exception fails this design only
            return Failure(kind="raised", reason=f"{type(error).__name__}: {error}")
        return readings(returned, tuple(self.provides))

    def _in_columns(self, function: Function, batch: Batch) -> Metrics:
        nothing = np.full(len(batch), np.nan)
        columns = {name: nothing.copy() for name in self.provides}
        spread = {name: nothing.copy() for name in self.provides}
        for rows, active in _by_activity(batch):
            size = len(rows)
            returned = function(**_in_lists({name: batch[name][rows] for name in active}))
            for name in self.provides:
                value, error = _extract_column(returned, name)
                columns[name][rows] = _column(name, value, size)
                if error is not None:
                    spread[name][rows] = _column(f"the spread of {name}", error, size)
        return Metrics(
            columns=columns,
            spread={name: column for name, column in spread.items() if not np.isnan(column).all()},
            undefined=_find_nonfinite(columns),
        )


def _by_activity(batch: Batch) -> Iterator[tuple[Ints, list[str]]]:
    """Yield groups of designs (by index) with equal active parameters, and these names.

    One call of the function per group avoids placeholder values for inactive parameters.
    """
    names = sorted(batch.names)
    present = np.array([~batch.absent(name) for name in names]).reshape(len(names), len(batch)).T
    patterns, group = np.unique(present, axis=0, return_inverse=True)
    for place, pattern in enumerate(patterns):
        active = [name for name, is_active in zip(names, pattern, strict=True) if is_active]
        yield np.flatnonzero(group.reshape(-1) == place), active


def _in_lists(columns: Mapping[str, Array]) -> dict[str, Any]:
    """Join the columns of the elements of each list parameter, such as ``bits[0]``, ``bits[1]``.

    The result has an array (n, length) per list, or a mapping by key if the keys are names.
    """
    found: dict[str, Any] = {}
    for name, column in columns.items():
        own = base(name)
        if own == name:
            found[name] = column
        else:
            found.setdefault(own, {})[name[len(own) + 1 : -1]] = column
    return {
        name: np.column_stack([value[key] for key in sorted(value, key=int)])
        if isinstance(value, dict) and all(key.isdigit() for key in value)
        else value
        for name, value in found.items()
    }


def _extract_column(returned: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(returned, Mapping):
        like = f"{{{name!r}: [1.5, ...]}}"
        raise EvaluationError(
            f"expected a mapping from metrics to columns such as {like}, got {shown(returned)}"
        )
    if name not in returned:
        has = ", ".join(map(str, returned)) or "nothing"
        raise EvaluationError(f"the metric {name!r} is missing; there is {has}")
    value = returned[name]
    return value if isinstance(value, tuple) and len(value) == 2 else (value, None)


def _column(name: str, returned: Any, size: int) -> Floats:
    values: Array = np.asarray(returned)
    if values.dtype.kind not in "iuf":
        raise EvaluationError(f"{name} is {shown(returned)}, which are not numbers")
    if values.shape not in ((), (size,)):
        raise EvaluationError(f"{name} has the shape {values.shape} for {size} designs")
    return np.broadcast_to(values.astype(np.float64), (size,))


def _find_nonfinite(columns: Mapping[str, Floats]) -> dict[str, dict[int, str]]:
    return {
        name: {
            row: f"{name} is {values[row]}, which is not finite"
            for row in np.flatnonzero(~np.isfinite(values)).tolist()
        }
        for name, values in columns.items()
    }


def _signature(function: Function) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters that a function requires, and those that have a default.

    Raises:
        PluginError: the signature is unknown or has positional-only parameters.
    """
    hint = "write reads: [...], or wrap it in a function with named parameters"
    try:
        inner = inspect.unwrap(function, stop=_has_own_signature)
        parameters = inspect.signature(inner, follow_wrapped=False).parameters.values()
    except ValueError as error:
        raise PluginError(f"{shown(function)} has no signature", hint=hint) from error
    if any(p.kind is p.POSITIONAL_ONLY for p in parameters):
        raise PluginError(f"{shown(function)} has positional-only parameters", hint=hint)
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = frozenset(p.name for p in named if p.default is p.empty)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        needed |= {EVERYTHING}
    return needed, frozenset(p.name for p in named) - needed


def _test_arguments(
    test: object, optional: frozenset[str] | None, reads: frozenset[str]
) -> Mapping[str, Any]:
    """Return the arguments of the option ``test``.

    Args:
        test: the option.
        optional: arguments of the function that have a default; ``None`` if they are unknown.
        reads: the function's other arguments.

    Raises:
        PluginError: it is no mapping, or names no argument with a default.
    """
    if test is None:
        return {}
    if not (isinstance(test, Mapping) and test):
        hint = "arguments of the function, such as test: {split: test}"
        raise PluginError(f"test cannot be {test!r}", hint=hint)
    for name in test:
        if name in reads or (optional is not None and name not in optional):
            known = ", ".join(sorted(optional or ())) or "it has none"
            raise PluginError(
                f"test sets {name!r}, which is no argument with a default",
                hint=f"arguments with a default: {known}",
            )
    return dict(test)


def _has_own_signature(function: object) -> bool:
    """Return whether an object has its own signature, so that its wrapped function is ignored.

    This holds for a partial even if it is marked as a wrapper of the function that it calls.
    """
    return isinstance(function, functools.partial) or hasattr(function, "__signature__")


def _missing(function: str | Function) -> str:
    """Return the reason why the evaluator has no function to call; empty if it has one."""
    kind, _, name = function.partition(":") if isinstance(function, str) else ("", "", "")
    return _ABSENT[kind].format(name) if kind in _ABSENT else ""


def _nobody(**_: Any) -> Any:
    """Raise EvaluationError: the function that a Python program would pass is not available."""
    raise EvaluationError("the function is not available in this process")


def _find_function(function: str | Function) -> tuple[EntryPoint | Function, str]:
    """Return the function that an option gives, or the entry point that it names, and its version.

    Entry points are not imported yet.

    Raises:
        PluginError: there is no entry point of that name, or the option is not callable.
    """
    if not isinstance(function, str):
        return _load_function(function), "1"
    points = {point.name: point for point in entry_points(group=_GROUP)}
    if function not in points:
        by_path = ":" in function or function.endswith(".py") or not points
        hint = _REGISTERING if by_path else nearest(function, points)
        raise PluginError(f"there is no function {function!r}", hint=hint)
    found = points[function]
    alone = EntryPoint(name=found.name, value=found.value, group=found.group)  # can be pickled
    return alone, found.dist.version if found.dist else "1"


def _load_function(function: EntryPoint | Function) -> Function:
    """Return the function itself, importing an entry point.

    Raises:
        PluginError: the function cannot be imported, or is not callable.
    """
    loaded = function
    if isinstance(function, EntryPoint):
        try:
            loaded = function.load()
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"the function {function.name!r} cannot be imported: {error}",
                hint=f"it is {function.value}; is its extra installed?",
            ) from error
    if not callable(loaded):
        raise PluginError(f"{shown(loaded)} cannot be called", hint="give a function or its name")
    return loaded
