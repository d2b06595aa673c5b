"""Evaluators made from Python functions: ``@evaluator(Metric("time", "us"))``."""

from __future__ import annotations

import base64
import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from dse.api.function_fingerprint import fingerprint
from dse.core.metric import Kind, Metric
from dse.errors import DseError, PluginError
from dse.system.terminal_text import visible

P = ParamSpec("P")
R = TypeVar("R")

GIVEN = "given:"
REPORTED = "told:"
"""Prefixes in the record: of a function passed in Python, and of metrics reported by hand."""


class FunctionEvaluator(Generic[P, R]):
    """Evaluator that wraps a Python function, with the metrics that it returns.

    The class is used by the decorator :func:`evaluator` and callable like the function.
    """

    def __init__(
        self,
        function: Callable[P, R],
        metrics: Sequence[Metric],
        parts: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.function = function
        self.parts = parts
        self.error: Exception | None = None  # the last one raised by the function
        self.metrics = tuple(metrics)
        self.version: str = options.pop("version") or fingerprint(function)
        self._options = {key: value for key, value in options.items() if value is not None}
        self.__qualname__ = type(function).__qualname__  # for a partial, or a callable object
        held = ("__dict__",) if inspect.isfunction(function) else ()  # not an object's attributes
        functools.update_wrapper(self, function, updated=held)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, DseError):  # a DseError is raised on purpose
                self.error = error
            raise

    @property
    def name(self) -> str:
        """Name of the evaluator in a study, unless the study gives another."""
        return _name(self.function)

    @property
    def kind(self) -> Kind:
        """Kind of the evaluator: ``measured`` or ``modelled``."""
        kind: Kind = self._options.get("kind", "measured")
        return kind

    def spec(self, name: str) -> dict[str, Any]:
        """Return the entry for this evaluator in a study file, under the given name.

        Raises:
            PluginError: its parameters have no names, or an option is invalid.
            SpecError: a unit is unknown.
        """
        from dse.registry import make

        options = {"metrics": units_of(self.metrics), **self._options}
        made = make("evaluators", "python", function=self, **options)
        return {
            "use": "python",
            "function": GIVEN + name,
            **options,
            "reads": sorted(made.reads),
            "optional": sorted(made.optional),
            "version": self.version,
            **({} if self.parts is None else {"parts": dict(self.parts)}),
        }

    def _repr_html_(self) -> str:
        from dse.api.notebook.evaluator_view import evaluator_html
        from dse.api.notebook.parts import or_message

        return or_message(
            f"Evaluator {self.name}",
            lambda: evaluator_html(self.name, self.metrics, self.spec(self.name)),
        )

    def __repr__(self) -> str:
        metrics = ", ".join(f"{m.name} [{m.unit or '1'}]" for m in self.metrics)
        return visible(f"<evaluator {self.name}: {metrics}; {self.kind}, version {self.version}>")

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return how to pickle it: by name if importable, else by value with cloudpickle.

        The inner pickle is base64-encoded, so that it does not name the main script; a worker
        would otherwise import, and thus run, that script.
        """
        import cloudpickle

        if self._importable:
            return self.__qualname__
        pickled = cloudpickle.dumps(
            (self.function, self.metrics, self.parts, self._options, self.version)
        )
        return _unpack_evaluator, (base64.b64encode(pickled),)

    @property
    def _importable(self) -> bool:
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return found is self and self.__module__ != "__main__"


def evaluator(
    *metrics: Metric | str,
    kind: Kind | None = None,
    batch: bool = False,
    units: Mapping[str, str] | None = None,
    reads: Sequence[str] | None = None,
    version: str | None = None,
    parts: Mapping[str, Any] | None = None,
    test: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], FunctionEvaluator[P, R]]:
    """Return a decorator that makes an evaluator of a function whose arguments are parameters.

    The function returns a mapping from metrics to numbers, or to tuples ``(value, standard
    error)``. If it raises :class:`~dse.errors.InfeasibleError`, the design is infeasible. Any other
    exception makes the trial fail with that message; it also ends the run if all trials so far have
    failed. A partial, a method or a callable object works, too: ``evaluator("time")(partial(kernel,
    chip="a"))``.

    Example:
        ``@evaluator(Metric("time", "us", goal="minimize"))`` before ``def kernel(tile: int): ...``

    Args:
        metrics: the metrics that the function returns, with units: ``Metric("time", "us",
            goal="minimize")``; a string is a metric without a unit.
        kind: ``measured`` (each call is a measurement and counts towards the budget), or
            ``modelled`` for a cheap and exact function, which optimizers may call freely.
        batch: whether the function takes numpy columns of n designs, each of shape (n,), and
            returns columns of shape (n,) or scalars.
        units: the unit in which each parameter is passed; default: the unit of the space, which is
            the coherent one (Hz for MHz).
        reads: the parameters to pass; default: those of its signature.
        version: part of the study's identity; default: a hash of the function's source and of the
            values it refers to (:func:`dse.api.function_fingerprint.fingerprint`).
        parts: declaration that a metric is approximately a sum over parts of the design, as in a
            study file: ``{"over": "bits", "by": "noise"}`` for all metrics, or such a mapping by
            metric.
        test: arguments with which the function measures on a test split: ``{"split": "test"}``.
            After the search, a study then measures its front on the test split.

    Raises:
        PluginError: no metric is named, a metric is not a plain number with a unit and a goal, or
            the decorated object is not a synchronous function.
    """
    if not metrics or any(callable(one) for one in metrics):
        raise PluginError(
            "an evaluator names its metrics",
            hint='write @evaluator(Metric("time", "us"), Metric("loss"))',
        )
    declared = [Metric(one) if isinstance(one, str) else one for one in metrics]
    odd = next((one for one in declared if one.words or one.part_of), None)
    if odd is not None:
        raise PluginError(
            f"the metric {odd.name!r} has words, or is part of another one",
            hint="a function returns plain numbers; write a plug-in for such metrics: "
            "docs/how-to/python.md",
        )
    options = {
        "kind": kind,
        "batch": batch or None,
        "units": units,
        "reads": reads,
        "test": None if test is None else dict(test),
    }

    def made(function: Callable[P, R]) -> FunctionEvaluator[P, R]:
        _check_answers(function)
        return FunctionEvaluator(function, declared, parts, version=version, **options)

    return made


def _check_answers(function: Any) -> None:
    """Raise PluginError unless the object can be called synchronously."""
    if not callable(function):
        hint = "put @evaluator(...) before a function"
        raise PluginError(f"{function!r} is no function", hint=hint)
    inner = inspect.unwrap(function)  # iscoroutinefunction unwraps a partial itself
    if any(map(inspect.iscoroutinefunction, (inner, inner.__call__))):
        raise PluginError(
            f"{_name(function)!r} is async, but evaluators are called synchronously",
            hint="await it in your own loop over study.ask(), and report the results yourself",
        )


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function, of the function in a partial, or of an object's class."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def reported_spec(name: str, metrics: Sequence[Metric], reads: Sequence[str]) -> dict[str, Any]:
    """Return the study-file entry of an evaluator whose metrics the calling program reports."""
    function = REPORTED + name
    return {
        "use": "python",
        "function": function,
        "metrics": units_of(metrics),
        "reads": sorted(reads),
    }


def units_of(metrics: Sequence[Metric]) -> dict[str, str]:
    """Return the unit of each metric by name."""
    return {metric.name: metric.unit for metric in metrics}


def _unpack_evaluator(pickled: bytes) -> FunctionEvaluator[Any, Any]:
    function, metrics, parts, options, version = pickle.loads(base64.b64decode(pickled))  # noqa: S301 - made by __reduce__
    return FunctionEvaluator(function, metrics, parts, version=version, **options)
