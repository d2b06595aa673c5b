"""Limits on a measured metric that is a sum of terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.objective import Limit
from dse.core.trial import Trial
from dse.optimizers.grey_box import GreyBox
from dse.testing.known import Known, played
from tests.optimizers.quantized_layers import SPACE, quantized, total

BOUND = 1.0
LIMIT = Limit(text="loss <= 1", slack=parse("1 - loss"), scale=BOUND)


def limited(*, alone: bool, declared: bool = True) -> Known:
    """Return the problem with a limit on the loss; ``alone``: the size is the one objective."""
    known = quantized(total, declared=declared)
    objectives = known.problem.objectives[: 1 if alone else 2]
    return replace(known, problem=replace(known.problem, objectives=objectives, limits=(LIMIT,)))


def least_size(known: Known, trials: list[Trial]) -> float:
    kept = known.problem.feasible(trials)
    sizes = np.array([trial.metrics["size"] for trial in trials])
    return float(sizes[kept].min())


def test_the_smallest_design_within_a_limit_on_a_declared_sum_is_found() -> None:
    declared, plain = (limited(alone=True, declared=one) for one in (True, False))
    front = declared.front
    best = front[front[:, 1] <= BOUND, 0].min()
    found = least_size(declared, played(declared, GreyBox(declared.problem), 15))
    without = GreyBox(plain.problem, find_sums=False)
    assert found == pytest.approx(best)
    assert least_size(plain, played(plain, without, 15)) > best + 1e-9


def test_the_front_within_a_limit_on_an_objective_is_found_to_its_end() -> None:
    known = limited(alone=False)
    front = known.front[known.front[:, 1] <= BOUND]
    known = replace(known, front=front, reference=np.array([front[:, 0].max() * 1.1, BOUND]))
    trials = played(known, GreyBox(known.problem), 18)
    losses = np.array([trial.metrics["loss"] for trial in trials[9:]])
    assert (losses <= BOUND).mean() >= 0.75
    assert known.share(trials) > 0.95


def test_the_choice_of_a_limits_model_is_reported() -> None:
    known = limited(alone=True)
    optimizer = GreyBox(known.problem)
    optimizer.tell(known.finished(SPACE.sample(20, np.random.default_rng(3)).designs()))
    optimizer.ask(1)
    (event,) = (event for event in optimizer.events() if event.kind == "model")
    assert event.text.startswith("loss <= 1 is learnt as a sum of terms")
