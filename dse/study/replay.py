"""Proof of a record: fresh optimizers, given what was known, must ask what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dse.core.design import Design
from dse.core.trial import Asked, Trial
from dse.evaluation.provenance import versions
from dse.interop.archive.salvage import MARK
from dse.protocols import Optimizer
from dse.schema.study.plugins import AUTO
from dse.study.early_stop_watch import contradiction
from dse.study.history import Moment, TrialHistory, moments
from dse.study.loop import GIVEN, teachable
from dse.study.proposers import CARRIED, find_auto_choice, is_plugin, list_given_designs, suggesting
from dse.study.study import StudyEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first trial that is not what its ask would be now, and how.

    ``versions`` holds what was another one then: the version then, and the one now.
    """

    trial: int
    reason: str
    expected: Design | None = None
    found: Design | None = None
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """Result of a replay.

    ``asks`` were replayed and gave ``trials``. ``carried`` trials came from another study, and of
    ``unknown`` ones the record does not tell how they were asked: they were added by hand, or by
    another program, or an older version wrote it. ``salvaged`` ones were asked knowing trials that
    a damaged storage has lost. Of a sample, drawn with ``seed``, ``skipped_asks`` asks of
    ``skipped_trials`` trials were not replayed: that their record contradicts itself was looked at.
    """

    asks: int = 0
    trials: int = 0
    carried: int = 0
    unknown: int = 0
    salvaged: int = 0
    skipped_asks: int = 0
    skipped_trials: int = 0
    seed: int | None = None
    mismatch: Mismatch | None = None

    @property
    def whole(self) -> bool:
        """True if there is nothing in the record that was not proved."""
        return self.sound and not self.skipped_asks

    @property
    def sound(self) -> bool:
        """True if nothing that was looked at is wrong or cannot be proved."""
        return self.mismatch is None and not self.unknown and not self.salvaged

    @property
    def miss_probability(self) -> float:
        """Probability that the sample misses one changed ask, if each is equally likely."""
        return self.skipped_asks / max(1, self.asks + self.skipped_asks)

    def after(self, ask: Asked, *, replayed: bool = True) -> ReplayResult:
        """The proof with one more ask that fits."""
        if not ask.by:
            return self
        if not replayed:
            asks, trials = self.skipped_asks + 1, self.skipped_trials + ask.count
            return replace(self, skipped_asks=asks, skipped_trials=trials)
        if ask.by == CARRIED:
            return replace(self, carried=self.carried + ask.count)
        return replace(self, asks=self.asks + 1, trials=self.trials + ask.count)


