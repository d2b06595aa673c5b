"""Methods of spending several answers on a problem: what they solve, and how much they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Array, Floats
from dse_evaluators.reasoning.difficulty import MOST_SUCCESS, Difficulty, place_beta
from dse_evaluators.reasoning.plurality import win_vote

METHODS = ("vote", "best-of-n", "stop-when-verified", "revision", "tree")
"""Plurality vote; one that a verifier accepts, among all or the first; revisions; a tree."""

_VOTE, _BEST, _STOP, _REVISION, _TREE = range(5)
_TREE_NODES = 12
_ROWS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPolicy:
    """Policies of n designs for the problems of one class; every field is (n,)."""

    method: Floats
    answers: Floats
    true_positive: Floats
    false_positive: Floats
    distractors: Floats
    gain: Floats
    """Success of a revision of a wrong answer over that of a first answer."""
    loss: Floats
    """Probability that a revision spoils a right answer."""
    shared: Floats
    """Share of an answer that the leaves of a tree have in common."""
    log_odds: Floats
    """What the length of an answer adds to the log odds of its success."""

    def take(self, rows: Array) -> AnswerPolicy:
        """Return the policies at the indices ``rows``."""
        return AnswerPolicy(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


@dataclass(frozen=True, slots=True)
class AnswerShares:
    """Share of problems that a policy solves, and numbers of answers that it takes, each (n,)."""

    accuracy: Floats
    coverage: Floats
    answers: Floats
    """Expected number of answers that are written."""
    written: Floats
    """Expected tokens over those of one answer; less than ``answers`` where a part is shared."""


def answer_problems(difficulty: Difficulty, policy: AnswerPolicy) -> AnswerShares:
    """Return solved shares and numbers of answers of n policies, as means over a class."""
    size = len(policy.method)
    out = {name: np.empty(size) for name in ("accuracy", "coverage", "answers", "written")}
    for place, compute in _COMPUTE.items():
        own = np.flatnonzero(policy.method == place)
        for start in range(0, len(own), _ROWS):
            rows = own[start : start + _ROWS]
            for name, values in zip(out, compute(difficulty, policy.take(rows)), strict=True):
                out[name][rows] = values
    return AnswerShares(**out)


_Columns = tuple[Floats, Floats, Floats, Floats]


def shift_success(success: Floats, log_odds: Floats) -> Floats:
    """Return success probabilities (j,) with log odds shifted by each of (n,), (n, j)."""
    factor = np.exp(log_odds)[:, None]
    return success * factor / (success * factor + 1.0 - success)


def _success(difficulty: Difficulty, policy: AnswerPolicy) -> Floats:
    return np.minimum(shift_success(difficulty.success, policy.log_odds), MOST_SUCCESS)


def _miss_all(success: Floats, answers: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.exp(answers[:, None] * np.log1p(-success))


def _vote(difficulty: Difficulty, policy: AnswerPolicy) -> _Columns:
    p, n = _success(difficulty, policy), policy.answers
    kinds, place = np.unique(
        np.stack([n, policy.distractors, policy.log_odds]), axis=1, return_inverse=True
    )
    first = np.zeros(kinds.shape[1], dtype=np.int64)
    first[place.ravel()] = np.arange(len(n))
    won = np.array(
        [
            win_vote(p[row], int(answers), int(wrong)) @ difficulty.weight
            for row, answers, wrong in zip(first.tolist(), kinds[0], kinds[1], strict=True)
        ]
    )[place.ravel()]
    return won, 1.0 - difficulty.mean(_miss_all(p, n)), n, n


def _select(success: Floats, policy: AnswerPolicy) -> tuple[Floats, Floats]:
    """Return the probabilities to choose a right answer, and that the verifier accepts one, (n, j).

    Of the accepted answers each is as likely to be chosen; without one, of all answers.
    """
    tpr, fpr = policy.true_positive[:, None], policy.false_positive[:, None]
    accepted = success * tpr + (1.0 - success) * fpr
    none = _miss_all(np.minimum(accepted, 1.0), policy.answers)
    true = np.divide(success * tpr, accepted, out=np.zeros_like(accepted), where=accepted > 0)
    left = 1.0 - accepted
    missed = np.divide(success * (1.0 - tpr), left, out=np.zeros_like(left), where=left > 0)
    return (1.0 - none) * true + none * missed, accepted


def _best(difficulty: Difficulty, policy: AnswerPolicy) -> _Columns:
    p, n = _success(difficulty, policy), policy.answers
    chosen, _ = _select(p, policy)
    return difficulty.mean(chosen), 1.0 - difficulty.mean(_miss_all(p, n)), n, n


def _stop(difficulty: Difficulty, policy: AnswerPolicy) -> _Columns:
    """Draw answers one after another until the verifier accepts one, at most n."""
    p, n = _success(difficulty, policy), policy.answers
    chosen, accepted = _select(p, policy)
    none = _miss_all(np.minimum(accepted, 1.0), n)
    drawn = np.broadcast_to(n[:, None], p.shape).copy()
    np.divide(1.0 - none, accepted, out=drawn, where=accepted > 1e-12)
    drawn = difficulty.mean(drawn) / difficulty.weight.sum()
    return difficulty.mean(chosen), 1.0 - difficulty.mean(_miss_all(p, n)), drawn, drawn


def _revise(difficulty: Difficulty, policy: AnswerPolicy) -> _Columns:
    """Revise an answer n - 1 times: a Markov chain of right and wrong answers.

    Source:
        Wang et al.: Scaling over Scaling (TTSPM), 2025, whose chain absorbs right answers; here a
        revision may spoil them.
    """
    p, n = _success(difficulty, policy), policy.answers
    mends = np.minimum(p * policy.gain[:, None], 1.0)
    spoils = policy.loss[:, None]
    moving = mends + spoils
    rest = np.divide(mends, moving, out=p.copy(), where=moving > 0)
    kept = np.where(moving > 0, (1.0 - moving) ** (n[:, None] - 1.0), 1.0)
    never = (1.0 - p) * (1.0 - mends) ** (n[:, None] - 1.0)
    return difficulty.mean(rest + (p - rest) * kept), 1.0 - difficulty.mean(never), n, n


def _grow(difficulty: Difficulty, policy: AnswerPolicy) -> _Columns:
    """Write n leaves of a tree, which share a part of each answer; a verifier chooses.

    Leaves of one tree are alike: their success is beta-distributed around that of the problem, and
    the correlation between two leaves is the share that they have in common: an assumption.
    """
    n = policy.answers
    accuracy, coverage = np.empty(len(n)), np.empty(len(n))
    for shared in np.unique(policy.shared).tolist():
        rows = np.flatnonzero(policy.shared == shared)
        own = policy.take(rows)
        p = _success(difficulty, own)
        for shift in np.unique(own.log_odds).tolist():
            same = np.flatnonzero(own.log_odds == shift)
            spread = _spread_leaves(Difficulty(p[same[0]], difficulty.weight), shared)
            some = own.take(same)
            leaves = np.broadcast_to(spread.success, (len(same), len(spread.success)))
            chosen, _ = _select(leaves, some)
            accuracy[rows[same]] = spread.mean(chosen)
            coverage[rows[same]] = 1.0 - spread.mean(_miss_all(leaves, some.answers))
    return accuracy, coverage, n, policy.shared + n * (1.0 - policy.shared)


def _spread_leaves(difficulty: Difficulty, shared: float) -> Difficulty:
    """Return the success of a tree's leaves, whose correlation is ``shared``."""
    if shared == 0:
        return difficulty
    p, weight = difficulty.success, difficulty.weight
    if shared == 1:
        success = np.concatenate([np.zeros_like(p), np.full_like(p, MOST_SUCCESS)])
        return Difficulty(success, np.concatenate([weight * (1.0 - p), weight * p]))
    total = (1.0 - shared) / shared
    parts = []
    for one, part in zip(p.tolist(), weight.tolist(), strict=True):
        leaves = Difficulty(np.array([one]), np.ones(1))
        if 1e-12 < one < 1.0 - 1e-12:
            leaves = place_beta(one * total, (1.0 - one) * total, _TREE_NODES)
        parts.append((leaves.success, leaves.weight * part))
    return Difficulty(*(np.concatenate(some) for some in zip(*parts, strict=True)))


_COMPUTE: Mapping[int, Callable[[Difficulty, AnswerPolicy], _Columns]] = {
    _VOTE: _vote,
    _BEST: _best,
    _STOP: _stop,
    _REVISION: _revise,
    _TREE: _grow,
}
