"""What tests of real models need: assets, or else their names, and weights of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dse.resources.asset import assets_folder
from dse.resources.environment import environments_folder
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.workloads.assets import asset_folder, is_installed


@pytest.fixture(scope="session", autouse=True)
def weight_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Weights that these tests train are theirs alone; assets and environments are the user's."""
    folder = tmp_path_factory.mktemp("weights")
    (folder / "assets").symlink_to(assets_folder(), target_is_directory=True)
    (folder / "environments").symlink_to(environments_folder(), target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSE_CACHE", str(folder))
        yield str(folder)


@pytest.fixture(scope="session")
def asset(weight_folder: str) -> Callable[[str], Path]:
    """The folder of an asset; where it is not installed, the test is skipped by its name."""

    def folder(name: str) -> Path:
        if not is_installed(name):
            pytest.skip(f"needs the asset {name!r}: dse assets install {name}")
        return asset_folder(name)

    return folder


@pytest.fixture(scope="session")
def environment(weight_folder: str) -> Callable[[str], None]:
    """Nothing, where an environment is installed; elsewhere the test is skipped by its name."""

    def check(name: str) -> None:
        if not ENVIRONMENTS[name].installed:
            pytest.skip(f"needs an environment: dse environments install {name}")

    return check
