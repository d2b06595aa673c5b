"""Time until enough workers with shifted exponential times finish: exact order statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, digamma

from dse.core.values import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Workers that n rounds wait for; every field is (n,).

    With ``grouped`` a round waits for the first worker of each group of ``tolerated + 1``,
    otherwise for all but ``tolerated`` workers. Times are in units of the exponential's mean.
    """

    workers: Floats
    tolerated: Floats
    grouped: Mask

    @property
    def groups(self) -> Floats:
        return np.where(self.grouped, self.workers / (self.tolerated + 1.0), 1.0)

    def mean(self) -> Floats:
        """Return the expected time until enough workers finish, (n,).

        It is a difference of harmonic numbers.

        Source:
            Renyi: On the Theory of Order Statistics, 1953: the k-th of n exponentials is a sum of
            exponentials with rates n, n - 1, ..., n - k + 1.
        """
        any_of_them = digamma(self.workers + 1.0) - digamma(self.tolerated + 1.0)
        firsts = (digamma(self.groups + 1.0) - digamma(1.0)) / (self.tolerated + 1.0)
        return np.where(self.grouped, firsts, any_of_them)

    def quantile(self, chance: float) -> Floats:
        """Return the exact ``chance`` quantile of the time until enough workers finish, (n,).

        It follows from the beta distribution of the order statistics of uniform variables.
        """
        left = betaincinv(self.tolerated + 1.0, self.workers - self.tolerated, 1.0 - chance)
        any_of_them = -np.log(left)
        late = -np.expm1(np.log(chance) / self.groups)
        firsts = -np.log(late) / (self.tolerated + 1.0)
        return np.where(self.grouped, firsts, any_of_them)
