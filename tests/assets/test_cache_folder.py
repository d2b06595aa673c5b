"""Where caches are: where the user says, else where the desktop says, else in the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.optimizers.exact.checkpoint import checkpoint_of
from dse.resources.asset import cache_folder
from dse.testing.problems import tiny_codesign


@pytest.mark.parametrize(
    ("own", "desktop", "folder"),
    [
        ("/own", "/desktop", "/own"),
        ("", "/desktop", "/desktop/dse-engine"),
        (None, "/desktop", "/desktop/dse-engine"),
        (None, "relative/caches", "/home/me/.cache/dse-engine"),
        (None, "", "/home/me/.cache/dse-engine"),
        (None, None, "/home/me/.cache/dse-engine"),
    ],
)
def test_a_cache_is_where_the_environment_says(own, desktop, folder, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in (("DSE_CACHE", own), ("XDG_CACHE_HOME", desktop)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache_folder() == Path(folder)


def test_checkpoints_of_long_searches_are_kept_there_too(monkeypatch, tmp_path):
    monkeypatch.delenv("DSE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = tiny_codesign("modelled").problem
    object.__setattr__(known, "identity", "some")
    checkpoint = checkpoint_of(known, None, 10)
    assert checkpoint is not None
    assert checkpoint.path.parent == tmp_path / "dse-engine"
