"""Checks of required packages, optional packages (extras) and plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import get_args

from packaging.requirements import Requirement

from dse.errors import DseError
from dse.registry import Group, load, names
from dse.services.doctor.finding import Finding, Verdict

DISTRIBUTION = "dse-engine"

_NOT_BESIDE = frozenset({"scalesim", "zigzag", "mlsysim"})
"""Extras that are not checked: their packages are installed in separate environments."""


def package_findings() -> Iterator[Finding]:
    """Check the installed packages and plug-ins; yield one finding for each group.

    There is one finding on the required packages, one per extra, and one on the plug-ins.
    """
    needed = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    yield _check_required_packages([one for one in needed if one.marker is None])
    extras: dict[str, list[Requirement]] = {}
    for one in needed:
        if one.marker is not None:
            extras.setdefault(_extra(one), []).append(one)
    for extra, some in sorted(extras.items()):
        if extra not in _NOT_BESIDE:
            yield _optional(extra, some)
    yield _plugins()


def _check_required_packages(requirements: list[Requirement]) -> Finding:
    wrong = [message for message in map(_lack, requirements) if message]
    if not wrong:
        message = f"{len(requirements)} installed, {DISTRIBUTION} {version(DISTRIBUTION)}"
        return Finding(part="packages", verdict=Verdict.FINE, message=message)
    return Finding(
        part="packages",
        verdict=Verdict.BROKEN,
        message="; ".join(wrong),
        mend=f"pip install --upgrade {DISTRIBUTION}",
    )


def _optional(extra: str, requirements: list[Requirement]) -> Finding:
    lacks = [message for message in map(_lack, requirements) if message]
    if not lacks:
        message = ", ".join(f"{one.name} {version(one.name)}" for one in requirements)
        return Finding(part=extra, verdict=Verdict.FINE, message=message)
    return Finding(
        part=extra,
        verdict=Verdict.ABSENT,
        message="; ".join(lacks),
        mend=f"pip install '{DISTRIBUTION}[{extra}]'",
    )


def _lack(requirement: Requirement) -> str:
    """Return why a required package does not meet its requirement; empty if it is met.

    The package may be missing or have a wrong version.
    """
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    fits = requirement.specifier.contains(found, prereleases=True)
    return "" if fits else f"{requirement.name} is {found}, not {requirement.specifier}"


def _extra(requirement: Requirement) -> str:
    return str(requirement.marker).partition("extra == ")[2].strip("\"'")


def _plugins() -> Finding:
    broken: list[str] = []
    count = 0
    for group in get_args(Group):
        for name in names(group):
            count += 1
            try:
                load(group, name)
            except DseError as error:
                broken.append(f"{name}: {error}")
    if not broken:
        return Finding(part="plug-ins", verdict=Verdict.FINE, message=f"{count} load")
    return Finding(
        part="plug-ins",
        verdict=Verdict.BROKEN,
        message="; ".join(broken),
        mend="upgrade or remove the package that provides it: dse plugins list",
    )
