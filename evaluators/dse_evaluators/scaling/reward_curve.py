"""Sigmoid of the reward of reinforcement learning by compute, fitted to the points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import parse_number, read_csv_rows

_COLUMNS = ("recipe", "compute", "reward")
_LEAST_POINTS = 6
_EXPONENTS = (0.2, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardCurve:
    """Sigmoid law of the reward of reinforcement learning as a function of compute.

    The reward is ``start + (asymptote - start) / (1 + (midpoint / compute)^exponent)``.

    Source:
        Khatri et al.: The Art of Scaling Reinforcement Learning Compute for LLMs (ScaleRL), 2025,
        equation 1.
    """

    asymptote: float
    exponent: float
    midpoint: float
    start: float

    def predict(self, compute: Floats) -> Floats:
        """Return the reward at each amount of compute, (n,)."""
        return compute_reward(compute, self.asymptote, self.exponent, self.midpoint, self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRun:
    """Rewards of a reinforcement-learning run by rising compute, each (r,).

    ``start`` is the reward before training, if it is known.
    """

    recipe: str
    start: float | None = None
    compute: Floats
    reward: Floats
    where: str

    def take(self, rows: Floats) -> RewardRun:
        """Return the points of the run at which a mask is true."""
        return RewardRun(
            recipe=self.recipe,
            compute=self.compute[rows],
            reward=self.reward[rows],
            where=self.where,
            start=self.start,
        )


def compute_reward(
    compute: Floats,
    asymptote: Floats | float,
    exponent: Floats | float,
    midpoint: Floats | float,
    start: Floats | float,
) -> Floats:
    """Return the reward of a :class:`RewardCurve`, (n,)."""
    return start + (asymptote - start) / (1.0 + (midpoint / compute) ** exponent)


def fit_reward(run: RewardRun) -> RewardCurve:
    """Fit a reward curve to the points of a run, by least squares from several starts.

    Raises:
        SpecError: the run has fewer than six points, or than five and the reward before training.
    """
    from scipy.optimize import least_squares  # SciPy is slow to import, and only this needs it

    needed = _LEAST_POINTS if run.start is None else _LEAST_POINTS - 1  # one parameter less
    if len(run.compute) < needed:
        problem = f"recipe {run.recipe} has {len(run.compute)} points to fit"
        hint = f"a curve needs {needed} before the points that are held out: add rows"
        raise SpecError(problem, where=run.where, hint=hint)
    low, high = float(run.reward.min()), float(run.reward.max())
    span = max(high - low, 1e-9)
    log_compute = np.log(run.compute)

    def miss(parameters: Floats) -> Floats:
        asymptote, exponent, log_midpoint, start = parameters
        start = start if run.start is None else run.start
        found = compute_reward(run.compute, asymptote, exponent, np.exp(log_midpoint), start)
        return found - run.reward

    least = [low, _EXPONENTS[0], log_compute[0] - 5.0, low - 3.0 * span]
    most = [low + 10.0 * span, _EXPONENTS[1], log_compute[-1] + 5.0, high]
    best, score = np.zeros(4), np.inf
    for share in (0.2, 0.5, 0.8):
        for gain in (1.0, 1.5):
            middle = float(np.quantile(log_compute, share))
            found = least_squares(
                miss, [low + gain * span, 1.0, middle, low - 0.01 * span], bounds=(least, most)
            )
            if found.cost < score:
                best, score = found.x, float(found.cost)
    asymptote, exponent, log_midpoint, start = best.tolist()
    return RewardCurve(
        asymptote=asymptote,
        exponent=exponent,
        midpoint=float(np.exp(log_midpoint)),
        start=start if run.start is None else run.start,
    )


def extrapolate(run: RewardRun, share: float) -> Floats:
    """Fit the first share of the compute; return the errors at the points beyond it."""
    seen = run.compute <= share * run.compute[-1]
    curve = fit_reward(run.take(seen))
    beyond = run.take(~seen)
    return curve.predict(beyond.compute) - beyond.reward


def read_runs_of_recipes(path: Path) -> tuple[RewardRun, ...]:
    """Read a CSV file of points of runs, with the columns recipe, compute and reward.

    A row with compute 0 is the reward before training.

    Raises:
        SpecError: the file cannot be read, lacks a column, or a cell is invalid; with the line.
    """
    points: dict[str, list[tuple[float, float, str]]] = {}
    for row in read_csv_rows(path, _COLUMNS):
        compute, reward = parse_number(row, "compute", 0), parse_number(row, "reward")
        points.setdefault(row.cells["recipe"], []).append((compute, reward, row.place))
    return tuple(_sort_points(recipe, some) for recipe, some in points.items())


def _sort_points(recipe: str, points: Sequence[tuple[float, float, str]]) -> RewardRun:
    ordered = sorted(points)
    before = [one for one in ordered if one[0] == 0]
    if len(before) > 1:
        problem = f"recipe {recipe} has two rewards before training"
        raise SpecError(problem, where=before[1][2], hint="leave one row with compute 0")
    trained = ordered[len(before) :]
    return RewardRun(
        recipe=recipe,
        compute=np.array([one[0] for one in trained]),
        reward=np.array([one[1] for one in trained]),
        where=points[0][2],
        start=before[0][1] if before else None,
    )
