"""Adapter that calls pymoo's survival classes on plain arrays of losses, without side effects."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from pymoo.core.population import Population
from pymoo.core.survival import Survival

from dse.core.values import Floats, Ints


def select_survivors(
    survival: Survival,
    losses: Floats,  # (n, m), of feasible designs
    size: int,
    rng: np.random.Generator,
    **known: Any,
) -> tuple[Ints, Any]:
    """Apply pymoo's survival rule; return the survivors as indices and as a Population.

    Further keyword arguments are passed on to ``survival.do``.
    """
    rows = np.arange(len(losses))[:, None]
    question = SimpleNamespace(has_constraints=lambda: False, n_obj=losses.shape[1])
    with restore_filters():
        kept = survival.do(
            question,
            Population.new("X", rows, "F", losses),
            n_survive=size,
            random_state=rng,
            **known,
        )
    return kept.get("X")[:, 0], kept


@contextmanager
def restore_filters() -> Iterator[None]:
    """Suppress warnings inside the block and restore the warning filters on exit.

    pymoo disables numpy's warnings permanently if its hyperplane is degenerate.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
