"""Conditional fronts of several measured settings in one search equal those of separate searches."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.parameter import Choice, Integer, Ordinal
from dse.core.space import DesignSpace
from dse.optimizers.bayesian import conditional_fronts
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.testing.known import enumerated

SPACE = DesignSpace(
    parameters=(
        Choice(name="format", values=("bf16", "fp8", "mxfp4")),
        Ordinal(name="rows", values=(4, 8, 16, 32)),
        Ordinal(name="cols", values=(4, 8, 16, 32)),
        Integer(name="clock", low=1, high=6),
    ),
    constraints=(parse("rows * cols <= 256"),),
)


def truth(batch):
    bits = batch.lookup("format", {"bf16": 16.0, "fp8": 8.0, "mxfp4": 4.0})
    array = batch["rows"] * batch["cols"] * 1.0
    return Metrics(
        columns={
            "loss": 1 / bits,
            "time": bits / (array * batch["clock"]) + array / 5000,
            "energy": bits * (1 + batch["clock"] ** 2 / 20 + array / 300),
        }
    )


@pytest.fixture(scope="module")
def problem():
    kinds = {"loss": "measured", "time": "modelled", "energy": "modelled"}
    found = enumerated(SPACE, kinds, dict.fromkeys(kinds, "minimize"), truth).problem
    read = replace(found.sources["loss"], reads=frozenset({"format"}))
    return replace(found, sources={**found.sources, "loss": read})


@pytest.fixture
def settings():
    """A design of each measured setting, one of them twice."""
    chips = [{"rows": 4, "cols": 8, "clock": clock} for clock in (1, 2, 3, 4)]
    formats = ("bf16", "mxfp4", "fp8", "bf16")
    pairs = zip(formats, chips, strict=True)
    return SPACE.batch([{"format": name, **chip} for name, chip in pairs])


def found(problem, batch):
    """Return the conditional fronts of a batch's measured settings, as designs and losses."""
    front_cache = ConditionalFrontCache(problem, MeasuredSplit(problem=problem)).complete_fronts(
        batch
    )
    return [(one.designs.designs(), one.losses.tolist()) for one in front_cache]


def test_joint_search_finds_the_conditional_front_of_each_setting(problem, settings, monkeypatch):
    monkeypatch.setattr(conditional_fronts, "LISTED", 10)
    together = found(problem, settings)
    assert together[:3] == [found(problem, settings.take(np.array([row])))[0] for row in range(3)]
    assert together[3] == together[0]


def test_a_search_finds_the_losses_that_listing_finds(problem, settings, monkeypatch):
    listed = found(problem, settings)
    monkeypatch.setattr(conditional_fronts, "LISTED", 10)
    searched = found(problem, settings)
    assert min(len(losses) for _, losses in listed) > 3
    for (_, one), (_, other) in zip(listed, searched, strict=True):
        assert np.unique(one, axis=0).tolist() == np.unique(other, axis=0).tolist()


def test_a_conditional_front_depends_on_the_measured_setting_alone(problem, settings, monkeypatch):
    monkeypatch.setattr(conditional_fronts, "LISTED", 10)
    others = SPACE.batch(
        [{"format": one["format"], "rows": 32, "cols": 4, "clock": 6} for one in settings.designs()]
    )
    assert found(problem, others) == found(problem, settings)


def test_an_estimate_depends_on_the_settings_at_hand_and_on_nothing_before(
    problem, settings, monkeypatch
):
    monkeypatch.setattr(conditional_fronts, "LISTED", 10)
    monkeypatch.setattr(
        conditional_fronts, "_PROBES", 1
    )  # so that settings are easily taken for equal
    fresh, used = (ConditionalFrontCache(problem, MeasuredSplit(problem=problem)) for _ in range(2))
    for row in (2, 1, 0):
        used.estimate_fronts(settings.take(np.array([row])))
    (one, places), (other, same) = fresh.estimate_fronts(settings), used.estimate_fronts(settings)
    assert places.tolist() == same.tolist()
    assert [own.losses.tolist() for own in one] == [own.losses.tolist() for own in other]
