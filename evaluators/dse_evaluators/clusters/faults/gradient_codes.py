"""Gradient codes, which yield the sum without the slowest workers: load and waiting time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, digamma

from dse.core.values import Floats, Mask

SCHEMES = ("uncoded", "ignoring", "cyclic", "replicated", "sr-sgc", "m-sgc")
"""Coding schemes, without code, for one round, and over several rounds.

Without code, a round waits for all workers, or ignores the slowest; within a round, data are coded
cyclically or replicated within groups; the two sequential codes repeat a round's work or spread it
over several rounds.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Parameters of a gradient code: workers, stragglers; burst and window in rounds."""

    workers: int
    stragglers: int
    burst: int = 1
    window: int = 2


class Duty(NamedTuple):
    """Load per worker of a gradient code, with its tolerated stragglers and decoding delay."""

    load: Fraction
    """Share of all data that one worker processes in a round."""
    tolerated: int
    """Workers of a round that need not be awaited."""
    delay: int
    """Further rounds until a gradient is known."""


def duty(scheme: str, code: Code) -> Duty | str:
    """Return a gradient code's load, tolerated stragglers and delay, or why it is infeasible.

    Source:
        Tandon et al.: Gradient Coding: Avoiding Stragglers in Distributed Learning, 2017, theorems
        1 to 3 (a load of (s + 1) / n is the least); Krishnan, Ebrahimi, Khisti: Sequential
        Gradient Coding for Straggler Mitigation, 2023, for the two codes over rounds.
    """
    if scheme != "uncoded" and code.stragglers >= code.workers:
        over = code.stragglers - code.workers + 1
        return f"{code.stragglers} stragglers of {code.workers} workers: {over} too many"
    return _RULES[scheme](code)


def _compute_uncoded_duty(code: Code) -> Duty | str:
    return Duty(Fraction(1, code.workers), 0, 0)


def _ignoring(code: Code) -> Duty | str:
    return Duty(Fraction(1, code.workers), code.stragglers, 0)


def _cyclic(code: Code) -> Duty | str:
    return Duty(Fraction(code.stragglers + 1, code.workers), code.stragglers, 0)


def _compute_replicated_duty(code: Code) -> Duty | str:
    size = code.stragglers + 1
    rest = code.workers % size
    if rest:
        return f"{code.workers} workers in groups of {size} leave {rest} over"
    return Duty(Fraction(size, code.workers), code.stragglers, 0)


def _repeating(code: Code) -> Duty | str:
    over = (code.window - 1) % code.burst
    if over or code.window < 2:
        return f"window {code.window} is not 1 plus a positive multiple of burst {code.burst}"
    each = -(-code.burst * code.stragglers // (code.window - 1 + code.burst))
    return Duty(Fraction(each + 1, code.workers), each, code.burst)


def _compute_multiplexed_duty(code: Code) -> Duty | str:
    over = code.burst - code.window + 1
    if over > 0:
        return f"a burst of {code.burst} in a window of {code.window}: {over} too long"
    rounds, ways = code.window - 1 + code.burst, code.stragglers + 1
    parts = code.workers * (code.burst + (code.window - 1) * ways)
    return Duty(Fraction(ways * rounds, parts), code.stragglers, code.window - 2 + code.burst)


_RULES: Mapping[str, Callable[[Code], Duty | str]] = {
    "uncoded": _compute_uncoded_duty,
    "ignoring": _ignoring,
    "cyclic": _cyclic,
    "replicated": _compute_replicated_duty,
    "sr-sgc": _repeating,
    "m-sgc": _compute_multiplexed_duty,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Numbers of workers that each round of n gradient codes waits for; every field is (n,).

    With ``grouped`` a round waits for the first worker of each group of ``tolerated + 1``,
    otherwise for all but ``tolerated`` workers. Times are in units of the mean of the exponential
    delay.
    """

    workers: Floats
    tolerated: Floats
    grouped: Mask

    @property
    def groups(self) -> Floats:
        return np.where(self.grouped, self.workers / (self.tolerated + 1.0), 1.0)

    def mean(self) -> Floats:
        """Return the expected time until enough workers finish, (n,).

        The time, in units of the mean delay, is a difference of harmonic numbers.

        Source:
            Renyi: On the Theory of Order Statistics, 1953: the k-th of n exponentials is a sum of
            exponentials with rates n, n - 1, ..., n - k + 1.
        """
        any_of_them = digamma(self.workers + 1.0) - digamma(self.tolerated + 1.0)
        firsts = (digamma(self.groups + 1.0) - digamma(1.0)) / (self.tolerated + 1.0)
        return np.where(self.grouped, firsts, any_of_them)

    def quantile(self, chance: float) -> Floats:
        """Return the exact quantile of the time until enough workers finish, (n,).

        ``chance`` is its probability. The quantile follows from the beta distribution of the order
        statistics of uniform variables.
        """
        left = betaincinv(self.tolerated + 1.0, self.workers - self.tolerated, 1.0 - chance)
        any_of_them = -np.log(left)
        late = -np.expm1(np.log(chance) / self.groups)
        firsts = -np.log(late) / (self.tolerated + 1.0)
        return np.where(self.grouped, firsts, any_of_them)
