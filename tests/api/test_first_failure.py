"""A bug in the user's own function is shown where it is, and not as a study without an answer."""

from __future__ import annotations

import pytest

from dse import InfeasibleError, Metric, Study, evaluator
from dse.errors import SpecError, StudyError

SPACE = {"tile": [16, 32, 64]}
TIME = Metric("time", "us", goal="minimize")


def study_of(function, storage="memory://", **options) -> Study:
    kernel = evaluator(TIME)(function)
    return Study("own", SPACE, {"kernel": kernel}, storage=storage, optimizer="sobol", **options)


def buggy(tile: int) -> dict[str, float]:
    return {"time": tile + "1"}


def test_the_first_failure_is_raised_with_its_traceback():
    study = study_of(buggy)
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        study.run(measurements=3)
    assert caught.traceback[-1].name == "buggy"
    assert "on_error='keep'" in caught.value.__notes__[0]
    assert [trial.state.value for trial in study.trials] == ["failed"]


def test_it_is_raised_each_time_until_a_trial_comes_out():
    study = study_of(buggy)
    for _ in range(2):
        with pytest.raises(TypeError):
            study.run(measurements=3)
    assert len(study.trials) == 2


def test_failures_are_kept_where_that_is_wanted():
    study = study_of(buggy)
    assert study.run(measurements=3, on_error="keep") == "3 measurements are done"
    assert [trial.failure.kind for trial in study.trials] == ["raised"] * 3


def test_later_failures_cost_their_trial_alone():
    def fragile(tile: int) -> dict[str, float]:
        calls.append(tile)
        if len(calls) > 1:
            raise ValueError("odd")
        return {"time": float(tile)}

    calls: list[int] = []
    study = study_of(fragile)
    study.run()
    assert [trial.state.value for trial in study.trials] == ["done", "failed", "failed"]


def test_a_design_that_cannot_exist_is_no_bug():
    def choosy(tile: int) -> dict[str, float]:
        raise InfeasibleError("no such board")

    study = study_of(choosy)
    study.run()
    assert [trial.state.value for trial in study.trials] == ["infeasible"] * 3


def test_an_answer_that_is_none_is_told_as_well():
    with pytest.raises(StudyError, match=r"trial 0 failed: expected a mapping .* got None"):
        study_of(lambda tile: None).run()


def test_columns_are_functions_too():
    kernel = evaluator(TIME, batch=True)(lambda tile: {"time": tile / tile.none})
    study = Study("own", SPACE, {"kernel": kernel}, storage="memory://")
    with pytest.raises(AttributeError, match="none"):
        study.run()


@pytest.mark.slow
def test_what_failed_in_another_process_is_told_with_its_reason():
    study = study_of(buggy, executor={"use": "processes"})
    with pytest.raises(StudyError, match=r"trial \d failed: TypeError: unsupported operand"):
        study.run()


def test_what_is_done_on_errors_is_raise_or_keep():
    with pytest.raises(SpecError, match="on_error cannot be 'rise'") as caught:
        study_of(buggy).run(on_error="rise")
    assert "did you mean 'raise'?" in caught.value.hint


def test_effects_of_a_study_without_results_say_why_there_are_none():
    study = study_of(buggy)
    study.run(on_error="keep")
    with pytest.raises(StudyError, match="0 of 3 finished trials have metrics; 3 have none, 3 of"):
        study.effects()
    with pytest.raises(StudyError, match="TypeError: unsupported operand"):
        study.effects("kernel.time")


def test_an_edited_function_is_named_with_both_ways_on():
    study = study_of(buggy)
    study.run(on_error="keep")
    version = study.engine.plan.objects["given:kernel"].version
    with pytest.raises(StudyError, match="the function of the evaluator 'kernel' was edited") as e:
        study_of(lambda tile: {"time": float(tile)}, storage=study.engine.storage)
    assert f"version={version!r}" in e.value.problem
    assert "another name" in e.value.hint
    assert e.value.problem.count(version) == 1


def test_an_edited_function_hides_no_other_change():
    study = study_of(buggy)
    kernel = evaluator(TIME)(lambda tile: {"time": float(tile)})
    with pytest.raises(StudyError, match=r"was edited.*seed: 0 is now 3"):
        Study(
            "own",
            SPACE,
            {"kernel": kernel},
            storage=study.engine.storage,
            optimizer="sobol",
            seed=3,
        )


@pytest.mark.parametrize("optimizer", ["auto", "exhaustive"])
def test_a_bug_in_a_modelled_function_is_raised_too(optimizer):
    kernel = evaluator(TIME, kind="modelled")(buggy)
    study = Study("own", SPACE, [kernel], storage="memory://", optimizer=optimizer)
    for _ in range(2):
        with pytest.raises(TypeError, match="unsupported operand") as caught:
            study.run()
        assert caught.traceback[-1].name == "buggy"
        assert "3 of 3 legal designs failed, such as tile=16" in caught.value.__notes__[0]
    assert "exact over the 0 designs" in study.run(on_error="keep")


def test_a_modelled_function_may_fail_on_some_designs():
    def fragile(tile: int) -> dict[str, float]:
        return {"time": 1 / (tile - 16)}

    study = Study("own", SPACE, [evaluator(TIME, kind="modelled")(fragile)], storage="memory://")
    study.run()
    assert study.front.failed == 1
