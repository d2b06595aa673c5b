"""Values are told in units that people use, shares without powers of ten, and dust as no difference."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from dse import Metric, Study, evaluator
from dse.analysis.runner_up import duels
from dse.analysis.trade_rates import rates
from dse.core.pareto import ParetoSet
from dse.report.answer import Answer
from dse.report.html.runner_up_html import duel_words
from dse.report.text.summary import best_words
from dse.report.text.trial_tables import front_table
from dse.report.words import metric_text, number_text, percent_text
from dse.storage.memory import MemoryStorage


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (2.8, "280 %"),
        (28.4, "2,800 %"),
        (0.9999999, "100 %"),
        (0.996, "100 %"),
        (-0.9999, "-100 %"),
        (0.051, "5.1 %"),
        (0.5, "50 %"),
        (0.0, "0 %"),
        (1e-9, "less than 0.001 %"),
    ],
)
def test_a_share_is_no_power_of_ten(share, words):
    assert percent_text(share) == words


@pytest.mark.parametrize("unit", ["$", "USD"])
def test_nobody_pays_in_nanodollars(unit):
    assert number_text(3.2e-9, unit) == "3.2e-09 $"
    assert number_text(0.25, unit) == "0.25 $"


def study_of(first, second):
    @evaluator("x", "y", kind="modelled", version="1")
    def tells(n: int) -> dict[str, float]:
        return {"x": first[n], "y": second[n]}

    space = {"n": list(range(len(first)))}
    goals = {"minimize": ["e.x", "e.y"]}
    study = Study("s", space, {"e": tells}, storage=MemoryStorage("memory://"), **goals)
    study.run(progress=False)
    return study


@pytest.mark.parametrize("dust", [1e-10, 1e-13])
def test_a_difference_of_rounding_is_no_trade_off(dust):
    study = study_of([1.0, 1.0 + dust, 5.0], [4.0 * (1 + dust), 4.0, 2.0])
    found = [(one.gain, one.price) for one in rates(study.front.found)]
    assert found == [pytest.approx((4.0, 2.0))]
    twins = study_of([1.0, 1.0 + dust], [4.0 * (1 + dust), 4.0])
    assert rates(twins.front.found) == []
    front = ParetoSet.of(twins.problem, list(twins.trials))
    told = duels(front, list(twins.trials))
    assert [one.beaten for one in told] == [False, False]
    assert all(duel_words(twins.problem, one).endswith("ties.") for one in told)


def test_a_real_difference_is_one():
    study = study_of([1.0, 1.0 + 1e-6], [4.0 + 1e-5, 4.0])
    (rate,) = rates(study.front.found)
    assert np.isclose([rate.gain, rate.price], [1e-6, 1e-5], rtol=1e-6).all()


LIMITED = [
    ("e.x <= 7 days", "4.492 days"),
    ("0.1 h <= e.x", "107.8 h"),
    ("2 * e.x <= 20 days", "388.1 ks"),
]


@pytest.mark.parametrize(("limit", "words"), LIMITED)
def test_a_value_is_told_in_the_unit_of_its_limit(limit, words):
    @evaluator(Metric("x", "s"), Metric("y"), kind="modelled", version="1")
    def tells(n: int) -> dict[str, float]:
        return {"x": 388_100.0, "y": n}

    asked = {"minimize": ["e.x", "e.y"], "constraints": limit}
    study = Study("s", {"n": [1]}, {"e": tells}, storage=MemoryStorage("memory://"), **asked)
    study.run(progress=False)
    shown = StringIO()
    front_table(
        study.front.found,
        study.trials,
        proof=study.front.proof,
        console=Console(file=shown, width=150),
    )
    assert words in shown.getvalue()
    assert words in study.front._repr_html_()
    assert any(
        words in told for _, told in best_words(study.front.found, Answer.of(study.front.found))
    )
    assert metric_text(388_100.0, study.problem.metrics["e.x"]) == words
    assert study.front[0].metrics["e.x"] == 388_100.0
