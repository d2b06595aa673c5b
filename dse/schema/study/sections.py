"""The sections of a study file: each checked as far as mistakes in the others leave it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dse.core.design import Design
from dse.core.expressions.list_rules import Listing
from dse.core.metric import Goal
from dse.core.objective import Limit, Objective
from dse.core.problem import Problem
from dse.errors import DseError
from dse.evaluation.early_stopping import Rule
from dse.evaluation.pipeline import Pipeline
from dse.registry import names
from dse.schema.models import ClaimSpec, FindingSpec, StudySpec
from dse.schema.space.space import LegibleSpace
from dse.schema.study.bare_numbers import check_units
from dse.schema.study.baselines import Baselines, check_name, index_baselines, told_baselines
from dse.schema.study.budget import Budget, budget_of
from dse.schema.study.claim_rules import judging_metrics
from dse.schema.study.claims import Claim, ClaimReader, claims_of
from dse.schema.study.designs import legal_design
from dse.schema.study.early_stopping import early_of
from dse.schema.study.evaluators import Bindings
from dse.schema.study.fidelities import Ladders, ladder_of
from dse.schema.study.formulas import FormulaParser
from dse.schema.study.objectives import (
    check_label,
    check_new,
    limits_of,
    objective_of,
    reference_of,
)
from dse.schema.study.plugins import (
    check_gain,
    check_listable,
    check_plugin,
    check_storage,
    check_workers,
    make_with_options,
)
from dse.schema.study.retries import patience_of
from dse.schema.study.written_units import with_objective_unit, with_source_units, written_units
from dse.schema.yaml.errors import ErrorCollector
from dse.schema.yaml.source import SourceDocument
from dse.units.dimensions import check_shares


@dataclass(frozen=True, kw_only=True)
class Question:
    """Readable part of a study's question; ``whole`` where no formula has a mistake."""

    objectives: list[Objective]
    limits: list[Limit]
    reference: tuple[float, ...] | None
    budget: Budget
    claims: tuple[Claim, ...]
    ladders: Ladders
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Sections:
    """Reads the sections of a study file; their mistakes are kept.

    Args:
        spec: the study file, as far as it can be read.
        source: where it says what.
        mistakes: where mistakes are kept, and what they hide.
        legible: the space, as far as it can be read.
        cast: the evaluators, as far as they can be bound.
        measured: what was measured of each named baseline.
        lost: sections of the file with parts that could not be read.
        stored: the study was begun before: what was legal then stays so.
    """

    spec: StudySpec
    source: SourceDocument
    mistakes: ErrorCollector
    legible: LegibleSpace
    cast: Bindings
    measured: Mapping[str, Mapping[str, float]]
    lost: Collection[str]
    stored: bool

    @cached_property
    def lists(self) -> Mapping[str, Listing]:
        """The space's lists of parameters."""
        return {name: one.listing for name, one in self.legible.space.lists.items()}

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The evaluators in their order; ``None`` where one of them has a mistake."""
        made: Pipeline | None = None
        if self.cast.all and "evaluators" not in self.lost:
            made = self._try_make(["evaluators"], lambda: Pipeline(self.cast.bound, frozenset()))
        return made

    @cached_property
    def designs(self) -> dict[str | int, Design]:
        """The baselines that are legal, by name or place."""
        found: dict[str | int, Design] = {}
        solved = not (self.legible.partial or self.legible.empty)
        for name, values in index_baselines(self.spec.baselines).items():
            place: list[str | int] = ["baselines", name]
            self._try_make(place, lambda name=name: check_name(name))
            if not solved:
                self._skip(place)
                continue
            design = self._try_make(
                place, lambda values=values: legal_design(values, self.legible.space)
            )
            found |= {name: design} if design is not None else {}
        return found

    @cached_property
    def baselines(self) -> Baselines:
        """Baselines as formulas may use them; of those with a mistake nothing is known."""
        known, lists = self.cast.known, self.lists
        if self.pipeline is not None and len(self.designs) == len(self.spec.baselines):
            return told_baselines(
                self.designs, self.pipeline, self.measured, known=known, lists=lists
            )
        lost = [name for name in index_baselines(self.spec.baselines) if isinstance(name, str)]
        return Baselines({}, {}, sources={}, known=known, lists=lists, lost=lost)

    @cached_property
    def formulas(self) -> FormulaParser:
        """Reads the formulas of the study."""
        return FormulaParser(scenarios=self.cast.scenarios, baselines=self.baselines)

    def question(self) -> Question:
        """All that the study asks."""
        objectives, limits = self._objectives(), self._limits()
        if not self.stored:  # what was begun once stays legible
            check_units(self.spec, self.source, self.mistakes, objectives)
        stated = len(self.spec.objectives) == len(objectives) and "objectives" not in self.lost
        bounded = len(limits) == len(self.spec.constraints) and "constraints" not in self.lost
        reference = None
        if stated:
            reference = self._try_make(
                ["reference"], lambda: reference_of(self.spec.reference, objectives)
            )
        elif self.spec.reference is not None:
            self._skip(["reference"])
        return Question(
            objectives=objectives,
            limits=[one for some in limits for one in some],
            reference=reference,
            budget=self._try_make(["budget"], lambda: budget_of(self.spec.budget)) or Budget(),
            claims=self._claims(),
            ladders=self._ladders(),
            whole=stated and bounded,
        )

    def asked(self, question: Question) -> Pipeline | None:
        """The evaluators as the question needs them; ``None`` where a mistake leaves it open."""
        solved = not (self.legible.partial or self.legible.empty)
        if self.pipeline is None or not question.whole or not solved:
            return None
        return Pipeline(self.cast.bound, _deciding(question))

    def problem(self, question: Question, pipeline: Pipeline | None, seed: int) -> Problem | None:
        """Return the problem for optimizers; ``None`` where a mistake leaves it undefined."""
        if pipeline is None:
            return None
        rules = [rule for text in self.spec.constraints for rule in self.formulas.rules(text)]
        units = written_units(rules)
        return Problem(
            space=self.legible.space,
            sources=with_source_units(pipeline.sources, units),
            objectives=tuple(with_objective_unit(o, units) for o in question.objectives),
            limits=tuple(question.limits),
            seed=seed,
            baselines=tuple(self.designs.values()),
            fixed_reference=question.reference,
            model=pipeline.known,
            ladders={metric: rungs for metric, rungs in question.ladders.items() if rungs},
        )

    def early(self, problem: Problem | None) -> Rule | None:
        """By which rule trials end early."""
        if problem is None:
            if self.spec.early is not None:
                self._skip(["early"])
            return None
        rule: Rule | None = self._try_make(["early"], lambda: early_of(self.spec.early, problem))
        return rule

    def check_options(self) -> None:
        """Keep what is wrong with the optimizer, the executor and what they are asked for."""
        optimizer, executor = self.spec.optimizer, self.spec.executor
        self._try_make(["optimizer"], lambda: check_plugin("optimizers", optimizer))
        self._try_make(["executor"], lambda: check_plugin("executors", executor))
        self._try_make(["executor"], lambda: check_workers(executor))
        self._try_make(["storage"], lambda: check_storage(self.spec.storage))
        self._try_make(["storage_patience"], lambda: patience_of(self.spec.storage_patience))
        self._try_make(["budget", "gain"], lambda: check_gain(self.spec.budget, optimizer))
        if optimizer.use == "exhaustive" and (self.legible.partial or self.legible.empty):
            self._skip(["optimizer"])
        else:
            self._try_make(["optimizer"], lambda: check_listable(optimizer, self.legible.space))

    def check_factorial(self, problem: Problem | None) -> None:
        """Record impossible factorial levels as a mistake of the file, before the study runs."""
        use, options = self.spec.optimizer.use, self.spec.optimizer.options
        if use == "factorial" and problem is None:
            self._skip(["optimizer"])
        elif use == "factorial" or (options and use in names("optimizers") and self._is_open()):
            self._try_make(
                ["optimizer"], lambda: make_with_options("optimizers", use, problem, options)
            )

    def _is_open(self) -> bool:
        """Return whether optimizer options can be tried: no mistakes, and a new study."""
        return not self.stored and not self.mistakes.errors

    def _objectives(self) -> list[Objective]:
        found: list[Objective] = []
        known, lists = self.cast.known, self.lists
        for place, one in enumerate(self.spec.objectives):
            goal: Goal = "minimize" if one.minimize is not None else "maximize"
            text = one.minimize if one.minimize is not None else one.maximize
            objective = self._try_make(
                ["objectives", place],
                lambda text=text, goal=goal: objective_of(
                    self.formulas.objective(text, goal), goal, known, lists
                ),
            )
            if objective is not None:
                if not self.stored:  # what was begun once stays legible
                    self._try_make(["objectives", place], lambda o=objective: check_new(o, found))
                label = one.label or ""
                self._try_make(["objectives", place], lambda n=label: check_label(n, found, known))
                found.append(replace(objective, label=label))
        return found

    def _limits(self) -> list[list[Limit]]:
        """The limits of each constraint that has no mistake."""
        found = []
        for place, text in enumerate(self.spec.constraints):
            limits: list[Limit] | None = self._try_make(
                ["constraints", place], lambda text=text: self._limits_of(text)
            )
            if limits is not None:
                found.append(limits)
        return found

    def _limits_of(self, text: str) -> list[Limit]:
        found: list[Limit] = []
        for rule in self.formulas.rules(text):
            if not self.stored:  # what was begun once stays legible
                check_shares(rule, self.cast.known)
            found += limits_of(rule, self.cast.known, self.lists)
        return found

    def _claims(self) -> tuple[Claim, ...]:
        designs = {
            **dict.fromkeys(index_baselines(self.spec.baselines), Design({})),
            **self.designs,
        }
        known, fresh = self.cast.known, not self.stored  # what was begun once stays legible
        reader = ClaimReader(
            known=known,
            lists=self.lists,
            designs=designs,
            judging=judging_metrics(known, self.spec.evaluators) if fresh else frozenset(),
            strict=fresh,
        )
        specs: list[ClaimSpec | FindingSpec] = [*self.spec.reproduces, *self.spec.finds]
        return claims_of(specs, reader, self.source, self.mistakes)

    def _ladders(self) -> dict[str, tuple[str, ...]]:
        found = {}
        sources = {} if self.pipeline is None else self.pipeline.sources
        for metric, rungs in self.spec.fidelities.items():
            if self.pipeline is None:
                self._skip(["fidelities", metric])
                continue
            found[metric] = self._try_make(
                ["fidelities", metric],
                lambda metric=metric, rungs=rungs, s=sources: ladder_of(metric, rungs, s),
            )
        return found

    def _skip(self, path: list[str | int]) -> None:
        self.mistakes.skip(self.source.place(path))

    def _try_make(self, path: list[str | int], make: Any) -> Any:
        """Return the result of ``make``, or ``None`` with its mistake recorded."""
        try:
            return make()
        except DseError as error:
            self.mistakes.add_in(error, self.source, path)
            return None


def _deciding(question: Question) -> frozenset[str]:
    """The names without a value for which a design has no answer."""
    expressions = [one.expression for one in question.objectives]
    expressions += [one.slack for one in question.limits]
    named = frozenset[str]().union(*(one.names for one in expressions))
    return named.union(*(rungs or () for rungs in question.ladders.values()))
