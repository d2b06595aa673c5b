"""Load of a row of servers: a daily wave with noise, the same for all designs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.fits import SUFFIX, fits_in

DAY_S = 86_400.0
FITTED = fits_in(Path(__file__).with_suffix(SUFFIX))["row of inference"].constants
"""``peak`` and ``noise`` of a :class:`Wave`, fitted to the published behaviour of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Parameters of a random daily load of servers.

    ``peak`` and ``trough`` are the fractions of time that servers are busy, at noon and at
    midnight; ``noise`` is the standard deviation of noise with the correlation time
    ``noise_time_s``.
    """

    days: float
    step_s: float
    peak: float
    trough: float
    noise: float
    noise_time_s: float
    seed: int


class LoadTrace:
    """Time series of the fraction of time that servers are busy, with threshold searches."""

    def __init__(self, busy: Floats, step_s: float) -> None:
        """Store the fraction of servers' time busy, (steps,), and the time step [s]."""
        self.busy = busy
        self.step_s = step_s
        self._steps = np.arange(len(busy))

    def __len__(self) -> int:
        return len(self.busy)

    def next_outside(self, least: float, most: float) -> Ints:
        """Return, for each time step, the next step with a load outside two bounds, (steps,).

        The bounds are ``least`` and ``most``. If no such step follows, the value is the number of
        steps.
        """
        outside = (self.busy < least) | (self.busy > most)
        found = np.where(outside, self._steps, len(self))
        first: Ints = np.minimum.accumulate(found[::-1])[::-1]
        return first

    def above(self, value: float) -> list[int]:
        """Return the indices of the time steps at which the busy fraction exceeds ``value``."""
        found: list[int] = np.flatnonzero(self.busy > value).tolist()
        return found

    def largest_rise(self, within_s: float) -> float:
        """Return the largest increase of the busy fraction of servers over ``within_s`` seconds."""
        steps = max(1, round(within_s / self.step_s))
        return float(np.max(self.busy[steps:] - self.busy[:-steps], initial=0.0))


@cache
def load_of(wave: Wave) -> LoadTrace:
    """Return the time series of a random daily load, drawn once and cached."""
    steps = max(2, round(wave.days * DAY_S / wave.step_s))
    time_s = np.arange(steps) * wave.step_s
    middle, half = (wave.peak + wave.trough) / 2.0, (wave.peak - wave.trough) / 2.0
    mean = middle - half * np.cos(2.0 * np.pi * time_s / DAY_S)
    keep = float(np.exp(-wave.step_s / wave.noise_time_s))
    fresh = np.random.default_rng(wave.seed).standard_normal(steps)
    fresh[1:] *= np.sqrt(1.0 - keep**2)
    noise = np.array(list(accumulate(fresh.tolist(), lambda before, new: keep * before + new)))
    return LoadTrace(np.clip(mean + wave.noise * noise, 0.0, 1.0), wave.step_s)
