"""Notebook view of a study: its objectives, progress, front, and reasons of failed trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from dse.api.notebook.front_view import failed_note, summary
from dse.api.notebook.parts import bar, facts, framed, note, side_by_side
from dse.api.notebook.points import points_of
from dse.api.notebook.study_plot import picture
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import State
from dse.core.trials import Trials
from dse.report.answer import Answer
from dse.report.words import join_list, seconds_text
from dse.study.stopping_bounds import Bounds
from dse.study.study_engine import StudyEngine

_MOST_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetProgress:
    """Amount of a study's budget that is spent, and the limit, in the unit ``word``."""

    done: float
    end: float | None
    word: str

    @staticmethod
    def of(trials: Trials, bounds: Bounds) -> BudgetProgress:
        """Return how much of the budget's first limit the trials have spent."""
        measured = int(((trials.measured > 0) | trials.are(State.FAILED)).sum())
        spent_s = float(trials.cost_s.sum())
        if bounds.measurements is not None:
            return BudgetProgress(done=measured, end=bounds.measurements, word="measurements")
        if bounds.trials is None and bounds.time_s is not None:
            return BudgetProgress(done=spent_s, end=bounds.time_s, word="seconds of evaluation")
        return BudgetProgress(done=len(trials), end=bounds.trials, word="trials")

    @property
    def share(self) -> float | None:
        """Used fraction of the budget, from 0 to 1; ``None`` without a bound."""
        return None if not self.end else self.done / self.end

    @property
    def words(self) -> str:
        """Progress of the run as text: ``12 of 60 measurements``."""
        of = "" if self.end is None else f" of {self.end:,g}"
        return f"{self.done:,.0f}{of} {self.word}"


def study_html(study: StudyEngine) -> str:
    """Return the HTML view of a study from its present record."""
    problem, every = study.problem, study.trials
    trials = every.finished
    front = ParetoSet.of(problem, trials)
    answer = Answer.of(front, trials)
    proof = study.proof
    progress = BudgetProgress.of(trials, study.bounds())
    rows = [
        *asked(problem),
        ("front", f"{'exact, ' if proof.exact else ''}{summary(front, answer)}"),
        ("failed", failed_note(proof)),
        ("trials", counts(problem, every)),
        ("failures", failures(trials)),
        ("spent", seconds_text(float(trials.cost_s.sum())) if len(trials) else ""),
        ("optimizer", study.plan.optimizer.use),
    ]
    return framed(
        study.name,
        note(study.plan.question),
        side_by_side(
            bar(progress.share, progress.words) + facts(rows),
            picture(points_of(front, trials), problem.objectives, study.name),
        ),
        beside="study",
    )


def asked(problem: Problem) -> list[tuple[str, str]]:
    """Return the study's objectives and limits as pairs of a label and a text."""
    goals: dict[str, list[str]] = {"minimize": [], "maximize": []}
    for one in problem.objectives:
        goals[one.goal].append(f"{one.name[:60]} [{one.unit}]" if one.unit else one.name[:60])
    limits = [limit.text for limit in problem.limits]
    return [
        *((goal, join_list(_few(names))) for goal, names in goals.items() if names),
        ("within", join_list(_few(limits)) if limits else ""),
    ]


def counts(problem: Problem, trials: Trials) -> str:
    """Return the number of trials in each state, and of trials that violate limits, as text."""
    found = trials.counts
    done = trials.take(trials.are(State.DONE))
    outside = len(done) - int(problem.feasible(done).sum())
    words = [f"{count:,} {state.value}" for state, count in found.items()]
    words += [f"{outside:,} of them outside limits"] if outside else []
    return ", ".join(words) or "none yet"


def failures(trials: Trials) -> str:
    """Return the number of failed trials per kind of failure, each with its first reason."""
    rows = np.flatnonzero(trials.failures != np.array(None))
    kinds = Counter(trials.failures[row].kind for row in rows.tolist())
    reasons = {
        trials.failures[row].kind: trials.failures[row].reason for row in rows[::-1].tolist()
    }
    return "; ".join(f"{n:,} {kind}: {reasons[kind][:160]}" for kind, n in kinds.most_common())


def _few(words: list[str]) -> list[str]:
    more = len(words) - _MOST_NAMED
    return [*words[:_MOST_NAMED], f"{more} more"] if more > 0 else words
