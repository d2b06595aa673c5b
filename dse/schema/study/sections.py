"""Checks of the sections of a study file, such as objectives, constraints, budget and baselines.

A section that depends on an invalid one is skipped, and noted as unchecked.
"""

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
from dse.errors import DseError, SpecError
from dse.evaluation.early_stopping import Rule
from dse.evaluation.held_out import has_test_split
from dse.evaluation.pipeline import Pipeline
from dse.schema.models import ClaimSpec, FindingSpec, StudySpec
from dse.schema.space.space_loader import LegibleSpace
from dse.schema.study.budget import Budget, budget_of
from dse.schema.study.claims import Claim, ClaimReader, claims_of, judging_metrics
from dse.schema.study.designs import legal_design
from dse.schema.study.evaluators import Bindings
from dse.schema.study.formulas import (
    Baselines,
    FormulaParser,
    build_baselines,
    check_name,
    index_baselines,
)
from dse.schema.study.objectives import (
    check_display,
    check_label,
    check_new,
    check_units,
    limits_of,
    objective_of,
    reference_of,
    with_objective_unit,
    with_source_units,
    written_units,
)
from dse.schema.study.plugin_checks import (
    Objects,
    check_early_stopping,
    check_gain,
    check_gap_space,
    check_library,
    check_listable,
    check_optimizer,
    check_plugin,
    check_storage,
    check_workers,
    is_python_optimizer,
    knows_optimizer,
    make_with_options,
    optimizer_traits,
)
from dse.schema.study.run_sections import Ladders, check_thinking, early_of, ladder_of, patience_of
from dse.schema.yaml.source import SourceDocument
from dse.schema.yaml.validation import ErrorCollector
from dse.units.dimensions import check_shares


