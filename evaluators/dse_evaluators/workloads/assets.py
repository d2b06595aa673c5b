"""Assets of the workloads: pinned packages that contain their models and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dse.errors import PluginError, nearest
from dse.resources.asset import Asset
from dse_evaluators.csv_files.csv_records import read_records

ASSETS: Mapping[str, Asset] = read_records(Path(__file__).with_name("assets.csv"), Asset)
"""Rows of ``assets.csv``, by name.

The pattern ``**/*.*`` there is for files with an extension, which the workload `magika` classifies.
"""


def asset_folder(name: str) -> Path:
    """Return the folder of an installed asset (package of model or data files).

    Raises:
        PluginError: there is no such asset, or it is not installed.
    """
    asset = _asset(name)
    asset.check_installed()
    return asset.folder


def is_installed(name: str) -> bool:
    """Return whether an asset (package of model or data files) is installed.

    Raises:
        PluginError: there is no such asset.
    """
    return _asset(name).installed


def _asset(name: str) -> Asset:
    if name not in ASSETS:
        raise PluginError(f"there is no asset {name!r}", hint=nearest(name, ASSETS))
    return ASSETS[name]
