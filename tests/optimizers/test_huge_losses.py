"""Penalties of 1e200 and values of any size end no search: every optimizer goes on with them."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.objective import Limit
from dse.core.parameter import Choice, Integer
from dse.core.pareto import ParetoSet, hypervolume_trace
from dse.core.space import DesignSpace
from dse.core.values import Floats
from dse.optimizers.bayesian.output_transform import LARGE, Magnitude
from dse.optimizers.grey_box import GreyBox
from dse.registry import make
from dse.testing.known import Known, enumerated, played

SPACE = DesignSpace(
    parameters=(
        Integer(name="a", low=0, high=5),
        Integer(name="b", low=0, high=5),
        Choice(name="c", values=("x", "y", "z")),
    )
)
MIXED = np.array([1e155, 1e200, 1e300, -1e300, 1e-300, 1.0, -1e155, 1.7e308, -1.7e308, 0.0])


def shape(batch: Batch) -> tuple[Floats, Floats]:
    a, b = batch["a"].astype(float) / 5, batch["b"].astype(float) / 5
    return a, (1 - a) ** 2 + b + 0.1 * batch.lookup("c", {"x": 0.0, "y": 1.0, "z": 2.0})


def penalise(value: float):
    def truth(batch: Batch) -> Metrics:
        f, g = shape(batch)
        broken = (batch["a"] + batch["b"]) % 3 == 0
        return Metrics(columns={"f": f, "g": np.where(broken, value, g)})

    return truth


def multiply(value: float, plus: float = 0.0):
    def truth(batch: Batch) -> Metrics:
        f, g = shape(batch)
        return Metrics(columns={"f": f * value + plus, "g": g * value + plus})

    return truth


def mix(batch: Batch) -> Metrics:
    f, g = shape(batch)
    place = batch["a"] * 7 + batch["b"]
    return Metrics(
        columns={
            "f": np.where(place % 2 == 0, f, MIXED[place % 10]),
            "g": np.where(place % 3 == 0, g, MIXED[(place // 8) % 10]),
        }
    )


CASES = {
    **{f"penalties of {value:g}": penalise(value) for value in (1e155, 1e200, 1e300, -1e300)},
    "penalties of 1.7e308": penalise(1.7e308),
    **{f"all about {value:g}": multiply(value) for value in (1e155, 1e300, -1e300, 1e-300)},
    **{f"all equal {value:g}": multiply(0.0, value) for value in (0.0, 1e300, -1e300, 1e-300)},
    "mixed": mix,
}
CHEAP = ["random", "nsga2", "nsga3", "sms-emoa", "age-moea2", "rvea", "moead", "ctaea"]
TWO = {"f": "minimize", "g": "minimize"}


def known_of(name: str, kinds: tuple[str, str], **more) -> Known:
    return enumerated(SPACE, dict(zip("fg", kinds, strict=True)), TWO, CASES[name], **more)


def check_played(known: Known, optimizer, budget: int) -> None:
    trials = played(known, optimizer, budget)
    assert len({trial.design for trial in trials}) == budget
    front = ParetoSet.of(known.problem, trials)
    assert front.trials
    assert front.knee in front.trials
    assert front.hypervolume is None or np.isfinite(front.hypervolume)
    assert np.isfinite(hypervolume_trace(known.problem, trials)).all()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("optimizer", CHEAP)
def test_an_evolution_goes_on(optimizer, name):
    known = known_of(name, ("measured", "measured"))
    options = {} if optimizer == "random" else {"pop_size": 12}
    check_played(known, make("optimizers", optimizer, known.problem, **options), 26)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kinds", [("measured", "measured"), ("measured", "modelled")])
def test_a_grey_box_goes_on(name, kinds):
    known = known_of(name, kinds)
    check_played(known, GreyBox(known.problem, initial=4), 7)


OTHERS = ["penalties of 1e+200", "all equal 1e+300", "mixed"]


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [("qlognehvi", "mixed"), *(("tpe", name) for name in OTHERS)]
    + [pytest.param("qlognehvi", name, marks=pytest.mark.proof) for name in OTHERS[:2]],
)
def test_other_surrogates_go_on(optimizer, name):
    if optimizer == "tpe":
        pytest.importorskip("optuna")
    known = known_of(name, ("measured", "measured"))
    check_played(known, make("optimizers", optimizer, known.problem, initial=4), 6)


@pytest.mark.parametrize("value", [1e200, -1e200])
def test_limits_may_be_broken_by_any_amount(value):
    limits = (Limit(text="g <= 2", slack=parse("2 - g"), scale=1.0),)
    known = enumerated(
        SPACE, {"f": "measured", "g": "measured"}, TWO, penalise(value), limits=limits
    )
    check_played(known, GreyBox(known.problem, initial=5), 8)


def test_what_is_clipped_is_reported_once():
    known = known_of("penalties of 1e+200", ("measured", "measured"))
    optimizer = GreyBox(known.problem, initial=5)
    played(known, optimizer, 11)
    texts = [event.text for event in optimizer.events() if event.kind == "clipped"]
    assert texts == ["g: values beyond 1e+60 are learnt as twice the largest of the others"]


def test_ordinary_losses_are_learnt_as_they_are():
    values = np.array([3.0, -LARGE, 0.0, LARGE, np.nan])
    assert Magnitude.of(values).is_identity
    assert Magnitude.of(values)(values) is values


@pytest.mark.parametrize(
    ("values", "learnt"),
    [
        ([1.0, 5.0, 1e200], [1.0, 5.0, 10.0]),
        ([1.0, 5.0, -1e300], [1.0, 5.0, -10.0]),
        ([0.0, 1e155, 5e154], [0.0, 1.0, 0.5]),
        ([-1e300, -1e300], [-1.0, -1.0]),
        ([1e61], [1.0]),
        ([2.0, 3.0, 1e61, np.nan], [2.0, 3.0, 6.0, np.nan]),
    ],
)
def test_large_losses_keep_their_order_and_sign(values, learnt):
    found = Magnitude.of(np.array(values))(np.array(values))
    np.testing.assert_array_equal(found, learnt)


def test_a_reference_point_is_not_clipped():
    magnitude = Magnitude.of(np.array([1.0, 5.0, 1e200]), also=1000.0)
    assert magnitude(np.array([1000.0])) == 1000.0
