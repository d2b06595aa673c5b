"""Optimization problem as optimizers see it: space, objectives, limits, models and seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.metric import Kind, Metric, Metrics
from dse.core.objective import Limit, Objective
from dse.core.separable import Separable
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.core.trials import Trials, are, column_of
from dse.core.values import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Origin of a metric: modelled or measured, and the parameters that it depends on.

    A ``pure`` metric is computed without starting a program or calling third-party code.
    ``separable`` declares that the metric is approximately a sum of terms, one for each group of
    parameters; ``None`` without such a declaration.
    """

    metric: Metric
    kind: Kind
    reads: frozenset[str]
    pure: bool = True
    separable: Separable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Results of another study, for transfer learning: optimizers use them as prior information.

    ``designs`` use the parameter names of this study's space, and need not be legal in it.
    ``metrics`` use this study's names and units; NaN where the other study has no value.
    ``library`` marks one of several past studies that are weighted against each other.
    """

    study: str
    designs: tuple[Design, ...]
    metrics: Mapping[str, Floats]  # each (n,)
    library: bool = False


def _nothing(_: Batch) -> Metrics:
    return Metrics(columns={})


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Multi-objective problem: find the best designs of ``space`` that satisfy ``limits``.

    ``model`` computes every modelled metric, exactly and batchwise; ``fixed_reference`` is the
    reference point in the objectives' units if the user gives one; ``priors`` are the results of
    other studies. ``identity`` is a fingerprint of everything that the results depend on,
    including evaluators and their options; it is empty if it is unknown.
    """

    space: DesignSpace
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
        """Modelled and measured metrics, by name."""
        return {name: source.metric for name, source in self.sources.items()}

    def known(self, batch: Batch) -> Metrics:
        """Compute every modelled metric of n designs, with the reasons of failed designs."""
        return self.model(batch)

    def reads(self, metric: str) -> frozenset[str]:
        """Return the names of the parameters that a metric depends on."""
        return self.sources[metric].reads

    @property
    def asked(self) -> frozenset[str]:
        """Names of the metrics that objectives and limits depend on."""
        expressions = [o.expression for o in self.objectives] + [x.slack for x in self.limits]
        return frozenset(name for e in expressions for name in e.names if name in self.sources)

    @property
    def measured(self) -> frozenset[str]:
        """Names of the measured metrics that objectives and limits depend on."""
        return frozenset(name for name in self.asked if self.sources[name].kind == "measured")

    @property
    def unprobed(self) -> frozenset[str]:
        """Names of the metrics of objectives and limits that read-only commands may not compute.

        These metrics are measured, or their models start a program or call third-party code.
        """
        return self.measured | {name for name in self.asked if not self.sources[name].pure}

    def rng(self, finished: int, pending: int = 0) -> np.random.Generator:
        """Return the random generator for a state of the study.

        It is the only source of randomness, and depends on the seed and the arguments.

        Args:
            finished: the number of finished trials known to the optimizer.
            pending: the number of designs that were suggested and are not finished.
        """
        return np.random.default_rng(np.random.SeedSequence([self.seed, finished, pending]))

    def losses(
        self,
        columns: Mapping[str, Column],
        size: int,
    ) -> Floats:
        """Return the objectives of n designs as losses (minimised), (n, m); NaN if unknown.

        Args:
            columns: the metrics and parameters that the objectives read, over n designs.
            size: the number of designs n.
        """
        values = [each.sign * each.values(columns, size) for each in self.objectives]
        return np.column_stack(values) if values else np.zeros((size, 0))

    @property
    def is_scaled(self) -> bool:
        """Whether an objective has a log scale, so that hypervolumes count its logarithm.

        With a single objective, hypervolumes do not count it: the hypervolume is then the distance
        to the reference point, in the objective's unit.
        """
        return len(self.objectives) > 1 and any(each.log for each in self.objectives)

    def on_scales(self, losses: Floats) -> Floats:
        """Return losses, (n, m) or (m,), on the linear or log scales used for hypervolumes."""
        if not self.is_scaled:
            return losses
        found = [o.on_scale(losses[..., k]) for k, o in enumerate(self.objectives)]
        return np.stack(found, axis=-1)

    def slacks(self, columns: Mapping[str, Column], size: int) -> Floats:
        """Return each design's margin to each limit, (n, l): negative if violated, NaN if unknown.

        Args:
            columns: the metrics and parameters that the limits read, over n designs.
            size: the number of designs n.
        """
        values = [limit.slacks(columns, size) for limit in self.limits]
        return np.column_stack(values) if values else np.zeros((size, 0))

    def columns(self, trials: Sequence[Trial]) -> dict[str, Column]:
        """Return the trials' metrics and parameters, for :meth:`losses` and :meth:`slacks`."""
        wanted = {
            name
            for e in (*(o.expression for o in self.objectives), *(x.slack for x in self.limits))
            for name in e.names
        }
        return {name: column_of(trials, name) for name in sorted(wanted)}

    def trial_losses(self, trials: Sequence[Trial]) -> Floats:
        """Return the losses of n trials, (n, m); NaN for unfinished or failed trials."""
        return self.losses(self.columns(trials), len(trials))

    def judged(self, trials: Sequence[Trial]) -> tuple[Floats, Mask]:
        """Return the losses of n trials, (n, m), and the mask of the feasible trials, (n,).

        A feasible trial is done, satisfies every limit and has finite objectives.
        """
        columns = self.columns(trials)
        losses = self.losses(columns, len(trials))
        done = are(trials, State.DONE)
        kept = (self.slacks(columns, len(trials)) >= 0).all(axis=1)
        return losses, done & kept & np.isfinite(losses).all(axis=1)

    def measurements(self, trials: Sequence[Trial]) -> Mask:
        """Return which trials count as measurements, (n,).

        A measurement is a finished trial for which at least one measured evaluator ran, or that
        failed in a study with measured metrics.
        """
        kept = Trials.of(trials)
        failed = kept.are(State.FAILED) if self.measured else np.zeros(len(kept), dtype=bool)
        return np.asarray(kept.over & ((kept.measured > 0) | failed))

    def failed(self, trials: Sequence[Trial]) -> Mask:
        """Return which of n trials have no valid result, (n,).

        These have failed, or are done with an objective or a limit that is undefined.
        """
        columns = self.columns(trials)
        losses, slacks = self.losses(columns, len(trials)), self.slacks(columns, len(trials))
        undefined = ~np.isfinite(losses).all(axis=1) | np.isnan(slacks).any(axis=1)
        return np.asarray(are(trials, State.FAILED) | (are(trials, State.DONE) & undefined))

    def undefined_words(self, trials: Sequence[Trial]) -> str:
        """Return the undefined objectives and limits of the first of the trials, as text."""
        columns = self.columns(trials[:1])
        values = [(o.name, o.values(columns, 1)[0]) for o in self.objectives]
        words = [f"{name} is {value:g}" for name, value in values if not np.isfinite(value)]
        logs = [o.name for o in self.objectives if o.log and np.isnan(o.values(columns, 1)[0])]
        words += [f"with 'scale: log' {name} must have a value above 0" for name in logs]
        unknown = [x.text for x in self.limits if np.isnan(x.slacks(columns, 1)[0])]
        return "; ".join([*words, *(f"the limit {text!r} has no value" for text in unknown)])

    def modelled_trial(self, design: Design) -> Trial:
        """Return a trial, numbered -1, with a design's modelled metrics or its failure."""
        known = self.known(self.space.batch([design]))
        metrics = {name: float(values[0]) for name, values in known.columns.items()}
        defined = {name: value for name, value in metrics.items() if np.isfinite(value)}
        failure, state = known.failures.get(0), State.DONE
        if failure is not None:
            state = State.INFEASIBLE if failure.kind == "infeasible" else State.FAILED
        return Trial(number=-1, design=design, state=state, metrics=defined, failure=failure)

    def feasible(self, trials: Sequence[Trial]) -> Mask:
        """Return which of n trials are feasible, (n,).

        A feasible trial is done, satisfies every limit and has finite objectives.
        """
        return self.judged(trials)[1]
