"""What a study shows as its result."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.pareto import ParetoSet
from dse.core.trial import State
from dse.report.answer import Answer, broken_limits


def test_the_answer_is_the_front_in_the_objectives_own_signs(made_up) -> None:
    answer = Answer.of(made_up.front, made_up.trials)
    accuracies = [trial.metrics["quality.accuracy"] for trial in answer.trials]
    assert answer.feasible
    assert answer.values[:, 0].tolist() == accuracies


def test_where_nothing_is_feasible_the_least_violating_trials_answer(hopeless) -> None:
    answer = Answer.of(hopeless.front, hopeless.trials)
    done = [trial for trial in hopeless.trials if trial.state is State.DONE]
    smallest = min(trial.metrics["chip.area"] for trial in done)
    assert not answer.feasible
    assert {trial.metrics["chip.area"] for trial in answer.trials} == {smallest}


def test_a_miss_tells_each_broken_limit_and_its_share_of_the_bound(hopeless) -> None:
    answer = Answer.of(hopeless.front, hopeless.trials)
    area = answer.trials[0].metrics["chip.area"]
    assert answer.broken[0] == {"chip.area <= 0.01 mm2": pytest.approx(area / 0.01 - 1)}


def test_without_a_finished_trial_there_is_no_answer(hopeless) -> None:
    failed = [trial for trial in hopeless.trials if trial.state is State.FAILED]
    answer = Answer.of(ParetoSet.of(hopeless.problem, failed), failed)
    assert answer.trials == ()


def test_a_trial_whose_objective_is_no_number_is_not_on_the_front(made_up) -> None:
    good = made_up.front.trials[0]
    blank = replace(good, number=999, metrics={**good.metrics, "chip.energy": float("nan")})
    front = ParetoSet.of(made_up.problem, [blank, *made_up.trials])
    assert front.trials == made_up.front.trials


def test_a_limit_that_cannot_be_told_is_not_called_broken(made_up) -> None:
    blank = replace(made_up.trials[0], metrics={"chip.area": float("inf")})
    assert broken_limits(made_up.problem, [blank]) == [{}]


def test_parameters_that_all_share_are_told_apart_from_those_that_differ(made_up) -> None:
    answer = Answer.of(made_up.front)
    assert answer.common == {"chip.banks": 4}
    assert "chip.banks" not in answer.varying
    assert answer.varying[0] == "weight_format"


def test_one_design_has_nothing_in_common_with_others(made_up) -> None:
    one = ParetoSet.of(made_up.problem, made_up.front.trials[:1])
    assert Answer.of(one).common == {}


def test_no_value_is_minus_zero(made_up) -> None:
    zero = replace(made_up.front.trials[0], metrics={**made_up.trials[0].metrics})
    zero = replace(zero, metrics={**zero.metrics, "quality.accuracy": 0.0})
    answer = Answer.of(replace(made_up.front, trials=(zero,)))
    assert not np.signbit(answer.values[0, 0])
