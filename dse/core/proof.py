"""Extent to which a Pareto front is proved optimal, and the designs that it does not cover."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.trials import Trials
from dse.core.values import Value

COMPLETED = "completed"
"""Kind of event that records designs sharing the measurements of a measured design."""

EXACT = "exact"
EXACT_OVER = "exact over"
SEARCHED = (EXACT, EXACT_OVER)
"""Kinds of events that record a search which considered every legal design."""

_LEGAL = re.compile(r"([\d,]+) legal designs")
_OVER = re.compile(
    r"exact over the (?:([\d,]+) )?designs that have values; (at least )?([\d,]+) of ([\d,]+) "
    r"legal designs failed(?:.*?; one that failed: (.*))?",
    re.DOTALL,
)
_SHARING = re.compile(r"; ((?:at least )?([\d,]+) designs that share them failed, .*)", re.DOTALL)
_MOST_LETTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Counts of legal, infeasible and failed designs in an exhaustive search of a space.

    ``impossible`` is the number of designs that an evaluator reported as infeasible. ``failed`` is
    the number of designs without a value, because an evaluator failed or an objective or a limit is
    undefined; ``example`` is one of them, with the reason. If ``at_least`` is set, ``failed`` is a
    lower bound. ``note`` is a remark to append to the claim in :attr:`text`.
    """

    legal: int
    impossible: int = 0
    failed: int = 0
    example: str = ""
    at_least: bool = False
    note: str = ""

    @staticmethod
    def of(problem: Problem, trials: Sequence[Trial], legal: int) -> Coverage:
        """Return the counts of an exhaustive search; only the last trial of a design counts.

        Args:
            problem: the space, objectives and limits.
            trials: trials of all legal designs.
            legal: the number of legal designs.
        """
        last = {trial.design: trial for trial in trials}
        kept = list(last.values())
        failed = [kept[row] for row in np.flatnonzero(problem.failed(kept)).tolist()]
        impossible = sum(
            one.failure is not None and one.failure.kind == "infeasible" for one in kept
        )
        return Coverage(
            legal=legal,
            impossible=impossible,
            failed=len(failed),
            example=failure_text(problem, failed[0]) if failed else "",
        )

    @property
    def text(self) -> str:
        """Statement on the exactness of the front, as text: ``exact over all 12 legal designs``."""
        cannot = f"{self.impossible:,} cannot exist" if self.impossible else ""
        if not self.failed and not self.at_least:
            claim = f"exact over all {self.legal:,} legal designs"
            return "; ".join(filter(None, [claim, cannot, self.note]))
        valued = f"{self.legal - self.impossible - self.failed:,} "
        least = "at least " if self.at_least else ""
        parts = [
            f"exact over the {'' if self.at_least else valued}designs that have values",
            f"{least}{self.failed:,} of {self.legal:,} legal designs failed",
            cannot,
            self.note,
            f"one that failed: {self.example}" if self.example else "",
        ]
        return "; ".join(filter(None, parts))

    def event(self, finished: int) -> Event:
        """Return the event that records how many legal designs the exhaustive search covers."""
        plain = not self.failed and not self.at_least
        return Event(kind=EXACT if plain else EXACT_OVER, text=self.text, told=finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Statement of how far a study's Pareto front is proved exact, with the failed designs.

    ``searched`` is true after an exhaustive search. ``over`` is the number of designs over which
    the front is then exact; ``None`` if not exact or unknown. ``failed`` is the number of designs
    without a value among ``of`` designs, which are all legal designs if ``searched``, else the
    designs of the finished trials. ``sharing`` counts further designs without a value: they share
    the measurement of another design with the same measured inputs, but their modelled metrics
    failed.
    """

    searched: bool = False
    over: int | None = None
    failed: int = 0
    at_least: bool = False
    of: int = 0
    example: str = ""
    sharing: int = 0
    sharing_words: str = ""

    @staticmethod
    def of_study(problem: Problem, trials: Sequence[Trial], events: Sequence[Event]) -> Proof:
        """Return the statement that a study's trials and events prove about its front."""
        kept = Trials.of(trials)
        rows = np.flatnonzero(problem.failed(kept))
        example = failure_text(problem, kept[int(rows[0])]) if len(rows) else ""
        seen = _with_completion(Proof(failed=len(rows), of=len(kept), example=example), events)
        event = next((one for one in reversed(events) if one.kind in SEARCHED), None)
        return seen if event is None else _add_failures(_parse_claims(event.text), seen)

    @property
    def exact(self) -> bool:
        """Whether the front is exact over every legal design, with no failure among them."""
        return self.searched and not self.failed and not self.at_least

    @property
    def in_vain(self) -> bool:
        """Whether every legal design was evaluated and none of them has a value."""
        return self.searched and self.failed > 0 and self.over == 0

    @property
    def front_words(self) -> str:
        """Front with the designs over which it is exact, as text, such as ``the exact front``."""
        if self.exact:
            return "the exact front"
        if not self.searched:
            return "the front so far"
        many = "" if self.over is None else f"{self.over:,} "
        return f"the front, exact over the {many}designs that have values"

    @property
    def search_words(self) -> str:
        """Extent of the search as text, such as ``best found so far``."""
        if self.exact:
            return "every legal design considered"
        if not self.searched:
            return "best found so far"
        return self.front_words.removeprefix("the front, ")

    @property
    def failed_words(self) -> str:
        """Number of designs without a value and one example, as text; empty if there are none."""
        if not self.failed:
            return self.sharing_words
        least = "at least " if self.at_least else ""
        what = "legal designs" if self.searched else "finished designs"
        one = f", such as {self.example}" if self.example else ""
        words = f"{least}{self.failed:,} of {self.of:,} {what} failed{one}"
        return "; ".join(filter(None, [words, self.sharing_words]))

    @property
    def valueless(self) -> int:
        """Number of designs without a value, including those in ``sharing``."""
        return self.failed + self.sharing


def _with_completion(proof: Proof, events: Sequence[Event]) -> Proof:
    """Return the proof with the failures that the last ``COMPLETED`` event reports added to it."""
    text = next((one.text for one in reversed(events) if one.kind == COMPLETED), "")
    found = _SHARING.search(text)
    if found is None:
        return proof
    return replace(proof, sharing=_count(found[2]), sharing_words=found[1])


def _add_failures(proof: Proof, seen: Proof) -> Proof:
    """Return the proof of an exhaustive search, updated by further failed trials in ``seen``."""
    if seen.failed <= proof.failed:
        return proof
    lost = seen.failed - proof.failed
    over = None if proof.over is None else max(proof.over - lost, 0)
    return replace(proof, over=over, failed=seen.failed, example=proof.example or seen.example)


def _parse_claims(text: str) -> Proof:
    """Parse the text of an event that states the result of an exhaustive search.

    The text has the form of :attr:`Coverage.text`, or of earlier versions.
    """
    found = _OVER.match(text)
    if found is None:
        counts = _LEGAL.findall(text)
        legal = _count(counts[0]) if counts else None
        return Proof(searched=True, over=legal, of=legal or 0)
    over, least, failed, legal_text, example = found.groups()
    return Proof(
        searched=True,
        over=None if over is None else _count(over),
        failed=_count(failed),
        at_least=bool(least),
        of=_count(legal_text),
        example=example or "",
    )


def _count(text: str) -> int:
    return int(text.replace(",", ""))


def failure_text(problem: Problem, trial: Trial) -> str:
    """Return a failed design and its reason as text: ``n=0 (raised: ZeroDivisionError)``."""
    if trial.failure is not None:
        reason = f"{trial.failure.kind}: {trial.failure.reason}"
    else:
        reason = problem.undefined_words([trial])
    return f"{_design_text(trial.design)} ({shorten_text(reason)})"


def design_failure_text(problem: Problem, design: Design) -> str:
    """Return the failure of a design without a trial as text, from its modelled metrics."""
    return failure_text(problem, problem.modelled_trial(design))


def _design_text(design: Mapping[str, Value]) -> str:
    return shorten_text(", ".join(f"{name}={value}" for name, value in design.items()))


def shorten_text(words: str) -> str:
    """Return the text on one line; the middle of a text over 300 characters is omitted."""
    line = " ".join(words.split())
    if len(line) <= _MOST_LETTERS:
        return line
    half = _MOST_LETTERS // 2
    return f"{line[:half]} … {line[-half:]}"
