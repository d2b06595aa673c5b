"""All that an optimizer may know: the space, what is asked, what is modelled, and the seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.metric import Kind, Metric, Metrics
from dse.core.objective import Limit, Objective
from dse.core.space import Space
from dse.core.trial import State, Trial
from dse.core.trials import Trials, are, column_of
from dse.core.values import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Origin of a metric: its kind, and all the parameters that it depends on.

    A ``pure`` one can be computed without starting a program or calling a stranger's code.
    """

    metric: Metric
    kind: Kind
    reads: frozenset[str]
    pure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Results of another study, used as a guess of how designs compare, not as measurements.

    ``designs`` have the space's names, and need not be legal in it. ``metrics`` have this study's
    names and units; NaN where the other study does not tell.
    """

    study: str
    designs: tuple[Design, ...]
    metrics: Mapping[str, Floats]  # each (n,)


def _nothing(_: Batch) -> Metrics:
    return Metrics(columns={})


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The question: which designs of ``space`` are best for ``objectives`` within ``limits``.

    ``model`` computes every modelled metric, exactly and for whole batches; ``fixed_reference``
    holds the reference point in the objectives' units where the user gave one; ``priors`` tell
    what other studies found. ``identity`` differs where anything differs that the answer depends
    on, evaluators and their options too; it is empty where nobody says so much.
    """

    space: Space
    sources: Mapping[str, Source]
    objectives: tuple[Objective, ...]
    limits: tuple[Limit, ...] = ()
    seed: int = 0
    baselines: tuple[Mapping[str, object], ...] = ()
    fixed_reference: tuple[float, ...] | None = None
    model: Callable[[Batch], Metrics] = field(default=_nothing, compare=False)
    priors: tuple[Prior, ...] = field(default=(), compare=False)
    ladders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    identity: str = field(default="", compare=False)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric by name."""
        return {name: source.metric for name, source in self.sources.items()}

    def known(self, batch: Batch) -> Metrics:
        """Every modelled metric of the designs, and why a design has none."""
        return self.model(batch)

    def reads(self, metric: str) -> frozenset[str]:
        """The parameters that the metric depends on."""
        return self.sources[metric].reads

    @property
    def asked(self) -> frozenset[str]:
        """The metrics that objectives and limits read."""
        expressions = [o.expression for o in self.objectives] + [x.slack for x in self.limits]
        return frozenset(name for e in expressions for name in e.names if name in self.sources)

    @property
    def measured(self) -> frozenset[str]:
        """The asked metrics that cost a measurement."""
        return frozenset(name for name in self.asked if self.sources[name].kind == "measured")

    @property
    def unprobed(self) -> frozenset[str]:
        """The asked metrics that cannot be computed by looking alone: measured, or not pure."""
        return self.measured | {name for name in self.asked if not self.sources[name].pure}

    def rng(self, told: int, pending: int = 0) -> np.random.Generator:
        """The only source of chance: a stream for each state of knowledge.

        Args:
            told: how many finished trials are known.
            pending: how many designs were asked and are not finished.
        """
        return np.random.default_rng(np.random.SeedSequence([self.seed, told, pending]))

    def losses(
        self,
        columns: Mapping[str, Column],
        size: int,
    ) -> Floats:
        """The objectives as losses, (n, m), minimised; NaN where a metric is unknown."""
        signs = [1.0 if o.goal == "minimize" else -1.0 for o in self.objectives]
        values = [s * o.values(columns, size) for s, o in zip(signs, self.objectives, strict=True)]
        return np.column_stack(values) if values else np.zeros((size, 0))

    def slacks(self, columns: Mapping[str, Column], size: int) -> Floats:
        """Return the margin of the rows to each limit, (n, l); negative is outside."""
        values = [limit.slacks(columns, size) for limit in self.limits]
        return np.column_stack(values) if values else np.zeros((size, 0))

    def columns(self, trials: Sequence[Trial]) -> dict[str, Column]:
        """Metrics and parameters of the trials, for :meth:`losses` and :meth:`slacks`."""
        wanted = {
            name
            for e in (*(o.expression for o in self.objectives), *(x.slack for x in self.limits))
            for name in e.names
        }
        return {name: column_of(trials, name) for name in sorted(wanted)}

    def trial_losses(self, trials: Sequence[Trial]) -> Floats:
        """The losses of the trials, (n, m); NaN in the rows of unfinished or failed ones."""
        return self.losses(self.columns(trials), len(trials))

    def judged(self, trials: Sequence[Trial]) -> tuple[Floats, Mask]:
        """The losses of the trials, (n, m), and which of them are answers, (n,).

        An answer is done, within every limit, and has a number for each objective.
        """
        columns = self.columns(trials)
        losses = self.losses(columns, len(trials))
        done = are(trials, State.DONE)
        kept = (self.slacks(columns, len(trials)) >= 0).all(axis=1)
        return losses, done & kept & np.isfinite(losses).all(axis=1)

    def measurements(self, trials: Sequence[Trial]) -> Mask:
        """Return which finished trials count as measurements, (n,).

        A measurement is a trial for which at least one measured evaluator was run, however many
        were, or that failed in a study that has something to measure.
        """
        kept = Trials.of(trials)
        failed = kept.are(State.FAILED) if self.measured else np.zeros(len(kept), dtype=bool)
        return np.asarray(kept.over & ((kept.measured > 0) | failed))

    def failed(self, trials: Sequence[Trial]) -> Mask:
        """Return which trials have no value, (n,): failed, or with undefined results.

        Undefined results are objectives or limits without a value.
        """
        columns = self.columns(trials)
        losses, slacks = self.losses(columns, len(trials)), self.slacks(columns, len(trials))
        undefined = ~np.isfinite(losses).all(axis=1) | np.isnan(slacks).any(axis=1)
        return np.asarray(are(trials, State.FAILED) | (are(trials, State.DONE) & undefined))

    def undefined_words(self, trials: Sequence[Trial]) -> str:
        """Return the undefined objectives and limits of the first trial, as text."""
        columns = self.columns(trials[:1])
        values = [(o.name, o.values(columns, 1)[0]) for o in self.objectives]
        words = [f"{name} is {value:g}" for name, value in values if not np.isfinite(value)]
        unknown = [x.text for x in self.limits if np.isnan(x.slacks(columns, 1)[0])]
        return "; ".join([*words, *(f"the limit {text!r} has no value" for text in unknown)])

    def modelled_trial(self, design: Design) -> Trial:
        """A design with its modelled metrics, as the trial that it would be."""
        known = self.known(self.space.batch([design]))
        metrics = {name: float(values[0]) for name, values in known.columns.items()}
        defined = {name: value for name, value in metrics.items() if np.isfinite(value)}
        fault, state = known.faults.get(0), State.DONE
        if fault is not None:
            state = State.INFEASIBLE if fault.kind == "infeasible" else State.FAILED
        return Trial(number=-1, design=design, state=state, metrics=defined, fault=fault)

    def feasible(self, trials: Sequence[Trial]) -> Mask:
        """Return which trials are feasible, (n,).

        They are done, within every limit, and have a number for each objective.
        """
        return self.judged(trials)[1]
