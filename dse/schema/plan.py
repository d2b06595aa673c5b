"""From a study file to the plan: all that a study is, with every mistake found before it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dse.bound import Bound
from dse.core.design import Design
from dse.core.expression import Expression
from dse.core.insight.fingerprint import outline
from dse.core.lists import Listing
from dse.core.metric import FaultKind, Goal
from dse.core.objective import Limit, Objective
from dse.core.problem import Problem
from dse.core.space import Space
from dse.dimensions import check_shares
from dse.early_rules import Rule
from dse.errors import DseError, SpecError, SpecErrors
from dse.pipeline import Pipeline
from dse.registry import check_options, load, make, names, options_of
from dse.schema.alone import problems_alone
from dse.schema.assumptions import Assumption, assumptions_of
from dse.schema.baselines import check_name, named, told_baselines
from dse.schema.budgets import Budget, budget_of
from dse.schema.cast import Cast
from dse.schema.checked import model_of
from dse.schema.claim_rules import judging_metrics
from dse.schema.claims import Claim, Reader, claims_of
from dse.schema.designs import legal_design
from dse.schema.early import early_of
from dse.schema.fidelities import ladder_of, stages_of
from dse.schema.files import Files, resolved
from dse.schema.formulas import Formulas
from dse.schema.kinds import is_space
from dse.schema.mistakes import Mistakes
from dse.schema.models import (
    ClaimSpec,
    EvaluatorSpec,
    FindingSpec,
    PluginSpec,
    PriorSpec,
    StudySpec,
)
from dse.schema.question import check_label, limits_of, objective_of, reference_of
from dse.schema.retries import retries_of
from dse.schema.scenarios import weights_of
from dse.schema.source import Source
from dse.schema.space import space_of
from dse.schema.spaces.rules import units_of
from dse.schema.unread import Readers

AUTO = "auto"

_PATHS = ("file", "cwd")
"""Options of evaluators that are paths, told relative to the study's file."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study as it will run.

    ``identity`` holds, part by part, what must not change while the study lives; ``texts`` every
    file that it was read from, so that it can be rebuilt from its record alone. ``weights`` are the
    shares of its scenarios, and ``alone`` the problem as each of them would ask it. ``awaited`` are
    baselines that must be measured before any objective has a number. ``claims`` are those of
    papers that the study is held against, and findings of its own; they change nothing of how it
    runs. ``assumptions`` are what print does not give. ``warnings`` are what a new study is refused
    for, and a stored one may have. ``objects`` are what a Python program gave in place of texts.
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
    retries: Mapping[FaultKind, int]
    prior: tuple[PriorSpec, ...]
    stages: Mapping[str, int]
    identity: Mapping[str, Any]
    texts: Mapping[str, str] = field(repr=False)
    weights: Mapping[str, float] = field(default_factory=dict)
    alone: Mapping[str, Problem] = field(default_factory=dict, repr=False)
    awaited: Mapping[str, Design] = field(default_factory=dict)
    early: Rule | None = None
    claims: tuple[Claim, ...] = field(default=(), repr=False)
    assumptions: tuple[Assumption, ...] = field(default=(), repr=False)
    warnings: tuple[str, ...] = ()
    objects: Mapping[str, Any] = field(default_factory=dict, repr=False)


