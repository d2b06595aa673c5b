from __future__ import annotations

import numpy as np
import pytest

from dse.core.metric import Metrics
from dse.core.parameter import Real
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.optimizers.auto import optimizer_for
from dse.testing.known import problem_of
from dse.testing.problems import tiny_codesign, zdt1

SPACE = DesignSpace(parameters=(Real(name="x", low=0.0, high=1.0),))


def asking(objectives: int, kind: str = "measured") -> Problem:
    names = [f"f{place}" for place in range(objectives)]

    def truth(batch) -> Metrics:
        return Metrics(columns={name: np.asarray(batch["x"]) for name in names})

    return problem_of(SPACE, dict.fromkeys(names, kind), dict.fromkeys(names, "minimize"), truth)


@pytest.mark.parametrize(
    ("problem", "measurements", "cost_s", "use"),
    [
        (tiny_codesign().problem, 50, 60.0, "grey-box"),
        (zdt1().problem, 200, 60.0, "grey-box"),
        (zdt1().problem, 200, 1e-4, "grey-box"),  # who bounds measurements wants much from each
        (zdt1().problem, None, 1e-4, "nsga2"),
        (zdt1().problem, 5_000, 60.0, "nsga2"),
        (asking(5), 100, 60.0, "qlognehvi"),
        (asking(5), 5_000, 60.0, "age-moea2"),
        (asking(2, "modelled"), None, None, "nsga2"),
        (asking(5, "modelled"), None, None, "age-moea2"),
        (tiny_codesign("modelled").problem, None, None, "exhaustive"),
    ],
)
def test_auto_chooses_by_what_is_known(problem, measurements, cost_s, use) -> None:
    choice = optimizer_for(problem, measurements, cost_s)
    assert choice.use == use
    assert choice.reason


@pytest.mark.parametrize(
    ("problem", "measurements", "cost_s", "reason"),
    [
        (
            zdt1().problem,
            12,
            2e-4,
            "no more than 12 measurements may be made (the first measurement took 0.2 ms, less than "
            "a suggestion of about 0.2 s; the option thinking bounds suggestions): each is chosen "
            "by a surrogate",
        ),
        (
            tiny_codesign().problem,
            1,
            None,
            "no more than 1 measurement may be made: only what has to be measured is learnt",
        ),
        (
            zdt1().problem,
            None,
            61.25,
            "the first measurement took 61 s: each is chosen by a surrogate",
        ),
        (
            zdt1().problem,
            None,
            None,
            "the cost of a measurement is not known: each is chosen by a surrogate",
        ),
        (
            asking(5),
            None,
            3.0,
            "the first measurement took 3 s, and 5 objectives are too many for closed forms",
        ),
        (
            zdt1().problem,
            None,
            2e-4,
            "the first measurement took 0.2 ms, less than 50 ms: evolution chooses faster than "
            "a surrogate",
        ),
        (
            zdt1().problem,
            5_000,
            2e-4,
            "5,000 measurements, more than 1,000: evolution chooses faster than a surrogate",
        ),
    ],
)
def test_a_reason_holds_figures_that_were_declared_or_measured(
    problem, measurements, cost_s, reason
) -> None:
    assert optimizer_for(problem, measurements, cost_s).reason == reason
