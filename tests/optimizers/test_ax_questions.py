"""Ax is told everything, and what it cannot do is owned up to."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.metric import Metrics
from dse.core.parameter import Integer
from dse.core.space import DesignSpace
from dse.optimizers.ax import AxService
from dse.optimizers.support.unseen_designs import fresh
from dse.testing.known import Known, problem_of
from dse.testing.problems import zdt1

pytestmark = pytest.mark.slow


def _line(truth, **options):
    """A problem over one number with two measured objectives, one of each direction."""
    problem = problem_of(
        DesignSpace(parameters=(Integer(name="n", low=0, high=40),)),
        {"cost": "measured", "gain": "measured"},
        {"cost": "minimize", "gain": "maximize"},
        truth,
    )
    return replace(zdt1(), problem=replace(problem, **options), truth=truth)


def _told(known: Known) -> AxService:
    designs = fresh(known.problem.space, 9, np.random.default_rng(2), ())
    optimizer = AxService(known.problem)
    optimizer.tell(known.finished(designs))
    return optimizer


def _bowls(batch):
    n = batch["n"].astype(float)
    return Metrics(columns={"cost": 1e-6 * (n - 11) ** 2, "gain": 50 - (n - 14) ** 2})


@pytest.mark.parametrize("reference", [None, (4e-5, 20.0)])
def test_it_asks_where_the_front_is(reference):
    optimizer = _told(_line(_bowls, fixed_reference=reference))
    (asked,) = optimizer.ask(1)
    assert optimizer.events() == []
    assert 9 <= asked["n"] <= 16


def test_what_ax_cannot_take_leads_to_a_random_design_and_an_event():
    def truth(batch):
        n = batch["n"].astype(float)
        return Metrics(columns={"cost": (n - 20) * 8e306, "gain": (20 - n) * 8e306})

    optimizer = _told(_line(truth))
    assert len(optimizer.ask(2)) == 2
    assert [event.kind for event in optimizer.events()] == ["fallback"]