def plan_of(
    path: Path,
    *,
    kept: Mapping[str, str] | None = None,
    seed: int | None = None,
    optimizer: PluginSpec | None = None,
    measured: Mapping[str, Mapping[str, float]] | None = None,
    documents: Mapping[str, Mapping[str, Any]] | None = None,
    objects: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of the study file at ``path``.

    Args:
        path: the study file.
        kept: file texts of a stored study, read instead of the disk.
        seed: instead of the file's.
        optimizer: instead of the file's.
        measured: what was measured of each named baseline.
        documents: what files say that were never written, by path.
        objects: what an evaluator's option becomes that is one of these texts: ``given:kernel``.

    Raises:
        SpecErrors: with every mistake in the study and the files that it names.
    """
    files = Files(kept=kept or {}, documents=documents or {})
    source = files.source(path)
    if is_space(source.value):
        hint = f"a study names it: 'space: {path.name}'; dse init writes a first one"
        told = SpecError("this is no study", where=source.place(["space"]), hint=hint)
        raise SpecErrors([told])
    spec = model_of(StudySpec, source)
    if optimizer is not None:
        spec = spec.model_copy(update={"optimizer": optimizer})
    builder = _Builder(spec, source, files, objects or {})
    return builder.plan(spec.seed if seed is None else seed, measured or {})


class _Builder:
    """Builds a plan section by section; a mistake in one does not hide those in the next."""

    def __init__(
        self, spec: StudySpec, source: Source, files: Files, objects: Mapping[str, Any]
    ) -> None:
        self.spec = spec
        self.objects = objects
        self.source = source
        self.files = files
        self.mistakes = Mistakes()
        self.cast = Cast(spec, source, self.mistakes, self._options)

    def plan(self, seed: int, measured: Mapping[str, Mapping[str, float]]) -> Plan:
        space = self._space()
        bound, scenarios = self.cast.bound(space)
        self.mistakes.check()
        assert space is not None
        pipeline = self._pipeline(bound)
        known = {**units_of(space.parameters), **_metric_units(bound)}
        lists = {name: one.listing for name, one in space.lists.items()}
        designs = self._baselines(space)
        baselines = told_baselines(
            designs, Pipeline(bound, frozenset()), measured, known=known, lists=lists
        )
        formulas = Formulas(scenarios=scenarios, baselines=baselines)
        objectives = self._objectives(formulas.objective, known, lists)
        limits = self._limits(formulas.rules, known, lists)
        reference = self._guarded(
            ["reference"], lambda: reference_of(self.spec.reference, objectives)
        )
        budget = self._guarded(["budget"], lambda: budget_of(self.spec.budget))
        claims, assumptions = self._claims(known, lists, designs)
        self._check_plugins(space)
        ladders = self._ladders(pipeline)
        warnings = self._unread(space, bound, objectives, limits)
        self.mistakes.check()
        pipeline = Pipeline(bound, _deciding(objectives, limits, ladders))
        problem = Problem(
            space=space,
            sources=pipeline.sources,
            objectives=tuple(objectives),
            limits=tuple(limits),
            seed=seed,
            baselines=tuple(designs.values()),
            fixed_reference=reference,
            model=pipeline.known,
            ladders=ladders,
        )
        self._check_factorial(problem)
        identity = self._identity(problem, bound)
        problem = replace(problem, identity=json.dumps(identity, sort_keys=True, default=str))
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
            retries=retries_of(self.spec.retries),
            prior=tuple(self.spec.prior),
            stages=stages_of(pipeline.bound, pipeline.sources, ladders),
            identity=identity,
            texts=dict(self.files.texts),
            weights=scenarios.weights,
            alone=problems_alone(problem, self.spec, formulas, known, lists),
            awaited=baselines.awaited,
            early=self._early(problem),
            claims=claims,
            assumptions=assumptions,
            warnings=warnings,
            objects=self.objects,
        )

    def _claims(
        self,
        known: Mapping[str, str],
        lists: Mapping[str, Listing],
        designs: Mapping[str | int, Design],
    ) -> tuple[tuple[Claim, ...], tuple[Assumption, ...]]:
        fresh = not self.files.kept  # what was begun once stays legible
        reader = Reader(
            known=known,
            lists=lists,
            designs=designs,
            judging=judging_metrics(known, self.spec.evaluators) if fresh else frozenset(),
            strict=fresh,
        )
        specs: list[ClaimSpec | FindingSpec] = [*self.spec.reproduces, *self.spec.finds]
        claims = claims_of(specs, reader, self.source, self.mistakes)
        return claims, assumptions_of(self.spec, self.source, self.files, self.mistakes)

    def _early(self, problem: Problem) -> Rule | None:
        rule: Rule | None = self._guarded(["early"], lambda: early_of(self.spec.early, problem))
        self.mistakes.check()
        return rule

    def _space(self) -> Space | None:
        where = self.source.place(["space"])
        try:
            path = resolved(self.spec.space, self.source.path)
            return space_of(path, self.files, named_at=where)
        except DseError as error:
            self.mistakes.add(error, where)
            return None

    def _options(self, spec: EvaluatorSpec) -> dict[str, Any]:
        options = spec.options
        for key, told in options.items():
            if isinstance(told, str) and told in self.objects:
                options[key] = self.objects[told]
        for key in _PATHS:
            if isinstance(options.get(key), str):
                options[key] = str(resolved(options[key], self.source.path))
        if "cwd" in options_of(load("evaluators", spec.use)):
            options.setdefault("cwd", str(self.source.path.parent))
        return options

    def _pipeline(self, bound: list[Bound]) -> Pipeline:
        made: Pipeline | None = self._guarded(["evaluators"], lambda: Pipeline(bound))
        self.mistakes.check()
        assert made is not None
        return made

    def _objectives(
        self,
        read: Callable[[str, Goal], Expression],
        known: Mapping[str, str],
        lists: Mapping[str, Listing],
    ) -> list[Objective]:
        found: list[Objective] = []
        for place, one in enumerate(self.spec.objectives):
            goal: Goal = "minimize" if one.minimize is not None else "maximize"
            text = one.minimize if one.minimize is not None else one.maximize
            objective = self._guarded(
                ["objectives", place],
                lambda text=text, goal=goal: objective_of(read(text, goal), goal, known, lists),
            )
            if objective is not None:
                label = one.label or ""
                self._guarded(["objectives", place], lambda n=label: check_label(n, found, known))
                found.append(replace(objective, label=label))
        return found

    def _limits(
        self,
        read: Callable[[str], Iterable[Expression]],
        known: Mapping[str, str],
        lists: Mapping[str, Listing],
    ) -> list[Limit]:
        found: list[Limit] = []
        for place, text in enumerate(self.spec.constraints):
            limits = self._guarded(
                ["constraints", place],
                lambda text=text: [x for one in read(text) for x in self._limit(one, known, lists)],
            )
            found += limits or []
        return found

    def _limit(
        self, rule: Expression, known: Mapping[str, str], lists: Mapping[str, Listing]
    ) -> Iterable[Limit]:
        if not self.files.kept:  # what was begun once stays legible
            check_shares(rule, known)
        return limits_of(rule, known, lists)

    def _unread(
        self,
        space: Space,
        bound: Sequence[Bound],
        objectives: Sequence[Objective],
        limits: Sequence[Limit],
    ) -> tuple[str, ...]:
        """Keep a mistake for what nothing reads; a study that was begun before is warned of it."""
        formulas = [o.expression for o in objectives] + [limit.slack for limit in limits]
        readers = Readers(
            spec=self.spec,
            source=self.source,
            space=space,
            space_file=self.files.source(resolved(self.spec.space, self.source.path)),
            bound=bound,
            formulas=frozenset().union(*(one.names for one in formulas)),
            made=self.cast.made_with,
        )
        found = list(readers.mistakes())
        if self.files.kept:
            return tuple(str(one) for one in found)
        for one in found:
            self.mistakes.add(one)
        return ()

    def _ladders(self, pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
        found = {}
        for metric, rungs in self.spec.fidelities.items():
            found[metric] = self._guarded(
                ["fidelities", metric],
                lambda metric=metric, rungs=rungs: ladder_of(metric, rungs, pipeline.sources),
            )
        return found

    def _baselines(self, space: Space) -> dict[str | int, Design]:
        found: dict[str | int, Design] = {}
        for name, values in named(self.spec.baselines).items():
            self._guarded(["baselines", name], lambda name=name: check_name(name))
            design = self._guarded(
                ["baselines", name],
                lambda values=values: legal_design(values, space),
            )
            found |= {name: design} if design is not None else {}
        return found

    def _check_plugins(self, space: Space) -> None:
        self._check_plugin("optimizers", "optimizer", self.spec.optimizer)
        self._check_plugin("executors", "executor", self.spec.executor)
        self._guarded(["budget", "gain"], self._check_gain)
        if self.spec.optimizer.use == "exhaustive" and space.count() is None:
            self.mistakes.add(
                SpecError(
                    "the legal designs cannot be listed: there is a real parameter, or too many",
                    where=self.source.place(["optimizer"]),
                    hint="give real parameters steps, or use another optimizer",
                )
            )

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

    def _check_factorial(self, problem: Problem) -> None:
        """Levels that cannot be had are a mistake of the file, and told before it runs."""
        use, options = self.spec.optimizer.use, self.spec.optimizer.options
        if use == "factorial":
            self._guarded(["optimizer"], lambda: make("optimizers", use, problem, **options))
        self.mistakes.check()

    def _check_gain(self) -> None:
        use = self.spec.optimizer.use
        if self.spec.budget.gain is None or use not in names("optimizers"):
            return
        if not hasattr(load("optimizers", use), "expected_gain"):
            raise SpecError(
                f"the optimizer {use!r} does not tell what it expects to gain",
                hint="leave 'gain' out, or name another optimizer",
            )

    def _guarded(self, path: list[str | int], make: Any) -> Any:
        """What ``make`` gives, or ``None`` with its mistake kept."""
        try:
            return make()
        except DseError as error:
            self.mistakes.add(error, self.source.place([*path, *error.part]))
            return None

    def _identity(self, problem: Problem, bound: list[Bound]) -> dict[str, Any]:
        return {
            "space": outline(problem.space),
            "order of parameters": [p.name for p in problem.space.parameters],
            "evaluators": {
                one.label: {
                    "use": self.spec.evaluators[one.name].use,
                    "options": self.cast.options(one),
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
            **({"scenarios": weights_of(self.spec.scenarios)} if self.spec.scenarios else {}),
            **({"fidelities": dict(problem.ladders)} if problem.ladders else {}),
            **({"prior": [one.study for one in self.spec.prior]} if self.spec.prior else {}),
            **({"early": self.spec.early.model_dump()} if self.spec.early else {}),
        }


def _deciding(
    objectives: Iterable[Objective], limits: Iterable[Limit], ladders: Mapping[str, Iterable[str]]
) -> frozenset[str]:
    """The names without a value for which a design has no answer."""
    expressions = [*(one.expression for one in objectives), *(one.slack for one in limits)]
    named = frozenset[str]().union(*(one.names for one in expressions))
    return named.union(*ladders.values())


def _metric_units(bound: list[Bound]) -> dict[str, str]:
    return {name: metric.unit for one in bound for name, metric in one.provides.items()}
