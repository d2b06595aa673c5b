"""Conversion of a study defined in Python to the document of the equivalent study file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, get_args

from dse.api.function_evaluators import FunctionEvaluator, reported_spec
from dse.api.option_objects import name_objects
from dse.api.python_optimizer import Given
from dse.core.metric import Goal, Metric
from dse.errors import SpecError, nearest
from dse.protocols import EVERYTHING
from dse.schema.yaml.files import OLD_KEYS

AnyEvaluator = FunctionEvaluator[Any, Any] | Mapping[str, Any]
"""A function made by ``@evaluator``, or an entry of a study file: ``{"use": "...", ...}``."""

Evaluators = Mapping[str, AnyEvaluator] | Sequence[FunctionEvaluator[Any, Any]]
Goals = str | Sequence[str] | Mapping[str, str]
"""Expressions over metrics; in a mapping, by the name under which each is shown."""

Plugin = str | Mapping[str, Any]
"""A plug-in's name, or a mapping with its options: ``{"use": "nsga2", "population": 40}``."""

OptimizerOption = Given | Mapping[str, Any]
"""A plug-in or an optimizer of the program, also in a mapping with its options."""


class StudyOptions(TypedDict, total=False):
    """Keys of a study file, besides its name, its space and its evaluators.

    ``minimize`` and ``maximize`` are expressions over metrics, such as ``"kernel.time"``;
    ``"time"`` suffices if only one evaluator provides a metric of this name. Without them, each
    metric with a goal is an objective. ``log_scale`` names the objectives, by formula or label,
    whose logarithms are optimized (``scale: log`` in a study file). Without an ``executor``,
    measuring functions run in this process. The ``optimizer`` may also be a class, a function or an
    object of the program.
    """

    question: str
    minimize: Goals
    maximize: Goals
    log_scale: str | Sequence[str]
    constraints: str | Sequence[str]
    unread: str | Sequence[str]
    reference: Mapping[str, Any]
    baselines: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]
    scenarios: Mapping[str, Mapping[str, Any]]
    fidelities: Mapping[str, Sequence[str]]
    transfer_from: Mapping[str, str] | Sequence[str | Mapping[str, str]]
    budget: Mapping[str, Any]
    retries: Mapping[str, int]
    storage_patience: str | float
    early_stopping: Mapping[str, Any]
    judge: str
    optimizer: OptimizerOption
    executor: Plugin
    seed: int


