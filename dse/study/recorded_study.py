"""Record of a study: its trials, its front, its events and what they prove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dse.analysis.scenario_comparison import Contrast, contrast
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.proof import Proof
from dse.core.trial import Event
from dse.core.trials import Trials
from dse.protocols import Storage
from dse.schema.history.recorded_specification import Inherited
from dse.schema.study.measured_baselines import settle_baselines
from dse.schema.study.plan import Plan
from dse.study.proposers import ATTACHED


class RecordedStudy:
    """Named study as a storage holds it: its plan, trials and events, to read and not to run.

    Args:
        plan: the problem, optimizer and budget of the study.
        storage: the storage that holds the study.
        name: the study's name in the storage.
    """

    def __init__(self, plan: Plan, storage: Storage, name: str) -> None:
        self.inherited = Inherited.of((storage.spec(name) or {}).get("prior"))
        known = replace(plan.problem, priors=self.inherited.priors)
        self.plan = replace(plan, problem=known)
        if plan.awaited:
            self.plan = settle_baselines(self.plan, storage.trials(name))
        self.storage = storage
        self.name = name

    @property
    def problem(self) -> Problem:
        """Problem that the study optimizes: space, metrics, objectives and limits."""
        return self.plan.problem

    @property
    def trials(self) -> Trials:
        """All trials of the study, by number."""
        return self.storage.trials(self.name)

    @property
    def finished(self) -> Trials:
        """Finished trials of the study, in order of finishing."""
        return self.trials.finished

    @property
    def events(self) -> list[Event]:
        """Recorded events of the study (choices, proofs, stops), oldest first."""
        return self.storage.events(self.name)

    @property
    def front(self) -> ParetoSet:
        """Pareto front of the finished trials, with its hypervolume."""
        return ParetoSet.of(self.problem, self.finished)

    @property
    def contrast(self) -> Contrast | None:
        """Comparison of the best designs of each scenario; ``None`` without scenarios."""
        if not self.plan.alone:
            return None
        return contrast(self.problem, self.plan.alone, self.plan.weights, self.finished)

    @property
    def carried(self) -> int:
        """Number of trials that came from other studies and do not count against the budget."""
        spec = self.storage.spec(self.name) or {}
        return int(spec.get("carried", {}).get("trials", 0)) + len(self.inherited.designs)

    @property
    def attached(self) -> int:
        """Number of trials whose results the user has attached; they count for no budget."""
        return sum(ask.count for ask in self.storage.asks(self.name) if ask.by == ATTACHED)

    @property
    def exact(self) -> bool:
        """Whether the front is exact: all legal designs were considered, no value is missing."""
        return self.proof.exact

    @property
    def proof(self) -> Proof:
        """Statement on what is proved about the front, such as exactness, and on missing values."""
        return Proof.of_study(self.problem, self.finished, self.events)

    @property
    def provenance(self) -> Mapping[str, str]:
        """Software versions and machine with which the study was begun."""
        spec = self.storage.spec(self.name)
        return dict(spec.get("provenance", {})) if spec else {}
