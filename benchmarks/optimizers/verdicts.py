"""One optimizer against each other: paired tests over the same seeds, and counts of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from regret import Curves
from scipy import stats

TIE = 0.001
"""Median regrets that differ by no more are a tie; in ratios, a smaller regret counts as this."""

ALPHA = 0.05


class Verdict(NamedTuple):
    """How an optimizer stands against one peer after so many trials.

    ``p`` is of Wilcoxon's signed-rank test over all pairs of the same problem and seed,
    Holm-corrected over the peers. ``wins``, ``ties`` and ``losses`` count problems by median
    regret; ``clear_wins`` and ``clear_losses`` those where a test over the seeds alone,
    Holm-corrected over all problems and peers, is below ``ALPHA``. ``ratio`` is the mean over
    problems of the quotient of median regrets.
    """

    peer: str
    pairs: int
    difference: float
    p: float
    wins: int
    ties: int
    losses: int
    clear_wins: int
    clear_losses: int
    ratio: float


def verdicts(curves: Curves, mine: str, peers: Sequence[str], trials: int) -> list[Verdict]:
    """One for each peer that has at least one pair."""
    pairs = {
        (peer, problem): found
        for peer in peers
        for problem in curves.problems
        if len(found := _differences(curves, problem, (mine, peer), trials))
    }
    peers = [peer for peer in peers if any(peer == one for one, _ in pairs)]
    pooled = {peer: np.concatenate([pairs[k] for k in pairs if k[0] == peer]) for peer in peers}
    corrected = dict(zip(peers, holm([_p(pooled[peer]) for peer in peers]), strict=True))
    single = dict(zip(pairs, holm([_p(found) for found in pairs.values()]), strict=True))
    return [
        _verdict(curves, (mine, peer), trials, pooled[peer], corrected[peer])._replace(
            clear_wins=_clear(pairs, single, peer, sign=-1),
            clear_losses=_clear(pairs, single, peer, sign=1),
        )
        for peer in peers
    ]


def holm(values: Sequence[float]) -> list[float]:
    """The p-values corrected for so many tests.

    Source:
        Holm: A Simple Sequentially Rejective Multiple Test Procedure, 1979.
    """
    corrected, least = [0.0] * len(values), 0.0
    for done, place in enumerate(np.argsort(values)):
        least = max(least, min(1.0, (len(values) - done) * values[place]))
        corrected[place] = least
    return corrected


def ratio(mine: float, other: float) -> float:
    """The quotient of two regrets."""
    return max(mine, TIE) / max(other, TIE)


def best_peer(
    curves: Curves, problem: str, peers: Sequence[str], trials: int
) -> tuple[float, str] | None:
    """The least median regret that any of them has, and whose it is."""
    told = [(median, p) for p in peers if (median := curves.median(problem, p, trials)) is not None]
    return min(told, default=None)


def _verdict(
    curves: Curves, two: tuple[str, str], trials: int, pooled: np.ndarray, p: float
) -> Verdict:
    medians = [
        (ours, theirs)
        for problem in curves.problems
        if (ours := curves.median(problem, two[0], trials)) is not None
        and (theirs := curves.median(problem, two[1], trials)) is not None
    ]
    wins = sum(ours < theirs - TIE for ours, theirs in medians)
    losses = sum(ours > theirs + TIE for ours, theirs in medians)
    return Verdict(
        peer=two[1],
        pairs=len(pooled),
        difference=float(np.median(pooled)),
        p=p,
        wins=wins,
        ties=len(medians) - wins - losses,
        losses=losses,
        clear_wins=0,
        clear_losses=0,
        ratio=float(np.mean([ratio(ours, theirs) for ours, theirs in medians])),
    )


def _differences(curves: Curves, problem: str, two: tuple[str, str], trials: int) -> np.ndarray:
    """Regret of the first less that of the second, for every seed that both have."""
    ours, theirs = (curves.regrets(problem, one, trials) for one in two)
    return np.array([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def _p(differences: np.ndarray) -> float:
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)


def _clear(
    pairs: dict[tuple[str, str], np.ndarray],
    p: dict[tuple[str, str], float],
    peer: str,
    *,
    sign: int,
) -> int:
    return sum(
        p[key] < ALPHA and np.sign(np.median(found)) == sign
        for key, found in pairs.items()
        if key[0] == peer
    )
