"""The engine's own optimizers, and the factory of optimizers from their names in the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.bayesian.front_completion import Completion
from dse.optimizers.support.unseen_designs import fresh
from dse.protocols import Optimizer
from dse.schema.history.recorded_specification import Inherited
from dse.schema.models import PluginSpec
from dse.schema.study.plan import Plan
from dse.schema.study.plugin_checks import AUTO, make_optimizer
from dse.study.scenario_optimizer import ScenarioOptimizer, for_free

# Names of the engine's own optimizers in the record; plug-in names have no brackets.
NOBODY = "(nobody)"
FIRST = "(first)"
COMPLETION = "(completion)"
CARRIED = "(carried)"
ATTACHED = "(attached)"

_SCENARIO = "(scenario) "


def is_plugin(by: str) -> bool:
    """Return whether a recorded optimizer name is that of a plug-in, not of an internal step."""
    return not by.startswith("(")


def scenario(name: str) -> str:
    """Return the recorded name of the optimizer that completes a single scenario's front."""
    return _SCENARIO + name


def suggesting(plan: Plan, by: str) -> Optimizer:
    """Return a new optimizer that has received no trials.

    Args:
        plan: the study's plan.
        by: the optimizer's name in the record.

    Raises:
        PluginError: no optimizer has that name.
        StudyError: the name denotes an object of a Python program, and the plan lacks the object.
    """
    if by == NOBODY:
        return NoOptimizer()
    if by == FIRST:
        return FirstDesigns(plan.problem)
    if by == COMPLETION:
        return Completion(plan.problem)
    if by.startswith(_SCENARIO):
        name = by.removeprefix(_SCENARIO)
        alone = for_free(plan.alone[name], exact=True)
        assert alone is not None
        return ScenarioOptimizer(name, alone)
    options = {} if plan.optimizer.use == AUTO else plan.optimizer.options
    spec = PluginSpec(use=by, **options)
    made: Optimizer = make_optimizer(spec, plan.problem, plan.objects)
    return made


def find_auto_choice(events: Iterable[Event]) -> str:
    """Return the optimizer that ``auto`` chose first; empty if it has not chosen."""
    texts = (event.text for event in events if event.kind == "choice")
    return next(texts, "").partition(":")[0]


def list_given_designs(plan: Plan, inherited: Inherited) -> list[Design]:
    """Return the designs to evaluate before the optimizer's: earlier studies', then baselines."""
    baselines = [Design(d) for d in plan.problem.baselines]  # type: ignore[arg-type]
    return list(dict.fromkeys([*inherited.designs, *baselines]))


class NoOptimizer:
    """Optimizer that never suggests a design, for runs that only evaluate given ones."""

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:  # noqa: ARG002
        return []

    def tell(self, finished: Sequence[Trial]) -> None:
        """Ignore the finished trials."""

    def events(self) -> list[Event]:
        return []


class FirstDesigns:
    """Optimizer that suggests one random legal design that is neither finished nor pending."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._finished_designs: list[Design] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:  # noqa: ARG002
        rng = self._problem.rng(len(self._finished_designs))
        if self._finished_designs:
            return fresh(self._problem.space, 1, rng, {*self._finished_designs, *pending})
        return self._problem.space.sample(1, rng).designs()

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished_designs += [trial.design for trial in finished]

    def events(self) -> list[Event]:
        return []
