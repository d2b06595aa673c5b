"""Recorded learning curves, and curves that a prior draws to extrapolate them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import parse_number, parse_whole, read_csv_rows

_LEAST = 2
"""Runs and epochs of a file."""

_MOST_EPOCHS = 100_000

_DRAWN = 200_000
_KEPT = 20_000
"""Drawn curves, of which those that learn and stay between 0 and 1 are kept, up to a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurves:
    """Learning curves of r trainings after steps 1 to t, from 0 to 1; higher is better."""

    values: Floats  # (r, t)


def read_curves(path: Path, metric: str) -> LearningCurves:
    """Read learning curves from a CSV file with the columns run, epoch and ``metric``.

    Raises:
        SpecError: the file cannot be read, a column is missing, a value is none from 0 to 1, or a
            training does not have each epoch once.
    """
    runs = _read_runs(path, metric)
    last = max((max(one) for one in runs.values()), default=0)
    for run, one in runs.items():
        if len(one) < last:
            problem = f"{path}: run {run} has {len(one)} of the epochs 1 to {last}"
            raise SpecError(problem, hint="leave out trainings that were stopped")
    if len(runs) < _LEAST or last < _LEAST:
        raise SpecError(f"{path}: too few curves", hint="at least two runs of two epochs")
    return LearningCurves(
        values=np.array([[one[epoch] for epoch in range(1, last + 1)] for one in runs.values()])
    )


def _read_runs(path: Path, metric: str) -> Mapping[str, Mapping[int, float]]:
    """Return the value by run and epoch.

    Raises:
        SpecError: as in :func:`read_curves`.
    """
    runs = defaultdict[str, dict[int, float]](dict)
    for row in read_csv_rows(path, ("run", "epoch", metric)):
        run, epoch = row.cells["run"], parse_whole(row, "epoch", 1, _MOST_EPOCHS)
        if epoch in runs[run]:
            problem = f"run {run} has epoch {epoch} twice"
            raise SpecError(problem, where=row.place, hint="a row for each run and epoch")
        runs[run][epoch] = parse_number(row, metric, 0, 1)
    return runs


def predict_better(curves: LearningCurves, steps: Ints) -> Floats:
    """Return the probability that a training ends better than another did, (r, c, r).

    Curves of the prior are weighted by the likelihood of a training's values up to one of the c
    ``steps``, with normal noise. The last value of each training has the same noise.
    """
    from scipy.special import ndtr

    prior, noise = draw_prior(curves.values.shape[1])
    last = curves.values[:, -1]
    better = ndtr((prior[:, -1:] - last) / noise[:, None])  # (p, r)
    found = np.empty((len(last), len(steps), len(last)))
    for run, values in enumerate(curves.values):
        errors = ((prior[:, : steps[-1]] - values[: steps[-1]]) / noise[:, None]) ** 2
        misfit = errors.cumsum(axis=1)[:, steps - 1]  # (p, c)
        weights = -misfit / 2 - steps * np.log(noise)[:, None]
        weights = np.exp(weights - weights.max(axis=0))
        found[run] = (weights / weights.sum(axis=0)).T @ better
    return found


@lru_cache(maxsize=4)
def draw_prior(last: int) -> tuple[Floats, Floats]:
    """Draw learning curves, (p, last), and the standard deviation of their noise, (p,).

    A curve is the mean of a power law, a logarithm and Janoschek's curve, with random weights.
    Those that leave the range from 0 to 1 or end below their start are left out.

    Source:
        Adriaensen et al.: LC-PFN, 2023, section 3.1: the prior of Domhan et al., 2015.
    """
    rng, x = np.random.default_rng(0), np.arange(1, last + 1)
    column = (_DRAWN // 10, 1)
    kept, noises = list[Floats](), list[Floats]()
    for _ in range(10):
        power = rng.uniform(0, 1.25, column) - rng.uniform(-0.6, 0.6, column) * x ** -np.exp(
            rng.normal(0, 2, column)
        )
        logarithm = rng.uniform(0, 1, column) - rng.uniform(-0.5, 0.5, column) / np.log(x + 1)
        end, start = rng.uniform(0, 1, column), rng.uniform(0, 2, column)
        rate, bend = np.exp(rng.normal(-2, 1, column)), np.exp(rng.normal(0, 0.5, column))
        janoschek = end - (end - start) * np.exp(-rate * x**bend)
        shares = rng.dirichlet(np.ones(3), len(end))
        drawn = shares[:, :1] * power + shares[:, 1:2] * logarithm + shares[:, 2:] * janoschek
        fine = ((drawn >= 0) & (drawn <= 1)).all(axis=1) & (drawn[:, -1] > drawn[:, 0])
        kept.append(drawn[fine])
        noises.append(np.exp(rng.normal(-4, 1, len(end)))[fine])
        if sum(map(len, kept)) >= _KEPT:
            break
    return np.concatenate(kept)[:_KEPT], np.concatenate(noises)[:_KEPT]
