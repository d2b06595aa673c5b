"""From a study file to the plan: all that a study is, with every mistake found before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dse import units
from dse.core.design import Design
from dse.core.insight.difference import difference as space_difference
from dse.core.insight.fingerprint import outline
from dse.core.lists import Listing
from dse.core.metric import Goal
from dse.core.objective import Limit, Objective
from dse.core.parameter import Choice
from dse.core.problem import Problem
from dse.core.space import Space
from dse.core.values import Value
from dse.errors import DesignError, DseError, SpecError
from dse.pipeline import Bound, Pipeline
from dse.protocols import Evaluator
from dse.registry import check_options, load, options_of
from dse.schema.binding import bound_of, check_formulas, evaluator_of
from dse.schema.checked import model_of
from dse.schema.files import Files, resolved
from dse.schema.mistakes import Mistakes
from dse.schema.models import BudgetSpec, EvaluatorSpec, PluginSpec, StudySpec
from dse.schema.question import limits_of, objective_of, reference_of
from dse.schema.source import Source
from dse.schema.space import space_of
from dse.schema.spaces.domains import amount
from dse.schema.spaces.rules import units_of
from dse.schema.spaces.spelled import spelled

AUTO = "auto"

_PATHS = ("file", "cwd")
"""Options of evaluators that are paths, told relative to the study's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a study stops: whichever comes first; ``None`` is no bound."""

    measurements: int | None = None
    trials: int | None = None
    time_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study as it will run.

    ``identity`` holds, part by part, what must not change while the study lives; ``texts`` every
    file that it was read from, so that it can be rebuilt from its record alone.
    """

    name: str
    question: str
    path: Path
    problem: Problem
    pipeline: Pipeline
    optimizer: PluginSpec
    executor: PluginSpec
    storage: str | None
    budget: Budget
    identity: Mapping[str, Any]
    texts: Mapping[str, str] = field(repr=False)


_TOLD_CHANGES = 3


def plan_of(path: Path, *, kept: Mapping[str, str] | None = None, seed: int | None = None) -> Plan:
    """The plan of the study file at ``path``.

    Args:
        path: the study file.
        kept: file texts of a stored study, read instead of the disk.
        seed: instead of the file's.

    Raises:
        SpecErrors: with every mistake in the study and the files that it names.
    """
    files = Files(kept=kept or {})
    source = files.source(path)
    spec = model_of(StudySpec, source)
    builder = _Builder(spec, source, files)
    return builder.plan(spec.seed if seed is None else seed)


class _Builder:
    """Builds a plan section by section; a mistake in one does not hide those in the next."""

    def __init__(self, spec: StudySpec, source: Source, files: Files) -> None:
        self.spec = spec
        self.source = source
        self.files = files
        self.mistakes = Mistakes()

    def plan(self, seed: int) -> Plan:
        space = self._space()
        bound = self._bound(space)
        self.mistakes.check()
        assert space is not None
        pipeline = self._pipeline(bound)
        known = {**units_of(space.parameters), **_metric_units(bound)}
        lists = {name: one.listing for name, one in space.lists.items()}
        objectives = self._objectives(known, lists)
        limits = self._limits(known, lists)
        reference = self._guarded(
            ["reference"], lambda: reference_of(self.spec.reference, objectives)
        )
        baselines = self._baselines(space)
        budget = self._guarded(["budget"], lambda: _budget(self.spec.budget))
        self._check_plugin("optimizers", "optimizer", self.spec.optimizer)
        self._check_plugin("executors", "executor", self.spec.executor)
        if self.spec.optimizer.use == "exhaustive" and space.count() is None:
            self.mistakes.add(
                SpecError(
                    "the legal designs cannot be listed: there is a real parameter, or too many",
                    where=self.source.place(["optimizer"]),
                    hint="give real parameters steps, or use another optimizer",
                )
            )
        self.mistakes.check()
        assert pipeline is not None
        assert budget is not None
        problem = Problem(
            space=space,
            sources=pipeline.sources,
            objectives=tuple(objectives),
            limits=tuple(limits),
            seed=seed,
            baselines=tuple(baselines),
            fixed_reference=reference,
            model=pipeline.known,
        )
        return Plan(
            name=self.spec.study,
            question=self.spec.question,
            path=self.source.path,
            problem=problem,
            pipeline=pipeline,
            optimizer=self.spec.optimizer,
            executor=self.spec.executor,
            storage=self.spec.storage,
            budget=budget,
            identity=self._identity(problem, bound),
            texts=dict(self.files.texts),
        )

    def _space(self) -> Space | None:
        where = self.source.place(["space"])
        try:
            path = resolved(self.spec.space, self.source.path)
            return space_of(path, self.files, named_at=where)
        except DseError as error:
            self.mistakes.add(error, where)
            return None

    def _bound(self, space: Space | None) -> list[Bound]:
        """The evaluators, each bound; metrics of all are known before any is bound."""
        made = {}
        for name, one in self.spec.evaluators.items():
            made[name] = self._guarded(
                ["evaluators", name],
                lambda one=one: evaluator_of(one, self._options(one)),
            )
        if space is None:
            return []
        known = units_of(space.parameters)
        for name, evaluator in made.items():
            if evaluator is not None:
                known |= {f"{name}.{own}": m.unit for own, m in evaluator.provides.items()}
        bound = []
        for name, evaluator in made.items():
            if evaluator is None:
                continue
            one = self._guarded(
                ["evaluators", name],
                lambda e=evaluator, n=name: self._one_bound(n, e, known, space),
            )
            bound += [one] if one is not None else []
        return bound

    def _one_bound(
        self, name: str, evaluator: Evaluator, known: Mapping[str, str], space: Space
    ) -> Bound:
        check_formulas(name, evaluator, known)
        bind = self.spec.evaluators[name].bind
        return bound_of(name, evaluator, bind, known, parameters=space.by_name.keys())

    def _options(self, spec: EvaluatorSpec) -> dict[str, Any]:
        options = spec.options
        for key in _PATHS:
            if isinstance(options.get(key), str):
                options[key] = str(resolved(options[key], self.source.path))
        if "cwd" in options_of(load("evaluators", spec.use)):
            options.setdefault("cwd", str(self.source.path.parent))
        return options

    def _pipeline(self, bound: list[Bound]) -> Pipeline | None:
        return self._guarded(["evaluators"], lambda: Pipeline(bound))

    def _objectives(
        self, known: Mapping[str, str], lists: Mapping[str, Listing]
    ) -> list[Objective]:
        found = []
        for place, one in enumerate(self.spec.objectives):
            goal: Goal = "minimize" if one.minimize is not None else "maximize"
            text = one.minimize if one.minimize is not None else one.maximize
            objective = self._guarded(
                ["objectives", place],
                lambda text=text, goal=goal: objective_of(text, goal, known, lists),
            )
            found += [objective] if objective is not None else []
        return found

    def _limits(self, known: Mapping[str, str], lists: Mapping[str, Listing]) -> list[Limit]:
        found: list[Limit] = []
        for place, text in enumerate(self.spec.constraints):
            limits = self._guarded(
                ["constraints", place],
                lambda text=text: list(limits_of(text, known, lists)),
            )
            found += limits or []
        return found

    def _baselines(self, space: Space) -> list[Design]:
        found = []
        for place, values in enumerate(self.spec.baselines):
            design = self._guarded(
                ["baselines", place],
                lambda values=values: _legal(values, space),
            )
            found += [design] if design is not None else []
        return found

    def _check_plugin(self, group: Any, key: str, spec: PluginSpec) -> None:
        if spec.use == AUTO:
            if spec.options and key == "optimizer":
                first = next(iter(spec.options))
                error = SpecError(f"'auto' has no option {first!r}", hint="name an optimizer")
                self.mistakes.add(error, self.source.place([key, first]))
            return
        self._guarded(
            [key],
            lambda: check_options(group, spec.use, load(group, spec.use), spec.options),
        )

    def _guarded(self, path: list[str | int], make: Any) -> Any:
        """What ``make`` gives, or ``None`` with its mistake kept."""
        try:
            return make()
        except DseError as error:
            self.mistakes.add(error, self.source.place(path))
            return None

    def _identity(self, problem: Problem, bound: list[Bound]) -> dict[str, Any]:
        return {
            "space": outline(problem.space),
            "order of parameters": [p.name for p in problem.space.parameters],
            "evaluators": {
                one.name: {
                    "use": self.spec.evaluators[one.name].use,
                    "options": self.spec.evaluators[one.name].options,
                    "version": one.evaluator.version,
                    "reads": dict(sorted(one.names.items())),
                }
                for one in bound
            },
            "objectives": [f"{o.goal} {o.text} [{o.unit}]" for o in problem.objectives],
            "constraints": list(self.spec.constraints),
            "reference": list(problem.fixed_reference or []),
            "baselines": [dict(design) for design in problem.baselines],
            "optimizer": {"use": self.spec.optimizer.use, **self.spec.optimizer.options},
            "seed": problem.seed,
        }


def design_of(values: Mapping[str, Value], space: Space) -> Design:
    """The legal design of these values; quantities may be texts with a unit.

    Raises:
        DesignError: it breaks a rule of the space.
        SpecError: a quantity cannot be read.
    """
    plain: dict[str, Value] = {}
    for name, value in values.items():
        parameter = space.by_name.get(name)
        told = isinstance(value, str) and units.quantity(value) is not None
        if parameter is not None and told and not isinstance(parameter, Choice):
            plain[name] = amount(value, parameter.unit).value
        else:
            plain[name] = value
    space.check(plain)
    return space.batch([plain]).design(0)  # 1 and 1.0 are one value, and one design


def _legal(values: Mapping[str, Value], space: Space) -> Design:
    """The design, or a mistake told where the values stand and not where the rule does."""
    try:
        return design_of(values, space)
    except DesignError as error:
        rule = f" ({error.where})" if error.where else ""
        raise SpecError(error.problem, hint=error.hint + rule) from error


def _metric_units(bound: list[Bound]) -> dict[str, str]:
    return {name: metric.unit for one in bound for name, metric in one.provides.items()}


def _budget(spec: BudgetSpec) -> Budget:
    time_s = None if spec.time is None else float(amount(spec.time, "s").value)
    if time_s is not None and time_s <= 0:
        raise SpecError("a budget of time is above zero", hint="time: 20 min")
    return Budget(measurements=spec.measurements, trials=spec.trials, time_s=time_s)


def difference(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first part in which two identities differ, in words; empty if they are equal.

    The space comes first, in sentences; how its files are laid out makes no difference.
    """
    changes = space_difference(stored["space"], now["space"], spelled)
    if changes:
        more = f" (and {len(changes) - _TOLD_CHANGES} more)" if len(changes) > _TOLD_CHANGES else ""
        return "space: " + "; ".join(changes[:_TOLD_CHANGES]) + more
    for part in sorted((stored.keys() | now.keys()) - {"space"}):
        before, after = stored.get(part), now.get(part)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            keys = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
            return f"{part}.{keys[0]}: {before.get(keys[0])!r} is now {after.get(keys[0])!r}"
        if isinstance(before, list) and isinstance(after, list):
            gone = [one for one in before if one not in after] or before
            new = [one for one in after if one not in before] or after
            return f"{part}: {gone[:1]} is now {new[:1]}"
        return f"{part}: {before!r} is now {after!r}"
    return ""