ReportedMetrics = Metric | str | Sequence[Metric | str] | Mapping[Any, Sequence[str] | str | None]
"""Metrics that the program reports; in a mapping, each with the parameters it depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSpecs:
    """Evaluators of a study by name: their study-file entries, Python objects and metrics."""

    specs: Mapping[str, Mapping[str, Any]]
    objects: Mapping[str, Any]
    metrics: Mapping[str, Metric]

    @staticmethod
    def of(
        evaluators: Evaluators, reported: Mapping[str, ReportedMetrics] | None = None
    ) -> EvaluatorSpecs:
        """Return the study-file entries, functions and metrics of the given evaluators.

        Metrics that the caller reports and that depend on the same parameters form one evaluator;
        from the second such evaluator on, a number is appended to the name. A reported metric given
        as a string has no unit.

        Args:
            evaluators: functions and plug-ins.
            reported: metrics that the caller reports, by the name of their evaluator.

        Raises:
            SpecError: two evaluators have the same name, there is no evaluator, or a reported
                metric is invalid.
        """
        named = _map_by_name(evaluators)
        specs: dict[str, Mapping[str, Any]] = {}
        objects: dict[str, Any] = {}
        metrics: dict[str, Metric] = {}
        for name, one in named.items():
            if isinstance(one, FunctionEvaluator):
                specs[name] = one.spec(name)
                objects[specs[name]["function"]] = one
                metrics |= {f"{name}.{metric.name}": metric for metric in one.metrics}
            else:
                specs[name], given = name_objects(name, one)
                objects |= given
        for word, stated in (reported or {}).items():
            for place, (reads, own) in enumerate(_group_by_reads(stated).items(), start=1):
                name = word if place == 1 else f"{word}{place}"
                specs[name] = reported_spec(name, own, reads)
                metrics |= {f"{name}.{metric.name}": metric for metric in own}
        if not specs:
            raise SpecError(
                "a study needs an evaluator, or metrics that the program reports",
                hint='evaluators=[kernel], or metrics=[Metric("time", "us", goal="minimize")]',
            )
        return EvaluatorSpecs(specs=specs, objects=objects, metrics=metrics)

    def objectives(self, minimize: Goals, maximize: Goals) -> list[dict[str, str]]:
        """Return the objectives as study-file entries; by default, each metric that has a goal."""
        asked = [
            *self._entries("minimize", minimize),
            *self._entries("maximize", maximize),
        ]
        if asked:
            return asked
        goals = {name: one.goal for name, one in self.metrics.items() if one.goal is not None}
        if not goals:
            raise SpecError(
                "nothing is to be minimized or maximized",
                hint='set minimize="kernel.time", or give a metric its goal: '
                'Metric("time", "us", goal="minimize")',
            )
        return [{goal: name} for name, goal in goals.items()]

    def set_log_scales(self, objectives: list[dict[str, str]], named: str | Sequence[str]) -> None:
        """Set ``scale: log`` in the entries of the named objectives.

        Args:
            objectives: study-file entries from :meth:`objectives`; changed in place.
            named: formulas, metric names or labels of objectives.

        Raises:
            SpecError: a name is no objective.
        """
        for text in [named] if isinstance(named, str) else named:
            names = {text, self._full(text)}
            own = [one for one in objectives if names & set(one.values())]
            if not own:
                known = [
                    one.get("label") or one.get("minimize") or one["maximize"] for one in objectives
                ]
                raise SpecError(
                    f"'log_scale' names {text!r}, which is no objective",
                    hint=nearest(text, known),
                )
            for one in own:
                one["scale"] = "log"

    def _entries(self, goal: Goal, goals: Goals) -> list[dict[str, str]]:
        if isinstance(goals, Mapping):
            return [{goal: self._full(text), "label": label} for label, text in goals.items()]
        listed = [goals] if isinstance(goals, str) else goals
        return [{goal: self._full(text)} for text in listed]

    def _full(self, text: str) -> str:
        """Return ``evaluator.metric`` for the name of a metric, if only one evaluator provides it.

        Any other text is returned unchanged.
        """
        found = [full for full, one in self.metrics.items() if one.name == text]
        return found[0] if len(found) == 1 else text


def _group_by_reads(reported: ReportedMetrics) -> dict[tuple[str, ...], list[Metric]]:
    """Return the caller-reported metrics, grouped by the parameters that they depend on.

    Raises:
        SpecError: an entry is not a metric, or its parameters are not names.
    """
    if isinstance(reported, Metric | str):
        reported = [reported]
    pairs = reported.items() if isinstance(reported, Mapping) else ((one, None) for one in reported)
    found: dict[tuple[str, ...], list[Metric]] = {}
    for one, reads in pairs:
        if not isinstance(one, Metric | str):
            raise SpecError(f"{one!r} is no metric", hint=_REPORTED_HINT)
        names = [EVERYTHING] if reads is None else [reads] if isinstance(reads, str) else reads
        try:
            key = tuple(sorted(dict.fromkeys(names)))
        except TypeError:
            key = ()
        metric = Metric(one) if isinstance(one, str) else one
        if not key or not all(isinstance(name, str) for name in key):
            raise SpecError(
                f"{metric.name} reads {reads!r}, which are no parameters", hint=_REPORTED_HINT
            )
        found.setdefault(key, []).append(metric)
    return found


_REPORTED_HINT = (
    'metrics=[Metric("time", "us")], or with what each reads: metrics={"accuracy": ["bits"]}'
)


def _map_by_name(evaluators: Evaluators) -> Mapping[str, AnyEvaluator]:
    if isinstance(evaluators, Mapping):
        for name, given in evaluators.items():
            if not isinstance(given, FunctionEvaluator | Mapping):
                raise _no_evaluator(given, f"evaluators.{name}")
        return evaluators
    if isinstance(evaluators, FunctionEvaluator):
        return {evaluators.name: evaluators}
    if not isinstance(evaluators, Iterable):
        raise SpecError(f"{evaluators!r} is no list of evaluators", hint="evaluators=[kernel]")
    return _by_own_names(evaluators)


def _by_own_names(evaluators: Iterable[FunctionEvaluator[Any, Any]]) -> dict[str, AnyEvaluator]:
    found: dict[str, AnyEvaluator] = {}
    for one in evaluators:
        if not isinstance(one, FunctionEvaluator):
            raise _no_evaluator(one)
        if not one.name.isidentifier():
            raise SpecError(
                f"an evaluator cannot be called {one.name!r}",
                hint='give it a name: evaluators={"kernel": ...}',
            )
        if one.name in found:
            raise SpecError(
                f"two evaluators are called {one.name!r}", hint="name them: evaluators={...}"
            )
        found[one.name] = one
    return found


def _no_evaluator(given: object, where: str = "") -> SpecError:
    return SpecError(
        f"{given!r} is no evaluator",
        where=where,
        hint="put @evaluator(Metric(...)) before the function; a plug-in has a name: "
        'evaluators={"chip": {"use": "accelerators.systolic", ...}}',
    )


def document_of(name: str, cast: EvaluatorSpecs, asked: StudyOptions) -> dict[str, Any]:
    """Return the content of the study file that is equivalent to a study defined in Python.

    The space is left out.

    Args:
        name: the study's name.
        cast: the study's evaluators.
        asked: the other keys of the study file.

    Raises:
        SpecError: a key is unknown.
    """
    known = {*StudyOptions.__annotations__, *OLD_KEYS}
    odd = next((key for key in asked if key not in known), None)
    if odd is not None:
        raise SpecError(f"a study has no {odd!r}", hint=nearest(odd, StudyOptions.__annotations__))
    section = {k: one for k, one in asked.items() if k not in (*get_args(Goal), "log_scale")}
    for key in ("constraints", "unread"):
        if isinstance(section.get(key), str):
            section[key] = [section[key]]
    if any(getattr(one, "kind", "measured") == "measured" for one in cast.objects.values()):
        section.setdefault("executor", "serial")
    objectives = cast.objectives(asked.get("minimize", ()), asked.get("maximize", ()))
    cast.set_log_scales(objectives, asked.get("log_scale", ()))
    return {"study": name, **section, "evaluators": cast.specs, "objectives": objectives}