class Replay:
    """Goes through a study's record ask by ask; nothing of it is changed.

    Args:
        study: the study.
        on_progress: told how many asks of how many are replayed.
        sample: how many of the optimizers' asks are replayed, one drawn from each of so many
            equal stretches of the record; all without it. An optimizer that is told the same asks
            the same, so that those in between can be left out.
        seed: of the draw.

    Raises:
        StudyError: it was begun with other evaluators, so that nothing can be proved, or it is not
            trusted and its models start programs.
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
        self._asks = study.storage.asks(study.name)  # first: all that they name is then there
        self._record = TrialHistory(study.storage, study.name)
        self._record.read()
        self._resolve_argument = list_given_designs(study.plan, study.inherited)
        self._optimizers: dict[str, tuple[Optimizer, int]] = {}
        mark = (study.storage.spec(study.name) or {}).get(MARK, {})
        self._salvaged = range(mark.get("intact", 0), mark.get("trials", 0))
        use = study.plan.optimizer.use
        self._use = find_auto_choice(study.events) if use == AUTO else use
        self._seed = None if sample is None else seed
        asks = [ask for ask in self._asks if ask.by and ask.first not in self._salvaged]
        costly = [ask.first for ask in asks if ask.by not in (CARRIED, GIVEN)]
        drawn = costly if sample is None else _draw(costly, sample, seed)
        self._replayed = {a.first for a in asks if a.by in (CARRIED, GIVEN)}.union(drawn)

    def proof(self) -> ReplayResult:
        """Replay the record and return the proof, up to the first ask that does not fit."""
        proof = ReplayResult(seed=self._seed)
        for moment in moments(self._asks, self._record.trials, self._record.finished):
            ask = moment.ask
            if ask.first in self._salvaged:
                continue
            wrong = self._wrong(moment) if ask.by else None
            if wrong is not None:
                return replace(proof, mismatch=replace(wrong, versions=self._changed(ask)))
            proof = proof.after(ask, replayed=ask.first in self._replayed)
            self._on_progress(proof.asks, len(self._replayed))
        wrong = self._stopped_wrongly()
        if wrong is not None:
            return replace(proof, mismatch=wrong)
        lost = len(self._salvaged)
        known = proof.trials + proof.skipped_trials + proof.carried + lost
        unknown = len(self._record.trials) - known
        return replace(proof, unknown=unknown, salvaged=lost)

    def _stopped_wrongly(self) -> Mismatch | None:
        """A trial that was stopped early and had to go on, or the reverse."""
        rule, study = self._study.plan.early, self._study
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
        """Return the mismatch of an ask; ``None`` if it fits."""
        ask = moment.ask
        found = self._record.trials[ask.first : ask.first + ask.count]
        reason = self._contradiction(ask, found)
        if reason:
            return Mismatch(trial=ask.first, reason=reason)
        if ask.by == CARRIED or ask.first not in self._replayed:
            return None
        expected = self._replay_ask(moment)
        for place in range(max(len(expected), len(found))):
            own = found[place].design if place < len(found) else None
            now = expected[place] if place < len(expected) else None
            if own != now:
                reason = f"{ask.by} told {ask.told} trials asks something else"
                return Mismatch(trial=ask.first + place, reason=reason, expected=now, found=own)
        return None

    def _contradiction(self, ask: Asked, found: Sequence[Trial]) -> str:
        """Return why the ask cannot have been made; empty if it can."""
        if any(trial.told != ask.told for trial in found):
            return "the trial and its ask differ in what was told"
        if ask.told > len(self._record.finished):
            return f"{ask.told} finished trials were told, and there are fewer"
        carried = self._study.carried - len(self._study.inherited.designs)
        if ask.by == CARRIED and ask.first + ask.count > carried:
            return f"{carried} trials were carried over, and this is another one"
        if is_plugin(ask.by) and ask.by != self._use:
            return (
                f"{ask.by} asked for it, and the study's optimizer is {self._use or 'not chosen'}"
            )
        return ""

    def _replay_ask(self, moment: Moment) -> list[Design]:
        """Return the designs that a fresh optimizer asks if it is given what was known."""
        ask = moment.ask
        wanted = ask.count if ask.wanted is None else ask.wanted
        if ask.by == GIVEN:
            numbers = self._record.numbers
            new = [d for d in self._resolve_argument if numbers.get(d, [ask.first])[0] >= ask.first]
            return new[:wanted]
        optimizer, told = self._optimizers.get(ask.by) or (suggesting(self._study.plan, ask.by), 0)
        optimizer.tell(teachable(optimizer, self._record.finished[told : ask.told]))
        self._optimizers[ask.by] = optimizer, max(told, ask.told)
        return optimizer.ask(wanted, moment.pending)

    def _changed(self, ask: Asked) -> dict[str, tuple[str, str]]:
        """Return the versions that differ now from those of the driver that asked."""
        drivers = {one.id: one.provenance for one in self._study.storage.drivers(self._study.name)}
        then = drivers.get(-1 if ask.worker is None else ask.worker, {})
        now = versions()
        names = sorted(then.keys() & now.keys())
        return {name: (then[name], now[name]) for name in names if then[name] != now[name]}


def _draw(numbers: Sequence[int], count: int, seed: int) -> list[int]:
    """Return one of each of ``count`` equal stretches of the numbers; all, if there are no more."""
    if count >= len(numbers):
        return [*numbers]
    rng = np.random.default_rng(seed)
    edges = np.arange(count + 1) * len(numbers) // count
    return [numbers[place] for place in rng.integers(edges[:-1], edges[1:])]
