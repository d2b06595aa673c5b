"""What tests of outages share: short pauses, and a folder of their own for what is not stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.storage import patience as outage


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which drivers keep outcomes that they could not store."""
    monkeypatch.setattr(outage, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("DSE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"
