"""What objectives and limits cost one another, in words, against sums done by hand."""

import re
from dataclasses import replace

import pytest

from dse.analysis.limits import activities
from dse.analysis.trade_rates import rates
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Integer
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.report.answer import Answer
from dse.report.html.failure_reasons import list_failure_reasons
from dse.report.html.tradeoffs import limits_html, rate_words, rates_html, step_words
from dse.report.text.summary import best_words

# accuracy, energy in mJ, area in mm2. Accuracy 0.80 -> 0.90 -> 0.94 costs 1 -> 3 -> 11 mJ.
FOUND = [(0.80, 1.0, 4.0), (0.90, 3.0, 5.0), (0.94, 11.0, 6.0), (0.95, 9.0, 10.5), (0.70, 2.0, 12)]


@pytest.fixture
def asked() -> Problem:
    units = {"accuracy": "", "energy": "J", "area": "mm2"}
    return Problem(
        space=DesignSpace(parameters=(Integer(name="x", low=0, high=9),)),
        sources={
            name: Source(
                metric=Metric(name=name, unit=unit), kind="measured", reads=frozenset({"x"})
            )
            for name, unit in units.items()
        },
        objectives=(
            Objective(expression=parse("accuracy"), goal="maximize"),
            Objective(expression=parse("energy"), goal="minimize", unit="J"),
        ),
        limits=(Limit(text="area <= 10 mm2", slack=parse("10 - area"), scale=10.0),),
    )


@pytest.fixture
def trials() -> list[Trial]:
    return [
        Trial(number=number, design=Design({"x": number})).finished(
            Outcome(
                state=State.DONE,
                metrics={"accuracy": accuracy, "energy": 1e-3 * energy, "area": float(area)},
                measured=1,
            )
        )
        for number, (accuracy, energy, area) in enumerate(FOUND)
    ]


def rows(html: str) -> list[list[str]]:
    body = html.partition("<tbody>")[2]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]


def test_a_step_along_the_front_is_told_with_what_a_hundredth_costs(asked, trials) -> None:
    first, last = rates(ParetoSet.of(asked, trials))
    assert step_words(asked, first) == "0.1 more accuracy for 2 mJ more energy"
    assert rate_words(asked, first) == "1 % (0.008) costs 160 µJ"  # 0.008 * 2 mJ / 0.1
    assert step_words(asked, last) == "0.04 more accuracy for 8 mJ more energy"
    assert rate_words(asked, last) == "1 % (0.009) costs 1.8 mJ"  # 0.009 * 8 mJ / 0.04


def test_the_page_names_both_trials_of_a_step(asked, trials) -> None:
    told = rows(rates_html(asked, rates(ParetoSet.of(asked, trials))))
    assert [row[3] for row in told] == ["0 to 1", "1 to 2"]


def test_a_limit_that_keeps_a_better_design_out_binds_and_says_what_loosening_it_buys(
    asked, trials
) -> None:
    (told,) = rows(limits_html(asked, activities(asked, trials)))
    assert told == [
        "area &lt;= 10 mm2",
        "yes",
        "2 of 5, 2 by it alone",
        "-",
        "accuracy 0.95 in place of 0.94 (trial 3)",  # 10.5 mm2 is within 11
        "accuracy 0.95 in place of 0.94 (trial 3)",
    ]


def test_a_limit_that_keeps_out_nobody_better_does_not_bind(asked, trials) -> None:
    (told,) = rows(limits_html(asked, activities(asked, [*trials[:3], trials[4]])))
    assert told[1] == "no"
    assert told[4:] == ["nothing among the trials"] * 2


def test_a_limit_that_nobody_keeps_says_so(asked, trials) -> None:
    (told,) = rows(limits_html(asked, activities(asked, trials[3:])))
    assert told[1] == "no trial keeps it"


def test_the_best_designs_in_words_hold_what_the_table_does(asked, trials) -> None:
    front = ParetoSet.of(asked, trials)
    told = dict(best_words(front, Answer.of(front, trials)))
    assert told["Highest accuracy"] == "trial 2 with accuracy 0.94 and energy 11 mJ (x=2)."
    assert told["Lowest energy"] == "trial 0 with accuracy 0.8 and energy 1 mJ (x=0)."
    # In shares of the ranges trial 1 is (0.286, 0.2) from the ideal, the others (1, 0) and (0, 1).
    assert told["A balance (the knee)"] == (
        "trial 1 with accuracy 0.9 and energy 3 mJ (x=1). "
        "That is accuracy 4.3 % below the best and energy 3 times the best."
    )


def test_a_limit_stated_under_two_scenarios_strikes_a_trial_once(asked, trials) -> None:
    twice = tuple(
        Limit(text="area <= 10 mm2", slack=parse(f"{bound} - area"), scale=float(bound))
        for bound in (10, 11)
    )
    (found,) = list_failure_reasons(replace(asked, limits=twice), trials)
    assert found.trials == (3, 4)
