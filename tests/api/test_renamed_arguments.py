"""Old names of Python's arguments: accepted with a warning."""

import pytest

from dse import Metric, Study, evaluator
from dse.api.renamed_arguments import renamed_arguments
from dse.errors import SpecError


@evaluator(Metric("loss", goal="minimize"))
def net(width):
    return {"loss": 1.0 / width}


@renamed_arguments(gain="min_improvement")
def stop(*, min_improvement: float = 0.0) -> float:
    return min_improvement


def test_an_old_name_is_the_new_one():
    with pytest.warns(FutureWarning, match="'gain' is called 'min_improvement' now"):
        assert stop(gain=0.5) == 0.5
    assert stop(min_improvement=0.25) == 0.25


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="'min_improvement' and its old name 'gain'"):
        stop(gain=1.0, min_improvement=2.0)


def test_an_old_key_of_a_study_in_python_is_the_new_one(tmp_path):
    with pytest.warns(FutureWarning) as caught:
        study = Study(
            "small",
            {"width": [1, 2, 4]},
            [net],
            storage=f"sqlite:///{tmp_path}/dse.db",
            early={"rule": "successive-halving", "at": [1]},
        )
    assert study.engine.plan.early_stopping is not None
    told = [str(one.message).partition(" now")[0] for one in caught]
    assert "early: 'early' is called 'early_stopping'" in told
    assert "early_stopping.at: 'at' is called 'rungs'" in told
    with pytest.raises(SpecError, match="a study has no 'earlier'"):
        Study("small", {"width": [1, 2, 4]}, [net], earlier=1)
