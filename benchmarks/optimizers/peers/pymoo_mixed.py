"""pymoo's NSGA-II for mixed variables: ``MixedVariableGA`` with rank and crowding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from case import Case
from peers.coding import rank, ranked
from playing import Step, played
from pymoo.core.mixed import (
    MixedVariableDuplicateElimination,
    MixedVariableGA,
    MixedVariableMating,
)
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.variable import Binary, Integer, Real
from pymoo.core.variable import Choice as Unordered
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding

from dse.core.parameter import Choice, Parameter
from dse.core.parameter import Real as Continuous
from dse.core.trial import Trial
from dse.core.values import Value

POPULATION = 20
"""Its default of 50 would leave three generations in 200 trials."""

WORST = 1e12
"""The violation of a design that could not be measured."""


def run(case: Case, seed: int, trials: int) -> Iterator[Step]:
    """The peer's record on the seeded case."""
    player = _Generations(case, seed)
    for step in played(case, player, seed=seed, trials=trials, tries=1):
        yield step._replace(refused=player.legal.refused)


class _LegalOnly(MixedVariableDuplicateElimination):  # type: ignore[misc]  # pymoo is untyped
    """Drops illegal offspring as it drops duplicates: the mating is asked again, 100 times."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case
        self.refused = 0

    def do(self, pop: Any, *others: Any, **options: Any) -> Any:
        space = self._case.problem.space
        kept = np.array([self._case.active(_values(self._case, i.X)) in space for i in pop], bool)
        self.refused += int((~kept).sum())
        return super().do(pop[kept], *others, **options)


class _Generations:
    """Hands out a generation one by one; advances when all of it was told."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self.legal = _LegalOnly(case)
        rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
        first = case.first()
        first += case.problem.space.sample(POPULATION - len(first), rng).designs()
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, 3]))
        self._algorithm = MixedVariableGA(
            pop_size=POPULATION,
            sampling=Population.new(X=[self._coded(design) for design in first]),
            mating=MixedVariableMating(eliminate_duplicates=self.legal),
            eliminate_duplicates=MixedVariableDuplicateElimination(),
            survival=RankAndCrowding(),
        )
        self._algorithm.setup(self._stated(), termination=("n_gen", 10**9), seed=seed)
        self._current: Any = None
        self._place = 0

    def ask(self) -> Mapping[str, Value] | None:
        if self._current is None:
            self._current, self._place = self._algorithm.ask(), 0
        if self._current is None or self._place >= len(self._current):
            return None
        return _values(self._case, self._current[self._place].X)

    def refuse(self) -> None:
        """The mating found nothing legal and new: a design from outside joins the generation."""

    def tell(self, trial: Trial) -> None:
        if self._current is None:
            self._current = Population.create()
        if self._place >= len(self._current):
            stranger = Population.new(X=[self._coded(trial.design)])
            self._current = Population.merge(self._current, stranger)
        individual = self._current[self._place]
        problem = self._case.problem
        losses = problem.trial_losses([trial])[0]
        slacks = problem.slacks(problem.columns([trial]), 1)[0]
        failed = not np.isfinite(losses).all()
        individual.F = np.full(len(losses), WORST) if failed else losses
        individual.G = np.full(len(slacks) + 1, WORST) if failed else np.append(-slacks, -1.0)
        individual.H = np.zeros(0)
        individual.evaluated.update({"F", "G", "H"})
        self._place += 1
        if self._place >= len(self._current):
            self._algorithm.tell(infills=self._current)
            self._current = None

    def _stated(self) -> Problem:
        problem = self._case.problem
        return Problem(
            vars={p.name: _variable(p) for p in problem.space.parameters},
            n_obj=len(problem.objectives),
            n_ieq_constr=len(problem.limits) + 1,
        )

    def _coded(self, design: Mapping[str, Value]) -> dict[str, Any]:
        """All variables; those of inactive parameters at random."""
        return {
            p.name: _code(p, design[p.name])
            if p.name in design
            else _variable(p).sample(random_state=self._rng)
            for p in self._case.problem.space.parameters
        }


def _variable(parameter: Parameter) -> Any:
    if isinstance(parameter, Continuous):
        return Real(bounds=(0.0, 1.0))
    if not isinstance(parameter, Choice):
        return Integer(bounds=(0, len(parameter.values) - 1))
    if len(parameter.values) == 2:
        return Binary()
    return Unordered(options=list(range(len(parameter.values))))


def _code(parameter: Parameter, value: Value) -> Any:
    if isinstance(parameter, Continuous):
        return float(parameter.shares(np.array([value], dtype=float))[0])
    place = rank(parameter, value)
    return bool(place) if isinstance(_variable(parameter), Binary) else place


def _values(case: Case, codes: Mapping[str, Any]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for parameter in case.problem.space.parameters:
        code = codes[parameter.name]
        if isinstance(parameter, Continuous):
            values[parameter.name] = float(parameter.at(np.array([float(code)]))[0])
        else:
            values[parameter.name] = ranked(parameter, round(float(code)))
    return values
