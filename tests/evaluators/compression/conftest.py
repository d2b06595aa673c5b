"""Weights that these tests train are theirs alone, and trained once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def weight_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = str(tmp_path_factory.mktemp("weights"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSE_CACHE", folder)
        yield folder
