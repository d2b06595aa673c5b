"""``dse assets`` and ``dse environments``: what measurements need beside this program."""

from __future__ import annotations

from dse.report.schemas.base import Shape


class AssetFacts(Shape):
    """A model or data that real measurements need."""

    name: str
    """What `dse assets install` calls it."""
    used_by: list[str]
    """The models and evaluators that need it."""
    purpose: str
    """What it is for."""
    licence: str
    """Under which licence it comes."""
    package: str
    """The package of the index that has it."""
    version: str
    """Which version of the package."""
    size_bytes: int
    """How much is downloaded, in bytes."""
    sha256: str
    """The check sum of what is downloaded."""
    reads: list[str]
    """The files of the package that are read."""
    installed: bool
    """Whether it is there."""
    folder: str
    """Where it is, or would be."""


class EnvironmentFacts(Shape):
    """A program that is installed by itself, since its pins conflict with ours."""

    name: str
    """What `dse environments install` calls it."""
    used_by: list[str]
    """The evaluators that need it."""
    purpose: str
    """What it is for."""
    licence: str
    """Under which licence it comes."""
    package: str
    """The package of the index that has it."""
    version: str
    """Which version of the package."""
    size_bytes: int
    """How much it takes on disk with all that it needs, in bytes."""
    installed: bool
    """Whether it is there."""
    folder: str
    """Where it is, or would be."""
    python: str
    """The Python that runs it."""


class Placed(Shape):
    """An asset or environment that was asked to be there."""

    name: str
    """Its name."""
    version: str
    """The version that is there now."""
    new: bool
    """Whether it was installed by this command, or there already."""
    folder: str
    """Where it is."""


class Removed(Shape):
    """An asset or environment that was asked to be gone."""

    name: str
    """Its name."""
    removed: bool
    """Whether it was there."""


class Place(Shape):
    """Location of an asset or environment."""

    name: str
    """Its name."""
    path: str
    """The folder of an asset, the Python of an environment."""


class Places(Shape):
    """Locations of assets or environments."""

    folder: str
    """The folder that all of them lie in."""
    places: list[Place]
    """Those that were named."""
