"""Designs that a file states, with one value for all members of a list."""

import pytest

from dse.errors import DesignError
from dse.schema.space.space_loader import space_of
from dse.schema.study.designs import design_of
from dse.schema.yaml.files import Files

SPACE = """
space: layers
parameters:
  bits: {each: 3, ordinal: [2, 4, 8]}
  clock: {real: [200 MHz, 1 GHz]}
"""


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return space_of(path, Files())


def test_one_value_for_a_list_is_that_of_all_members(space):
    found = design_of({"bits": 4, "clock": "500 MHz"}, space)
    assert dict(found) == {"bits[0]": 4, "bits[1]": 4, "bits[2]": 4, "clock": 5e8}


def test_a_members_own_value_goes_before_the_lists(space):
    found = design_of({"bits[1]": 8, "bits": 2, "clock": 1e9}, space)
    assert [found[f"bits[{place}]"] for place in range(3)] == [2, 8, 2]


def test_a_value_that_no_member_may_have_is_refused(space):
    with pytest.raises(DesignError, match="bits"):
        design_of({"bits": 3, "clock": 1e9}, space)
