"""Replay of a study's record: new optimizers with the same inputs must repeat the designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dse.core.design import Design
from dse.core.preference_answers import answers_at, read_steering
from dse.core.trial import Asked, Trial
from dse.evaluation.provenance import versions
from dse.interop.archive.salvage import MARK
from dse.protocols import AdjustsEffort, Optimizer, SeeksFavourite, traits_of
from dse.schema.study.plugin_checks import AUTO
from dse.study.asking import teachable
from dse.study.early_stop_watch import contradiction
from dse.study.history import Moment, TrialHistory, moments
from dse.study.loop import GIVEN
from dse.study.proposers import (
    ATTACHED,
    CARRIED,
    find_auto_choice,
    is_plugin,
    list_given_designs,
    suggesting,
)
from dse.study.study_engine import StudyEngine
from dse.study.thinking import effort_at, effort_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """First trial that the replay of the record cannot reproduce, and the reason.

    ``versions`` maps each software component whose version changed to (version then, version now).
    """

    trial: int
    reason: str
    expected: Design | None = None
    found: Design | None = None
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """Result of a replay: which recorded requests for designs it could repeat.

    ``asks`` is the number of replayed requests for designs, which gave ``trials`` trials.
    ``carried`` trials came from another study, and the results of ``attached`` trials were given by
    the user. The record has no request for ``unknown`` trials: they were added by hand or by
    another program, or an older version wrote the record. ``salvaged`` trials were requested with
    knowledge of trials that a damaged storage has lost. If only a sample, drawn with ``seed``, was
    replayed, ``skipped_asks`` requests of ``skipped_trials`` trials were only checked for
    contradictions within the record.
    """

    asks: int = 0
    trials: int = 0
    carried: int = 0
    attached: int = 0
    unknown: int = 0
    salvaged: int = 0
    skipped_asks: int = 0
    skipped_trials: int = 0
    seed: int | None = None
    mismatch: Mismatch | None = None

    @property
    def whole(self) -> bool:
        """Whether every recorded request for designs was replayed and matched."""
        return self.sound and not self.skipped_asks

    @property
    def sound(self) -> bool:
        """Whether no replayed request failed and all trials stem from requests."""
        return self.mismatch is None and not self.unknown and not self.salvaged

    @property
    def miss_probability(self) -> float:
        """Probability that a replay of a sample misses a changed request, all equally likely."""
        return self.skipped_asks / max(1, self.asks + self.skipped_asks)

    def after(self, ask: Asked, *, replayed: bool = True) -> ReplayResult:
        """Return the result after one more matching request for designs.

        Args:
            ask: the recorded request.
            replayed: whether it was replayed, rather than only checked for contradictions.
        """
        if not ask.by:
            return self
        if not replayed:
            asks, trials = self.skipped_asks + 1, self.skipped_trials + ask.count
            return replace(self, skipped_asks=asks, skipped_trials=trials)
        if ask.by == CARRIED:
            return replace(self, carried=self.carried + ask.count)
        if ask.by == ATTACHED:
            return replace(self, attached=self.attached + ask.count)
        return replace(self, asks=self.asks + 1, trials=self.trials + ask.count)


class Replay:
    """Replay of a study's requests to its optimizer, in order; the record is only read.

    Args:
        study: the study.
        on_progress: called with the number of asks replayed so far and the total.
        sample: number of asks (requests for designs) to replay, one drawn from each of that many
            equal stretches of the record; by default all. An optimizer that received the same
            trials suggests the same designs, so asks in between can be skipped.
        seed: seed of the sample.

    Raises:
        StudyError: the study was begun with other evaluators, so that nothing can be proved, or it
            is not trusted and its models start programs.
        StorageError: the record is damaged.
    """

    def __init__(
        self,
        study: StudyEngine,
        *,
        on_progress: Callable[[int, int], None] = lambda *_: None,
        sample: int | None = None,
        seed: int = 0,
    ) -> None:
        study.check_runnable(["modelled"])
        study.plan.pipeline.may_start = True  # an optimizer asks its models again
        self._study = study
        self._on_progress = on_progress
        self._asks = study.storage.asks(study.name)  # before the trials, which then include theirs
        self._record = TrialHistory(study.storage, study.name)
        self._record.read()
        self._resolve_argument = list_given_designs(study.plan, study.inherited)
        self._optimizers: dict[str, tuple[Optimizer, int]] = {}
        mark = (study.storage.spec(study.name) or {}).get(MARK, {})
        self._salvaged = range(mark.get("intact", 0), mark.get("trials", 0))
        use = study.plan.optimizer.use
        self._use = find_auto_choice(study.events) if use == AUTO else use
        self._efforts = effort_changes(study.events)
        self._steering = read_steering(study.events)
        self._seed = None if sample is None else seed
        asks = [ask for ask in self._asks if ask.by and ask.first not in self._salvaged]
        free = (CARRIED, ATTACHED, GIVEN)
        costly = [ask.first for ask in asks if ask.by not in free]
        drawn = costly if sample is None else _draw(costly, sample, seed)
        self._replayed = {a.first for a in asks if a.by in free}.union(drawn)

    def proof(self) -> ReplayResult:
        """Replay the record and return the result, up to the first ask that does not match."""
        proof = ReplayResult(seed=self._seed)
        for moment in moments(self._asks, self._record.trials, self._record.finished):
            ask = moment.ask
            if ask.first in self._salvaged:
                continue
            wrong = self._wrong(moment) if ask.by else None
            if wrong is not None:
                return replace(
                    proof, mismatch=replace(wrong, versions=self._list_changed_versions(ask))
                )
            proof = proof.after(ask, replayed=ask.first in self._replayed)
            self._on_progress(proof.asks, len(self._replayed))
        wrong = self._stopped_wrongly()
        if wrong is not None:
            return replace(proof, mismatch=wrong)
        lost = len(self._salvaged)
        known = proof.trials + proof.skipped_trials + proof.carried + proof.attached + lost
        unknown = len(self._record.trials) - known
        return replace(proof, unknown=unknown, salvaged=lost)

    def _stopped_wrongly(self) -> Mismatch | None:
        """Return the first trial whose early stopping contradicts the rule; ``None`` if all fit."""
        rule, study = self._study.plan.early_stopping, self._study
        if rule is None or self._salvaged:  # reports may be lost
            return None
        found = contradiction(
            rule,
            study.problem,
            self._record.trials,
            study.storage.reports(study.name),
            finished=self._record.finished,
            events=study.events,
        )
        return None if found is None else Mismatch(trial=found[0], reason=found[1])

    def _wrong(self, moment: Moment) -> Mismatch | None:
        """Return the first trial of an ask that replays differently; ``None`` if all match."""
        ask = moment.ask
        found = self._record.trials[ask.first : ask.first + ask.count]
        reason = self._contradiction(ask, found)
        if reason:
            return Mismatch(trial=ask.first, reason=reason)
        if ask.by in (CARRIED, ATTACHED) or ask.first not in self._replayed:
            return None
        expected = self._replay_ask(moment)
        for place in range(max(len(expected), len(found))):
            own = found[place].design if place < len(found) else None
            now = expected[place] if place < len(expected) else None
            if own != now:
                reason = f"{ask.by}, given {ask.told} finished trials, now asks another design"
                return Mismatch(trial=ask.first + place, reason=reason, expected=now, found=own)
        return None

    def _contradiction(self, ask: Asked, found: Sequence[Trial]) -> str:
        """Return why the recorded ask contradicts the rest of the record; empty if it does not."""
        if any(trial.told != ask.told for trial in found):
            return "the trial and its ask differ in the number of finished trials known"
        if ask.told > len(self._record.finished):
            return f"{ask.told} finished trials were known at the ask, but the record has fewer"
        carried = self._study.carried - len(self._study.inherited.designs)
        if ask.by == CARRIED and ask.first + ask.count > carried:
            return f"only {carried} trials were carried over, and this is not among them"
        if is_plugin(ask.by) and ask.by != self._use:
            return (
                f"{ask.by} asked for it, but the study's optimizer is {self._use or 'not chosen'}"
            )
        return ""

    def _replay_ask(self, moment: Moment) -> list[Design]:
        """Return the designs that a new optimizer suggests, given the trials known at the ask."""
        ask = moment.ask
        wanted = ask.count if ask.wanted is None else ask.wanted
        if ask.by == GIVEN:
            numbers = self._record.numbers
            new = [d for d in self._resolve_argument if numbers.get(d, [ask.first])[0] >= ask.first]
            return new[:wanted]
        optimizer, known = self._optimizers.get(ask.by) or (suggesting(self._study.plan, ask.by), 0)
        optimizer.tell(teachable(traits_of(optimizer), self._record.finished[known : ask.told]))
        self._optimizers[ask.by] = optimizer, max(known, ask.told)
        if isinstance(optimizer, AdjustsEffort):
            optimizer.effort = effort_at(self._efforts, ask.first)
        if isinstance(optimizer, SeeksFavourite):
            optimizer.preferences = answers_at(self._steering, ask.first)
        return optimizer.ask(wanted, moment.pending)

    def _list_changed_versions(self, ask: Asked) -> dict[str, tuple[str, str]]:
        """Return (version then, version now), by name, of software changed since an ask."""
        drivers = {one.id: one.provenance for one in self._study.storage.drivers(self._study.name)}
        then = drivers.get(-1 if ask.worker is None else ask.worker, {})
        now = versions()
        names = sorted(then.keys() & now.keys())
        return {name: (then[name], now[name]) for name in names if then[name] != now[name]}


def _draw(numbers: Sequence[int], count: int, seed: int) -> list[int]:
    """Draw one index from each of ``count`` equal stretches; return all if there are no more."""
    if count >= len(numbers):
        return [*numbers]
    rng = np.random.default_rng(seed)
    edges = np.arange(count + 1) * len(numbers) // count
    return [numbers[place] for place in rng.integers(edges[:-1], edges[1:])]