@dataclass(frozen=True, kw_only=True)
class Question:
    """Objectives, limits, reference point, budget, claims and fidelity ladders of a study.

    Invalid ones are left out; ``whole`` is true where all objectives and constraints are valid.
    """

    objectives: list[Objective]
    limits: list[Limit]
    reference: tuple[float, ...] | None
    budget: Budget
    claims: tuple[Claim, ...]
    ladders: Ladders
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Sections:
    """Parser of a study file's sections; errors are collected, not raised.

    Args:
        spec: the valid part of the study file.
        source: the document, for the line numbers of errors.
        mistakes: collector of the errors, and of sections that they leave unchecked.
        legible: the space, as far as its files are valid.
        cast: the evaluators whose inputs could be bound.
        measured: measured metrics of each named baseline.
        lost: sections of the file with values that could not be read.
        stored: whether the study was started before; checks that are newer are then skipped.
        objects: Python objects of the study, by the texts that name them.
    """

    spec: StudySpec
    source: SourceDocument
    mistakes: ErrorCollector
    legible: LegibleSpace
    cast: Bindings
    measured: Mapping[str, Mapping[str, float]]
    lost: Collection[str]
    stored: bool
    objects: Objects

    @cached_property
    def lists(self) -> Mapping[str, Listing]:
        """Lists of parameters in the space, by name."""
        return {name: one.listing for name, one in self.legible.space.lists.items()}

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """Evaluators of the study, sorted topologically; ``None`` where one of them is invalid."""
        made: Pipeline | None = None
        if self.cast.all and "evaluators" not in self.lost:
            made = self._try_make(["evaluators"], lambda: Pipeline(self.cast.bound, frozenset()))
        return made

    @cached_property
    def designs(self) -> dict[str | int, Design]:
        """Feasible baseline designs, by name or by index in the file's list."""
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
        """Named baselines for formulas; without metrics if a baseline or evaluator is invalid."""
        known, lists = self.cast.known, self.lists
        if self.pipeline is not None and len(self.designs) == len(self.spec.baselines):
            return build_baselines(
                self.designs, self.pipeline, self.measured, known=known, lists=lists
            )
        lost = [name for name in index_baselines(self.spec.baselines) if isinstance(name, str)]
        return Baselines({}, lambda _: {}, sources={}, known=known, lists=lists, lost=lost)

    @cached_property
    def formulas(self) -> FormulaParser:
        """Parser of the study's formulas."""
        return FormulaParser(scenarios=self.cast.scenarios, baselines=self.baselines)

    def question(self) -> Question:
        """Return the parsed objectives, constraints, reference point, budget and claims."""
        objectives, limits = self._objectives(), self._limits()
        if not self.stored:  # a stored study must stay readable
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
        """Return the pipeline that computes only the metrics of objectives and constraints.

        The result is ``None`` where errors leave the objectives or constraints undefined.
        """
        solved = not (self.legible.partial or self.legible.empty)
        if self.pipeline is None or not question.whole or not solved:
            return None
        return Pipeline(self.cast.bound, _deciding(question))

    def problem(self, question: Question, pipeline: Pipeline | None, seed: int) -> Problem | None:
        """Return the optimization problem; ``None`` where errors leave it undefined."""
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
        """Return the early stopping rule; ``None`` where there is none or it is invalid."""
        if problem is None:
            if self.spec.early_stopping is not None:
                self._skip(["early_stopping"])
            return None
        if self.spec.early_stopping is not None and not self.stored:
            self._try_make(["early_stopping"], lambda: check_early_stopping(self.spec.executor))
        rule: Rule | None = self._try_make(
            ["early_stopping"], lambda: early_of(self.spec.early_stopping, problem)
        )
        return rule

    def check_judge(self) -> None:
        """Collect the error of ``judge: test`` in a new study without any test split."""
        if self.spec.judge != "test" or self.stored:
            return
        if self.pipeline is None:
            self._skip(["judge"])
        elif not has_test_split(self.pipeline):
            self._try_make(["judge"], _raise_no_test_split)

    def check_options(self) -> None:
        """Collect errors in the optimizer, executor and storage settings of the study file."""
        optimizer, executor = self.spec.optimizer, self.spec.executor
        known = knows_optimizer(optimizer.use, self.objects)
        if known or not (self.stored and is_python_optimizer(optimizer.use)):
            self._try_make(["optimizer"], lambda: check_optimizer(optimizer, self.objects))
        self._try_make(["executor"], lambda: check_plugin("executors", executor))
        self._try_make(["executor"], lambda: check_workers(executor))
        self._try_make(["storage"], lambda: check_storage(self.spec.storage))
        self._try_make(["storage_patience"], lambda: patience_of(self.spec.storage_patience))
        self._try_make(
            ["budget", "min_improvement"],
            lambda: check_gain(self.spec.budget, optimizer, self.objects),
        )
        for place, one in enumerate(self.spec.transfer_from):
            self._try_make(
                ["transfer_from", place, "library"],
                lambda folder=one.library: check_library(folder, optimizer, self.objects),
            )
        traits = optimizer_traits(optimizer, self.objects)
        if traits.enumerates and (self.legible.partial or self.legible.empty):
            self._skip(["optimizer"])
        else:
            self._try_make(
                ["optimizer"],
                lambda: check_listable(optimizer, self.legible.space, self.objects),
            )

    def check_factorial(self, problem: Problem | None) -> None:
        """Collect the errors of constructing the optimizer, such as impossible factor levels.

        In a new study, an option ``thinking`` without effect is one of these errors. The optimizer
        is constructed if it has options or checks its problem. If the study is stored or has other
        errors, only an optimizer for designed experiments (``factorial``) is constructed.
        """
        if not self.stored:
            self._try_make(
                ["optimizer"], lambda: check_thinking(self.spec.optimizer, problem, self.objects)
            )
        use, options = self.spec.optimizer.use, self.spec.optimizer.options
        traits = optimizer_traits(self.spec.optimizer, self.objects)
        known = knows_optimizer(use, self.objects)
        checked = bool(options and known) or traits.checks_problem
        if traits.designed_experiment and problem is None:
            self._skip(["optimizer"])
        elif traits.designed_experiment or (checked and self._is_open()):
            self._try_make(
                ["optimizer"],
                lambda: make_with_options("optimizers", use, problem, options, self.objects),
            )

    def check_gap(self, problem: Problem | None) -> None:
        """Collect the error of a gap that cannot be estimated for this problem."""
        if problem is not None:
            gap = self.spec.budget.gap
            self._try_make(["budget", "gap"], lambda: check_gap_space(gap, problem))

    def _is_open(self) -> bool:
        """Return whether constructing the optimizer can check its options.

        It can for a new study without errors so far.
        """
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
                if not self.stored:  # a stored study must stay readable
                    self._try_make(["objectives", place], lambda o=objective: check_new(o, found))
                label = one.label or ""
                self._try_make(["objectives", place], lambda n=label: check_label(n, found, known))
                written = self._try_make(
                    ["objectives", place, "display"],
                    lambda o=objective, unit=one.display: check_display(o, unit or ""),
                )
                log = one.scale == "log"
                found.append(replace(objective, label=label, log=log, written=written or ""))
        return found

    def _limits(self) -> list[list[Limit]]:
        """Return the limits of each valid constraint in a list."""
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
            if not self.stored:  # a stored study must stay readable
                check_shares(rule, self.cast.known)
            found += limits_of(rule, self.cast.known, self.lists)
        return found

    def _claims(self) -> tuple[Claim, ...]:
        designs = {
            **dict.fromkeys(index_baselines(self.spec.baselines), Design({})),
            **self.designs,
        }
        known, fresh = self.cast.known, not self.stored  # a stored study must stay readable
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
        """Call ``make`` and return its result; on an error, collect it and return ``None``."""
        try:
            return make()
        except DseError as error:
            self.mistakes.add_in(error, self.source, path)
            return None


def _deciding(question: Question) -> frozenset[str]:
    """Return the metrics that objectives, limits or fidelity ladders use."""
    expressions = [one.expression for one in question.objectives]
    expressions += [one.slack for one in question.limits]
    named = frozenset[str]().union(*(one.names for one in expressions))
    return named.union(*(rungs or () for rungs in question.ladders.values()))


def _raise_no_test_split() -> None:
    raise SpecError(
        "no evaluator of this study has a test split on which its front could be measured",
        hint="remove 'judge: test'; compression.recipe has a test split with 'split: search'",
    )
