"""The way into pymoo's survival classes and back: losses in, rows out, nothing left behind."""

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
    losses: Floats,  # (n, m), all within their limits
    size: int,
    rng: np.random.Generator,
    **known: Any,
) -> tuple[Ints, Any]:
    """Return the rows that pymoo keeps, and its population of them with its annotations."""
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
    """Ignore warnings inside the block and restore the warning filters on exit.

    Pymoo silences numpy's warnings permanently where a plane is flat.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
