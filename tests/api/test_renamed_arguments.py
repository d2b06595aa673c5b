"""Old names of Python's arguments: accepted with a warning."""

import pytest

from dse.api.renamed_arguments import renamed_arguments


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
