"""A function of a notebook as an evaluator: ``@evaluator(Metric("time", "us"))``."""

from __future__ import annotations

import base64
import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from dse.api.fingerprint import fingerprint
from dse.core.metric import Kind, Metric
from dse.errors import DseError, PluginError
from dse.system.terminal_text import visible

P = ParamSpec("P")
R = TypeVar("R")

GIVEN = "given:"
TOLD = "told:"
"""How the record names a function that a program gives, and metrics that it tells itself."""


class FunctionEvaluator(Generic[P, R]):
    """A function with its metrics; made by :func:`evaluator`, and called like the function."""

    def __init__(self, function: Callable[P, R], metrics: Sequence[Metric], **options: Any) -> None:
        self.function = function
        self.error: Exception | None = None  # the last that it raised
        self.metrics = tuple(metrics)
        self.version: str = options.pop("version") or fingerprint(function)
        self._options = {key: value for key, value in options.items() if value is not None}
        self.__qualname__ = type(function).__qualname__  # of a partial, or an object with a call
        held = ("__dict__",) if inspect.isfunction(function) else ()  # objects keep what they hold
        functools.update_wrapper(self, function, updated=held)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, DseError):  # which an evaluator raises on purpose
                self.error = error
            raise

    @property
    def name(self) -> str:
        """Name of the evaluator where a study gives no other."""
        return _name(self.function)

    @property
    def kind(self) -> Kind:
        """``measured`` or ``modelled``."""
        kind: Kind = self._options.get("kind", "measured")
        return kind

    def spec(self, name: str) -> dict[str, Any]:
        """Return the entry for this evaluator in a study file.

        Raises:
            PluginError: its parameters have no names, or an option is off.
            SpecError: there is no such unit.
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
        }

    def _repr_html_(self) -> str:
        from dse.api.notebook.evaluator import evaluator_html
        from dse.api.notebook.parts import or_message

        return or_message(
            f"Evaluator {self.name}",
            lambda: evaluator_html(self.name, self.metrics, self.spec(self.name)),
        )

    def __repr__(self) -> str:
        metrics = ", ".join(f"{m.name} [{m.unit or '1'}]" for m in self.metrics)
        return visible(f"<evaluator {self.name}: {metrics}; {self.kind}, version {self.version}>")

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By its name where another process can import it, else with all that it refers to.

        The pickle is spelled so that it does not name the main script, which a worker would run.
        """
        import cloudpickle

        if self._importable:
            return self.__qualname__
        told = cloudpickle.dumps((self.function, self.metrics, self._options, self.version))
        return _unpack_evaluator, (base64.b64encode(told),)

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
) -> Callable[[Callable[P, R]], FunctionEvaluator[P, R]]:
    """Make a function of parameters an evaluator of a study.

    It returns a mapping from metrics to numbers; a tuple ``(value, standard error)`` is a number
    too. :class:`~dse.errors.InfeasibleError` says that the design cannot exist; any other exception
    is a failed trial, with its message kept, and ends a run of which no trial has come out yet. A
    partial, a method or an object that can be called
    will do, too: ``evaluator("time")(partial(kernel, chip="a"))``.

    Example:
        ``@evaluator(Metric("time", "us", goal="minimize"))`` before ``def kernel(tile: int): ...``

    Args:
        metrics: what it tells, with units: ``Metric("time", "us", goal="minimize")``; a text is a
            metric without a unit.
        kind: ``measured`` (a call is a measurement, and counts for the budget), or ``modelled``
            for a function that is cheap and exact, which optimizers may then call as they like.
        batch: it takes columns of numpy, each (n,), and returns columns, (n,) or one number.
        units: the unit in which a parameter is wanted; without one, in that of the space, which is
            the coherent one: Hz for MHz.
        reads: the parameters to pass; those of its signature where not given.
        version: part of the study's identity; where not given, a hash of the function's text and
            of what it refers to (:func:`dse.api.fingerprint.fingerprint`).

    Raises:
        PluginError: no metric is named, one is more than a number with a unit and a goal, or what
            is decorated is no function that returns its answer.
    """
    if not metrics or any(callable(one) for one in metrics):
        raise PluginError(
            "an evaluator names its metrics",
            hint='write @evaluator(Metric("time", "us"), Metric("loss"))',
        )
    told = [Metric(one) if isinstance(one, str) else one for one in metrics]
    odd = next((one for one in told if one.words or one.part_of), None)
    if odd is not None:
        raise PluginError(
            f"the metric {odd.name!r} has words, or is part of another one",
            hint="a plug-in can tell such metrics: docs/how-to/python.md; a function tells numbers",
        )
    options = {"kind": kind, "batch": batch or None, "units": units, "reads": reads}

    def made(function: Callable[P, R]) -> FunctionEvaluator[P, R]:
        _check_answers(function)
        return FunctionEvaluator(function, told, version=version, **options)

    return made


def _check_answers(function: Any) -> None:
    """Nothing, if a call gives an answer, and not something that is to be waited for."""
    if not callable(function):
        hint = "@evaluator(...) stands before a function"
        raise PluginError(f"{function!r} is no function", hint=hint)
    inner = inspect.unwrap(function)  # iscoroutinefunction looks into a partial itself
    if any(map(inspect.iscoroutinefunction, (inner, inner.__call__))):
        raise PluginError(
            f"{_name(function)!r} is async, and an evaluator is called and not awaited",
            hint="await it in a loop of your own: study.ask() and study.tell()",
        )


def _name(function: Callable[..., Any]) -> str:
    """The function's; of a partial that of its function, of an object that of its class."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def told_spec(name: str, metrics: Sequence[Metric], reads: Sequence[str]) -> dict[str, Any]:
    """Return the entry of a study file for metrics that the program reports itself."""
    function = TOLD + name
    return {
        "use": "python",
        "function": function,
        "metrics": units_of(metrics),
        "reads": sorted(reads),
    }


def units_of(metrics: Sequence[Metric]) -> dict[str, str]:
    """The unit of each metric by name."""
    return {metric.name: metric.unit for metric in metrics}


def _unpack_evaluator(told: bytes) -> FunctionEvaluator[Any, Any]:
    function, metrics, options, version = pickle.loads(base64.b64decode(told))  # noqa: S301 - ours
    return FunctionEvaluator(function, metrics, version=version, **options)
