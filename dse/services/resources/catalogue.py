"""Catalogue of the installable resources of one kind, which plug-in packages register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dse.errors import PluginError, nearest
from dse.registry import Group, load, names
from dse.report.schemas.resources_schema import Placed, Places, Removed


class InstallableResource(Protocol):
    """Interface of an installable resource: an asset (data files) or a Python environment."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def used_by(self) -> tuple[str, ...]: ...
    @property
    def purpose(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def installed(self) -> bool: ...
    def check_installed(self) -> None: ...


One = TypeVar("One", bound=InstallableResource)
Facts = TypeVar("Facts")
Seen = TypeVar("Seen")


def _unseen(_: Any) -> None:  # the progress reports of any kind of resource
    """Ignore a report of installation progress; the default callback."""


@dataclass(frozen=True, kw_only=True)
class ResourceCatalogue(Generic[One, Facts, Seen]):
    """Catalogue of the resources of one kind (assets or environments), to install and remove.

    Args:
        kind: noun for messages, such as ``asset``.
        group: entry-point group in which plug-in packages register tables of their resources.
        folder: returns the folder that holds all resources of this kind.
        place: returns the path by which programs use a resource.
        describe: returns the description of one resource.
        bring: installs a resource and reports progress; false if it was installed already.
        take: deletes a resource; false if it was not installed.
    """

    kind: str
    group: Group
    folder: Callable[[], Path]
    place: Callable[[One], Path]
    describe: Callable[[One], Facts]
    bring: Callable[[One, Callable[[Seen], None]], bool]
    take: Callable[[One], bool]

    def known(self) -> Mapping[str, One]:
        """Return all assets or environments of the catalogue, by name.

        Raises:
            PluginError: a plug-in package's table of resources cannot be imported, or two tables
                have different resources of the same name.
        """
        found: dict[str, One] = {}
        for table in names(self.group):
            for name, one in load(self.group, table).items():
                if found.setdefault(name, one) != one:
                    problem = f"two packages provide an {self.kind} {name!r}"
                    raise PluginError(problem, where=table)
        return found

    def chosen(self, *names: str) -> list[One]:
        """Return the resources with these names; without names, all.

        Raises:
            PluginError: there is no resource of a given name. If this is the name of an evaluator,
                the hint lists the resources that this evaluator uses.
        """
        known = self.known()
        for name in names:
            if name not in known:
                hint = self._uses(name) or nearest(name, known)
                raise PluginError(f"there is no {self.kind} {name!r}", hint=hint)
        return [known[name] for name in dict.fromkeys(names or known)]

    def listed(self) -> list[Facts]:
        """Return the description of each resource, and whether it is installed."""
        return [self.describe(one) for one in self.known().values()]

    def install(self, *names: str, on_progress: Callable[[Seen], None] = _unseen) -> list[Placed]:
        """Install resources from the package index that pip is configured for.

        Args:
            names: names of the resources, or none for all; installed ones are left unchanged.
            on_progress: called with the bytes of an asset received so far, or with pip's output.

        Raises:
            PluginError: there is no resource of a name, a download fails, or a file does not match
                its pinned check sum.
        """
        return [self.placed(one, new=self.bring(one, on_progress)) for one in self.chosen(*names)]

    def where(self, *names: str) -> Places:
        """Return the paths of the named resources, and the common folder of all.

        Raises:
            PluginError: there is no resource of a name, or it is not installed.
        """
        named = self.chosen(*names) if names else []
        for one in named:
            one.check_installed()
        return {
            "folder": str(self.folder()),
            "places": [{"name": one.name, "path": str(self.place(one))} for one in named],
        }

    def remove(self, *names: str) -> list[Removed]:
        """Delete the resources with these names; without names, nothing.

        Raises:
            PluginError: there is no resource of a name, or it cannot be deleted.
        """
        named = self.chosen(*names) if names else []
        return [{"name": one.name, "removed": self.take(one)} for one in named]

    def placed(self, one: One, *, new: bool) -> Placed:
        """Return name, version and folder of a resource; ``new`` if it was not installed before."""
        return {"name": one.name, "version": one.version, "new": new, "folder": str(one.folder)}

    def _uses(self, user: str) -> str:
        """Return a sentence that lists the resources an evaluator uses; empty if it uses none."""
        used = [one.name for one in self.known().values() if user in one.used_by]
        return f"{user} uses {' and '.join(used)}" if used else ""
