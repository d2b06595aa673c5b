"""An objective with ``scale: log``: read, checked, counted and learnt by its logarithm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dse
from dse.analysis.references import ReferenceSet
from dse.core.design import Design
from dse.core.metric import Metrics
from dse.core.parameter import Integer
from dse.core.pareto import ParetoSet, hypervolume, hypervolume_trace
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.errors import SpecError, SpecErrors
from dse.optimizers.grey_box import GreyBox
from dse.optimizers.qlognehvi import QLogNehvi
from dse.report.words import reference_text
from dse.schema.study.plan import plan_of
from dse.testing.known import Known, problem_of

SPACE = "space: small\nparameters:\n  rows: {ordinal: [1, 2, 4]}\n"
STUDY = """\
study: new
space: space.yaml
evaluators:
  net: {use: command, run: [python3, net.py], metrics: {loss: '', time: s}}
objectives:
  - {minimize: net.time, scale: log}
  - {minimize: net.loss}
reference: {net.time: 2 s, net.loss: 1}
"""


def truth(batch):
    n = batch["n"].astype(float)
    return Metrics(columns={"time": 10.0 ** (n - 4), "area": 20.0 - n})


@pytest.fixture
def problem() -> Problem:
    space = DesignSpace(parameters=(Integer(name="n", low=0, high=15),))
    kinds, goals = dict.fromkeys(("time", "area"), "measured"), {"time": "minimize"}
    found = problem_of(space, kinds, goals | {"area": "minimize"}, truth)
    time, area = found.objectives
    return replace(found, objectives=(replace(time, log=True), area), fixed_reference=(1e12, 21.0))


def trials_of(problem: Problem, numbers: range) -> list[Trial]:
    known = Known(problem=problem, truth=truth, front=np.zeros((0, 2)), reference=np.ones(2))
    return known.finished([Design({"n": n}) for n in numbers])


def write_study(folder: Path, text: str) -> Path:
    (folder / "space.yaml").write_text(SPACE)
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def test_hypervolumes_are_those_of_the_logarithms(problem):
    trials = trials_of(problem, range(16))
    losses = problem.trial_losses(trials)
    losses[:, 0] = np.log(losses[:, 0])
    expected = hypervolume(losses, np.array([np.log(1e12), 21.0]))
    front = ParetoSet.of(problem, trials)
    assert front.hypervolume == pytest.approx(expected)
    assert hypervolume_trace(problem, trials)[-1] == pytest.approx(expected)
    yardstick = ReferenceSet.of([front.losses], front.reference, problem.on_scales)
    assert yardstick.value("hypervolume", front.losses) == pytest.approx(expected)
    assert 0.3 < front.hypervolume_share == pytest.approx(yardstick.share(expected))


def test_a_derived_reference_point_is_a_tenth_of_the_range_of_the_logarithms_away(problem):
    point = ParetoSet.of(replace(problem, fixed_reference=None), trials_of(problem, range(10)))
    assert point.reference_point == pytest.approx((10**5.9, 20.9))


def test_reference_points_are_shown_with_the_scale(problem):
    assert reference_text(problem.objectives, (2.0, 3.0)) == "time 2 (log scale), area 3"


def test_a_value_that_is_not_positive_is_undefined_and_the_reason_named(problem):
    trial = replace(
        trials_of(problem, range(1))[0], state=State.DONE, metrics={"time": -1.0, "area": 2.0}
    )
    assert problem.failed([trial]).all()
    assert "with 'scale: log' time must have a value above 0" in problem.undefined_words([trial])


@pytest.mark.parametrize("optimizer", [GreyBox, pytest.param(QLogNehvi, marks=pytest.mark.slow)])
def test_optimizers_ask_a_design_that_improves_the_hypervolume_of_logarithms(problem, optimizer):
    own = optimizer(problem, initial=2)
    own.tell(trials_of(problem, range(8, 16)))
    # the gain, (8 - n) decades of time by n + 1 of area, is largest at 3 and 4; in natural units 0 is asked
    assert own.ask(1)[0]["n"] in (2, 3, 4, 5)


def test_a_study_file_states_the_scale(tmp_path):
    plan = plan_of(write_study(tmp_path, STUDY))
    assert [one.log for one in plan.problem.objectives] == [True, False]


def test_a_reference_point_without_a_logarithm_is_refused_with_its_line(tmp_path):
    path = write_study(tmp_path, STUDY.replace("2 s", "0 s"))
    with pytest.raises(SpecErrors) as caught:
        plan_of(path)
    (error,) = caught.value.errors
    assert "'net.time' is 0 s, which has no logarithm" in str(error)
    assert "study.yaml:8" in str(error)


def test_another_scale_is_refused_with_its_line(tmp_path):
    with pytest.raises(SpecErrors) as caught:
        plan_of(write_study(tmp_path, STUDY.replace("scale: log", "scale: lug")))
    assert "study.yaml:6" in str(caught.value.errors[0])


@dse.evaluator(dse.Metric("time", "s"), dse.Metric("area"))
def kernel(n: int) -> dict[str, float]:
    return {"time": 10.0**n, "area": 20.0 - n}


def test_in_python_log_scale_names_objectives(tmp_path):
    options = {"minimize": ["time", "area"], "storage": f"sqlite:///{tmp_path}/a.db"}
    study = dse.Study("a", {"n": (0, 5)}, [kernel], log_scale="time", **options)
    assert [one.log for one in study.problem.objectives] == [True, False]
    with pytest.raises(SpecError, match="'log_scale' names 'tim', which is no objective"):
        dse.Study("b", {"n": (0, 5)}, [kernel], log_scale=["tim"], **options)
