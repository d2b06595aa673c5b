"""Assumptions of a study: values that the reproduced paper does not state.

Each has an interval, and paths to where the study's files contain the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import DseError, SpecError, nearest
from dse.schema.models import AssumptionSpec, Scalar, StudySpec
from dse.schema.yaml.files import Files, resolve_path
from dse.schema.yaml.source import Path_, SourceDocument
from dse.schema.yaml.validation import ErrorCollector
from dse.units import units

SPACE = "space"
_SECTIONS = frozenset({"evaluators", "baselines", "scenarios"})
_EVERY = "*"

Documents = Mapping[str, Mapping[str, Any]]
"""Contents of YAML files, by their paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Assumed value with its plausible interval, and the key paths to it in the study's files."""

    spec: AssumptionSpec
    places: tuple[tuple[str, Path_], ...]

    @property
    def ends(self) -> tuple[Scalar, ...]:
        """Ends of the interval that differ from the assumed value: one or both."""
        return tuple(one for one in self.spec.interval if not _is_same(one, self.spec.value))

    def turned(self, documents: Documents, end: Scalar) -> dict[str, dict[str, Any]]:
        """Return copies of the study's files in which the assumed value is ``end``."""
        changed = {path: deepcopy(dict(document)) for path, document in documents.items()}
        for path, place in self.places:
            holder: Any = changed[path]
            for part in place[:-1]:
                holder = holder[part]
            holder[place[-1]] = end
        return changed


def assumptions_of(
    spec: StudySpec, source: SourceDocument, files: Files, mistakes: ErrorCollector
) -> tuple[Assumption, ...]:
    """Return the valid assumptions of a study; errors are collected with their line numbers.

    Args:
        spec: the study.
        source: the study's document.
        files: the files, for the space's document.
        mistakes: collector of the errors.
    """
    found = []
    for place, one in enumerate(spec.assumes):
        part = "interval"
        try:
            _check_interval(one)
            part = "turns"
            places = [own for text in one.targets for own in _places(text, one, source, files)]
            found.append(Assumption(spec=one, places=tuple(places)))
        except DseError as error:
            mistakes.add(error, source.place(["assumes", place, part]))
    return tuple(found)


def assumed_documents(spec: Mapping[str, Any], path: Path, files: Files) -> dict[str, Any]:
    """Return the contents of the study file and of its space file, keyed by file path.

    Args:
        spec: the contents of the study's file.
        path: the study's file.
        files: the files, for the space's document.
    """
    study = {key: one for key, one in spec.items() if key != "assumes"}
    space = resolve_path(spec[SPACE], path)
    return {str(path): study, str(space): files.source(space).value}


def _places(
    text: str, spec: AssumptionSpec, source: SourceDocument, files: Files
) -> Iterator[tuple[str, Path_]]:
    words = text.split(".")
    path, value = source.path, source.value
    if words[0] == SPACE:
        path = resolve_path(value[SPACE], path)
        value, words = files.source(path).value, words[1:]
    elif words[0] not in _SECTIONS:
        words = ["evaluators", *words]
    found = list(_paths(value, words))
    if not found:
        known = [".".join(map(str, one)) for one in _leaves(value)]
        known = [one.removeprefix("evaluators.") for one in known]
        raise SpecError(
            f"{text!r} is not a value in the study",
            hint=nearest(text, known) or "state the option, even with its default value",
        )
    same = [own for own in found if _is_same(_at(value, own), spec.value)]
    if not same or (len(same) < len(found) and _EVERY not in words):
        there = _at(value, found[0])
        raise SpecError(
            f"{text!r} is {there!r} in the study, and {spec.value!r} is assumed",
            hint="the assumed value must be the one that the study uses",
        )
    yield from ((str(path), own) for own in same)


def _paths(value: Any, words: Sequence[str]) -> Iterator[Path_]:
    """Yield the key paths of scalars in nested YAML that match a dotted path.

    A key may itself contain dots, and ``*`` matches any key.
    """
    if not words:
        if not isinstance(value, dict | list):
            yield ()
        return
    if isinstance(value, list):
        value = {str(place): one for place, one in enumerate(value)}
        for rest in _paths(value, words):
            yield (int(rest[0]), *rest[1:])
        return
    if not isinstance(value, dict):
        return
    for size in range(1, len(words) + 1):
        key = ".".join(words[:size])
        keys = list(value) if key == _EVERY else [key] if key in value else []
        for own in keys:
            yield from ((own, *rest) for rest in _paths(value[own], words[size:]))


def _leaves(value: Any) -> Iterator[Path_]:
    pairs = value.items() if isinstance(value, dict) else ()
    for key, one in pairs:
        if isinstance(one, dict):
            yield from ((key, *rest) for rest in _leaves(one))
        elif not isinstance(one, list):
            yield (key,)


def _at(value: Any, path: Path_) -> Any:
    for part in path:
        value = value[part]
    return value


def _check_interval(spec: AssumptionSpec) -> None:
    """Check that the assumed value is in its interval, and that at least one end differs."""
    low, high = spec.interval
    if _is_same(low, spec.value) and _is_same(high, spec.value):
        raise SpecError(
            f"the interval {spec.interval} is a single value", hint="write two different ends"
        )
    amounts = [_amount(one) for one in (low, spec.value, high)]
    if all(one is None for one in amounts):
        return
    if any(one is None for one in amounts):
        raise SpecError(f"the interval {spec.interval} and the value {spec.value!r} do not fit")
    known = [one for one in amounts if one is not None]
    if any(not units.same_dimension(one[1], known[0][1]) for one in known):
        raise SpecError(f"{low!r}, {spec.value!r} and {high!r} are not in one unit")
    sizes = [value * units.factor(unit) for value, unit in known]
    if not sizes[0] <= sizes[1] <= sizes[2]:
        raise SpecError(
            f"{spec.value!r} is not between {low!r} and {high!r}",
            hint="write the lower end first; the interval must contain the study's value",
        )


def _amount(value: Scalar) -> tuple[float, str] | None:
    """Return a value's number and unit; ``None`` for text and booleans."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return float(value), ""
    found = units.quantity(value)
    try:
        return found if found is not None and units.unit(found[1]) is not None else None
    except SpecError:
        return None


def _is_same(there: Any, stated: Scalar) -> bool:
    if isinstance(there, str) or isinstance(stated, str):
        return str(there) == str(stated)
    return isinstance(there, bool) == isinstance(stated, bool) and bool(there == stated)
