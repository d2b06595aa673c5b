"""Python functions that return metrics of a design, or of complete columns of designs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.design import base, nest_members
from dse.core.metric import Fault, Metrics
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
    "told": "the metrics of {!r} are told by a Python program, with ask() and tell()",
}
"""Why a study cannot be run here, by what its function's text begins with."""

Function = Callable[..., Any]  # what it returns is judged when it has returned


class Python:
    """Calls a function with the parameters by name; it returns a mapping from metrics to numbers.

    A number may come with its standard error, as a tuple: ``{"power": (3.1, 0.2)}``. The function
    raises :class:`~dse.errors.InfeasibleError` for a design that cannot exist. A parameter that is
    inactive in a design is not passed, so that the function's own default holds. A list is passed
    as one argument: ``bits=[4, 8, 8]``, in a batch as an array (n, 3); ``kept={"conv1": True}``.

    Args:
        function: the name of an entry point of the group ``dse.functions``, or the function. The
            text ``given:NAME`` stands for one that a Python program gives (:mod:`dse.api`), and
            ``told:NAME`` for metrics that one tells itself; without that program, such an
            evaluator can be read about but not run.
        metrics: the unit of each metric that the function tells.
        reads: the parameters to pass; those of the function's signature where not given.
        optional: beside ``reads``, those that the space may lack.
        units: the unit in which a parameter is wanted; without one, in that of the space, which
            is the coherent one: Hz for MHz.
        kind: ``modelled`` for a function that is free and exact. ``dse check`` and ``dse report``
            call one of a package only if it has a true attribute ``pure``.
        batch: the function takes columns of numpy, each (n,), and returns columns.
        version: to be changed whenever the function's numbers change; where not given, that of
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
        self.units = units_of(units, self.reads | self.optional)

    @property
    def pure(self) -> bool:
        """True for a function given by the program, or a package's with ``f.pure = True``.

        A package's function is imported to know it.
        """
        if self.missing:
            return False
        try:
            function = _load_function(self._function)
        except Exception:  # noqa: BLE001 - one that cannot be imported is not called either
            return False
        return function is self._function or getattr(function, "pure", False) is True

    @property
    def starts(self) -> tuple[str, ...]:
        """The function of an installed package, with the place that it is imported from."""
        one = self._function
        if not isinstance(one, EntryPoint):
            return ()
        return (f"the Python function {one.name!r} of this machine: {one.value}",)

    def evaluate(self, batch: Batch) -> Metrics:
        function = _load_function(self._function)
        told = self.reads | self.optional
        every = EVERYTHING in self.reads
        view = batch.renamed({n: n for n in batch.names if every or base(n) in told})
        if self._batch:
            return self._in_columns(function, view)
        answers = [self._of(function, view.row(row)) for row in range(len(view))]
        return columns_of(answers, tuple(self.provides))

    def _of(self, function: Function, design: Mapping[str, Any]) -> Answer:
        try:
            said = function(**nest_members(design))
        except InfeasibleError as error:
            return Fault(kind="infeasible", reason=error.problem)
        except Exception as error:  # noqa: BLE001 - whatever it raises costs this row only
            return Fault(kind="raised", reason=f"{type(error).__name__}: {error}")
        return readings(said, tuple(self.provides))

    def _in_columns(self, function: Function, batch: Batch) -> Metrics:
        nothing = np.full(len(batch), np.nan)
        columns = {name: nothing.copy() for name in self.provides}
        spread = {name: nothing.copy() for name in self.provides}
        for rows, active in _by_activity(batch):
            size = len(rows)
            said = function(**_in_lists({name: batch[name][rows] for name in active}))
            for name in self.provides:
                value, error = _extract_column(said, name)
                columns[name][rows] = _column(name, value, size)
                if error is not None:
                    spread[name][rows] = _column(f"the spread of {name}", error, size)
        return Metrics(
            columns=columns,
            spread={name: column for name, column in spread.items() if not np.isnan(column).all()},
            undefined=_find_nonfinite(columns),
        )


def _by_activity(batch: Batch) -> Iterator[tuple[Ints, list[str]]]:
    """The rows grouped by which parameters are active, so that no call sees a filler."""
    names = sorted(batch.names)
    present = np.array([~batch.absent(name) for name in names]).reshape(len(names), len(batch)).T
    patterns, group = np.unique(present, axis=0, return_inverse=True)
    for place, pattern in enumerate(patterns):
        active = [name for name, is_active in zip(names, pattern, strict=True) if is_active]
        yield np.flatnonzero(group.reshape(-1) == place), active


def _in_lists(columns: Mapping[str, Array]) -> dict[str, Any]:
    """The columns by name; a list's as one array, (n, members), or by key where keys are words."""
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


def _extract_column(said: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(said, Mapping):
        like = f"{{{name!r}: [1.5, ...]}}"
        raise EvaluationError(
            f"expected a mapping from metrics to columns such as {like}, got {shown(said)}"
        )
    if name not in said:
        has = ", ".join(map(str, said)) or "nothing"
        raise EvaluationError(f"the metric {name!r} is missing; there is {has}")
    value = said[name]
    return value if isinstance(value, tuple) and len(value) == 2 else (value, None)


def _column(name: str, said: Any, size: int) -> Floats:
    values: Array = np.asarray(said)
    if values.dtype.kind not in "iuf":
        raise EvaluationError(f"{name} is {shown(said)}, which are no numbers")
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
        PluginError: its parameters have no names to pass them by.
    """
    hint = "say reads: [...], or wrap it in a function with named parameters"
    try:
        inner = inspect.unwrap(function, stop=_has_own_signature)
        parameters = inspect.signature(inner, follow_wrapped=False).parameters.values()
    except ValueError as error:
        raise PluginError(f"{shown(function)} has no signature", hint=hint) from error
    if any(p.kind is p.POSITIONAL_ONLY for p in parameters):
        raise PluginError(f"{shown(function)} takes its parameters by place", hint=hint)
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = frozenset(p.name for p in named if p.default is p.empty)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        needed |= {EVERYTHING}
    return needed, frozenset(p.name for p in named) - needed


def _has_own_signature(function: object) -> bool:
    """Return whether a function has its own signature.

    A partial has one too, even if it is marked as a wrapper of the function that it calls.
    """
    return isinstance(function, functools.partial) or hasattr(function, "__signature__")


def _missing(function: str | Function) -> str:
    """Return the reason why there is no function to call; empty if there is one."""
    kind, _, name = function.partition(":") if isinstance(function, str) else ("", "", "")
    return _ABSENT[kind].format(name) if kind in _ABSENT else ""


def _nobody(**_: Any) -> Any:
    """In place of a function that is not here."""
    raise EvaluationError("the function is not here")


def _find_function(function: str | Function) -> tuple[EntryPoint | Function, str]:
    """Return the function or the entry point of that name, with its version.

    Nothing is imported yet.

    Raises:
        PluginError: there is no entry point of that name, or what was given cannot be called.
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
    """Return the function itself; an entry point is imported when it is first needed.

    Raises:
        PluginError: it cannot be imported, or cannot be called.
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
