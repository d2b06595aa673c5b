"""What users hold changes only where it was meant to: see ``surface.py``."""

import json
from pathlib import Path

import pytest

from tests.compatibility.surface import surface

KEPT = json.loads(Path(__file__).with_name("surface.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now() -> dict:
    return surface()


@pytest.mark.parametrize("part", sorted(KEPT.keys() - {"plug-ins"}))
def test_what_users_hold_is_what_it_was(now, part):
    assert now[part] == KEPT[part]


@pytest.mark.parametrize("group", KEPT["plug-ins"])
def test_a_plug_in_that_users_name_is_still_there(now, group):
    """New plug-ins may be added without a change of the pinned file."""
    assert set(KEPT["plug-ins"][group]) <= set(now["plug-ins"][group])


def test_nothing_else_is_held(now):
    assert now.keys() == KEPT.keys()
