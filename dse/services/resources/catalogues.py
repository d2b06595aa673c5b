"""Catalogues of the two kinds of resources: assets (models, data) and Python environments."""

from __future__ import annotations

from dse.report.schemas.resources_schema import AssetFacts, EnvironmentFacts
from dse.resources.asset import Asset, assets_folder
from dse.resources.build import build, demolish
from dse.resources.environment import Environment, environments_folder
from dse.resources.install import install, remove
from dse.services.resources.catalogue import ResourceCatalogue


def _asset(one: Asset) -> AssetFacts:
    return {
        "name": one.name,
        "used_by": list(one.used_by),
        "purpose": one.purpose,
        "licence": one.licence,
        "package": one.package,
        "version": one.version,
        "size_bytes": one.size_bytes,
        "sha256": one.sha256,
        "reads": list(one.reads),
        "installed": one.installed,
        "folder": str(one.folder),
    }


def _environment(one: Environment) -> EnvironmentFacts:
    return {
        "name": one.name,
        "used_by": list(one.used_by),
        "purpose": one.purpose,
        "licence": one.licence,
        "package": one.package,
        "version": one.version,
        "size_bytes": one.size_bytes,
        "installed": one.installed,
        "folder": str(one.folder),
        "python": str(one.python),
    }


assets: ResourceCatalogue[Asset, AssetFacts, int] = ResourceCatalogue(
    kind="asset",
    group="assets",
    folder=assets_folder,
    place=lambda one: one.folder,
    describe=_asset,
    bring=install,
    take=remove,
)
"""Models and data that measurements need, stored in a cache folder."""

environments: ResourceCatalogue[Environment, EnvironmentFacts, str] = ResourceCatalogue(
    kind="environment",
    group="environments",
    folder=environments_folder,
    place=lambda one: one.python,
    describe=_environment,
    bring=build,
    take=demolish,
)
"""Programs whose pinned packages conflict with this project's, each in its own environment."""
