"""Probability that a vote among n answers elects the right one."""

from __future__ import annotations

from functools import cache

import numpy as np

from dse.core.values import Floats


def win_vote(success: Floats, answers: int, distractors: int) -> Floats:
    """Return the probability that the right answer has most votes, ties drawn by lot.

    A wrong answer is each of ``distractors`` wrong ones with equal probability.

    Args:
        success: probability that an answer is right, any shape.
        answers: number of votes.
        distractors: number of different wrong answers.
    """
    from scipy.special import gammaln  # SciPy is slow to import, and only this needs it

    right = np.arange(1, answers + 1, dtype=np.float64)  # k
    log_ways = gammaln(answers + 1.0) - gammaln(right + 1.0) - gammaln(answers - right + 1.0)
    p = np.clip(np.asarray(success)[..., None], 1e-300, 1.0 - 1e-16)
    chance = np.exp(log_ways + right * np.log(p) + (answers - right) * np.log1p(-p))
    return np.minimum(chance @ _win_given_right(answers, distractors), 1.0)


@cache
def _win_given_right(answers: int, distractors: int) -> Floats:
    """Return the probability to win with 1 to n right votes, (n,).

    The other votes fall on the wrong answers as balls into urns. Counts of urns that are
    independent Poisson variables, given their sum, are multinomial: so the probability is a
    coefficient of a product of truncated Poisson series.
    """
    from scipy.special import gammaln

    rate = answers / distractors
    places = np.arange(answers + 1, dtype=np.float64)
    poisson = np.exp(places * np.log(rate) - rate - gammaln(places + 1.0))
    whole = np.exp(places * np.log(answers) - answers - gammaln(places + 1.0))
    found = np.ones(answers)
    for right in range(1, answers // 2 + 1):
        others = answers - right
        below = poisson[:right]
        powers = _powers(below, distractors, others)
        total = 0.0
        for tied in range(min(distractors, others // right) + 1):
            rest = others - tied * right
            series = powers[distractors - tied]
            if rest < len(series):
                ways = _choose(distractors, tied) * poisson[right] ** tied
                total += ways * series[rest] / (tied + 1.0)
        found[right - 1] = min(total / whole[others], 1.0)
    return found


def _powers(series: Floats, most: int, degree: int) -> list[Floats]:
    """Return the powers 0 to ``most`` of a series, up to a degree."""
    powers = [np.ones(1)]
    for _ in range(most):
        powers.append(np.convolve(powers[-1], series)[: degree + 1])
    return powers


def _choose(whole: int, part: int) -> float:
    from math import comb

    return float(comb(whole, part))
