"""The candidate regressors of a learned metric; scikit-learn is imported when one is fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.core.values import Floats

MOST_PROCESS_ROWS = 400
"""Most rows of a Gaussian process, whose fit takes time in the cube of them."""

_SLICE = 20_000
"""Designs that are predicted at once, which bounds the memory of the process's kernel."""

BLEND = "mean of the candidates"


@dataclass(frozen=True, kw_only=True)
class Regressor:
    """Fitted regression models whose mean is the prediction; ``name`` identifies the candidate."""

    name: str
    parts: tuple[Any, ...]

    def predict(
        self,
        features: Floats,  # (n, f)
    ) -> Floats:
        """Return the prediction for each row, (n,), on the scale of the fit."""
        with one_thread():
            parts = [
                np.mean([part.predict(features[at : at + _SLICE]) for part in self.parts], axis=0)
                for at in range(0, len(features), _SLICE)
            ]
        return np.concatenate(parts) if parts else np.zeros(0)


def fit_candidates(
    features: Floats,  # (n, f)
    target: Floats,  # (n,)
    directions: Sequence[int],
    names: Sequence[str] = (),
) -> dict[str, Regressor]:
    """Fit candidate regression models, and the mean of all of them.

    Args:
        features: features of n runs.
        target: the metric of each run, on the scale on which errors are squared.
        directions: 1 for a feature in which the metric rises, -1 where it falls, else 0.
        names: the candidates to fit; empty for all.
    """
    known = _candidates(directions)
    wanted = known if not names or BLEND in names else {name: known[name] for name in names}
    with one_thread():
        fitted = {
            name: Regressor(name=name, parts=(fit(features, target),))
            for name, fit in wanted.items()
        }
    if not names or BLEND in names:
        parts = tuple(part for one in fitted.values() for part in one.parts)
        fitted[BLEND] = Regressor(name=BLEND, parts=parts)
    return fitted


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit numeric libraries to one thread in the block, so that sums have one order."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a bound that an optimised kernel parameter reaches
        yield


_Fit = Callable[[Floats, Floats], Any]


def _candidates(directions: Sequence[int]) -> Mapping[str, _Fit]:
    """Return the fit of each candidate; only trees can keep a declared direction."""
    trees: dict[str, _Fit] = {
        "gradient boosting": lambda x, y: _boosting(directions, len(y)).fit(x, y),
        "extra trees": lambda x, y: _extra_trees(directions).fit(x, y),
    }
    if any(directions):
        return trees
    return {**trees, "Gaussian process": _fit_process, "ridge": _fit_ridge}


def _boosting(directions: Sequence[int], rows: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=150,
        learning_rate=0.08,
        max_leaf_nodes=8 if rows < 1_000 else 31,
        min_samples_leaf=5 if rows < 1_000 else 20,
        l2_regularization=1.0,
        early_stopping=False,
        monotonic_cst=list(directions) if any(directions) else None,
        random_state=0,
    )


def _extra_trees(directions: Sequence[int]) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(
        n_estimators=100,
        max_features=0.5,
        min_samples_leaf=2,
        monotonic_cst=list(directions) if any(directions) else None,
        random_state=0,
    )


def _fit_process(
    features: Floats,  # (n, f)
    target: Floats,  # (n,)
) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

    kept = np.random.default_rng(0).permutation(len(target))[:MOST_PROCESS_ROWS]
    kernel = (
        ConstantKernel(1.0, (1e-3, 1e3)) * Matern(2.0, (0.1, 50.0), nu=1.5)
        + ConstantKernel(0.1, (1e-5, 1e2)) * DotProduct(1.0, "fixed")
        + WhiteKernel(0.05, (1e-6, 2.0))
    )
    made = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return made.fit(features[kept], target[kept])


def _fit_ridge(
    features: Floats,  # (n, f)
    target: Floats,  # (n,)
) -> Any:
    from sklearn.linear_model import RidgeCV

    return RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(features, target)
