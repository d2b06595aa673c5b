"""JSON schemas of ``dse assets`` and ``dse environments``: resources for measurements."""

from __future__ import annotations

from dse.report.schemas.base import Shape


class AssetFacts(Shape):
    """Asset: a package of model or data files that measurements need."""

    name: str
    """Its name for `dse assets install`."""
    used_by: list[str]
    """The models and evaluators that need it."""
    purpose: str
    """Its purpose."""
    licence: str
    """Its licence."""
    package: str
    """The package in the package index that contains it."""
    version: str
    """The version of the package."""
    size_bytes: int
    """The size of the download in bytes."""
    sha256: str
    """The SHA-256 checksum of the download."""
    reads: list[str]
    """The files of the package that are read."""
    installed: bool
    """Whether it is there."""
    folder: str
    """Where it is, or would be."""


class EnvironmentFacts(Shape):
    """Program with its own virtual environment, as its pinned packages conflict with this one's."""

    name: str
    """Its name for `dse environments install`."""
    used_by: list[str]
    """The evaluators that need it."""
    purpose: str
    """Its purpose."""
    licence: str
    """Its licence."""
    package: str
    """The package in the package index that contains it."""
    version: str
    """The version of the package."""
    size_bytes: int
    """The disk space that it takes with all its dependencies, in bytes."""
    installed: bool
    """Whether it is there."""
    folder: str
    """Where it is, or would be."""
    python: str
    """The Python that runs it."""


class Placed(Shape):
    """JSON result of installing an asset or an environment."""

    name: str
    """Its name."""
    version: str
    """The version that is installed now."""
    new: bool
    """Whether this command installed it; false if it was already installed."""
    folder: str
    """Where it is."""


class Removed(Shape):
    """JSON result of removing an asset or an environment."""

    name: str
    """Its name."""
    removed: bool
    """Whether it was installed before."""


class Place(Shape):
    """Path of an asset or environment."""

    name: str
    """Its name."""
    path: str
    """The folder of an asset, the Python of an environment."""


class Places(Shape):
    """Paths of the requested assets or environments."""

    folder: str
    """The folder that contains all of them."""
    places: list[Place]
    """The requested ones."""
