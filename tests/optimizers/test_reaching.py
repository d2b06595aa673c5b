from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.parameter import Integer
from dse.core.space import DesignSpace
from dse.optimizers.grey_box import GreyBox
from dse.testing.known import enumerated, played

SPACE = DesignSpace(parameters=tuple(Integer(name=name, low=0, high=9) for name in "ab"))


def three(batch: Batch) -> Metrics:
    a, b = batch["a"].astype(float), batch["b"].astype(float)
    return Metrics(columns={"f": a**2, "g": (9 - a) ** 2 + b, "h": (b - 4) ** 2 + a})


def references(hope: float) -> np.ndarray:
    names = dict.fromkeys("fgh", "measured")
    problem = enumerated(SPACE, names, dict.fromkeys("fgh", "minimize"), three)
    optimizer = GreyBox(problem.problem)
    played(problem, optimizer, 8)
    known = optimizer._posterior()
    assert known is not None
    return known.reaching(SPACE.sample(64, np.random.default_rng(1)), hope).archive.learnt_reference


def test_who_hopes_for_more_never_takes_a_nearer_reference_point() -> None:
    predicted, hoped = references(0.0), references(2.0)
    assert (hoped >= predicted).all()
    assert (hoped > predicted).any()


def test_zero_standard_deviations_give_the_predicted_front() -> None:
    assert references(0.0) == pytest.approx(references(1e-12))
