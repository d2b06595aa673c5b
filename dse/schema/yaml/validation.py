"""Validation of a parsed file against a pydantic model, and collection of all its errors.

Errors have a line and a hint; all errors of a file are reported and not only the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dse.errors import DseError, SpecError, SpecErrors, nearest
from dse.schema.yaml.examples import example, meant
from dse.schema.yaml.source import Path_, SourceDocument

_M = TypeVar("_M", bound=BaseModel)

_ROUNDS = 6
"""Maximum number of rounds in which invalid parts are removed and the rest is validated again.

Several are needed because removing a part can make the part around it invalid.
"""

_DEEP = 3
"""Maximum depth of a removed part, as in ``evaluators.chip.replicates``.

An error further inside removes the part at this depth that contains it.
"""

_TYPES: Mapping[str, str] = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def model_of(kind: type[_M], source: SourceDocument) -> _M:
    """Validate a document and return it as an instance of the model ``kind``.

    Raises:
        SpecErrors: the document is invalid; the exception contains every error in the file.
    """
    try:
        return kind.model_validate(source.value)
    except ValidationError as error:
        raise SpecErrors(_collect_mistakes(error, kind, source)) from error


def legible(
    kind: type[_M], lenient: type[_M], source: SourceDocument, mistakes: ErrorCollector
) -> tuple[_M | None, SourceDocument, frozenset[Path_]]:
    """Record all errors of a document, and return a model of its valid parts.

    Args:
        kind: the model; every violation of it is recorded as an error.
        lenient: the same model with no required fields.
        source: the file.
        mistakes: the collector of errors.

    Returns:
        The model of the valid parts (``None`` if none can be built), the source without the
        invalid parts, and the paths of the invalid parts.
    """
    try:
        return kind.model_validate(source.value), source, frozenset()
    except ValidationError as error:
        for one in _collect_mistakes(error, kind, source):
            mistakes.add(one)
    rest, lost = source, set[Path_]()
    for _ in range(_ROUNDS):
        try:
            return lenient.model_validate(rest.value), rest, frozenset(lost)
        except ValidationError as error:
            paths = {tuple(_path(one["loc"], rest))[:_DEEP] for one in error.errors()}
            if () in paths:
                break
            lost |= paths
            rest = rest.without(paths)
    return None, rest, frozenset(lost)


def validate_leniently(
    kind: type[_M], source: SourceDocument, mistakes: ErrorCollector
) -> tuple[_M | None, frozenset[Path_]]:
    """Return the model of the valid entries, and the paths of the invalid entries left out.

    Entries are checked independently: a misspelt key in one parameter hides no error in the next.
    The model is ``None`` if the file is invalid at its top level.
    """
    value, lost = source.value, set[Path_]()
    for _ in range(2):
        try:
            return kind.model_validate(value), frozenset(lost)
        except ValidationError as error:
            for one in _collect_mistakes(error, kind, source):
                mistakes.add(one)
            paths = {_part_of(one["loc"], source) for one in error.errors()}
            if () in paths:
                return None, frozenset(paths)
            lost |= paths
            value = _without(value, paths)
    return None, frozenset(lost)


def _part_of(loc: tuple[str | int, ...], source: SourceDocument) -> Path_:
    """Return the path of the section, or of the entry in a section, that contains an error."""
    path = tuple(_path(loc, source))
    sectioned = bool(path) and isinstance(source.value.get(path[0]), dict)
    return path[: 2 if sectioned else 1]


def _without(value: Mapping[str, Any], paths: Iterable[Path_]) -> dict[str, Any]:
    kept = dict(value)
    for path in sorted(paths, key=len):
        if len(path) == 1:
            kept.pop(str(path[0]), None)
        elif path[0] in kept:
            section = kept[str(path[0])]
            kept[str(path[0])] = {k: v for k, v in section.items() if k != path[1]}
    return kept


def _collect_mistakes(
    error: ValidationError, kind: type[BaseModel], source: SourceDocument
) -> list[DseError]:
    """Convert pydantic's errors to errors with a line and a hint.

    Where a value fits no member of a union, only the errors of the closest member are kept.
    """
    found: dict[Path_, list[Any]] = {}
    for one in error.errors():
        path = tuple(_path(one["loc"], source))
        other = _stands_for(str(one["loc"][-1]), one["input"]) if one["type"] == "missing" else ""
        found.setdefault((*path, other) if other else path, []).append(one)
    mistakes: list[DseError] = []
    around = {path[:size] for path in found for size in range(len(path))}
    for path, ones in found.items():
        if len(mistakes) >= MOST_REPORTED:  # it is only counted, and finding similar names is slow
            mistakes.append(SpecError(f"{_label(path)} is off", where=source.place(path)))
            continue
        if path in around and all(one["type"] in _TYPES for one in ones):
            continue
        misfits = [one for one in ones if one["type"] in _TYPES]
        others = [one for one in ones if one["type"] not in _TYPES]
        pairs = [_words(one, kind) for one in others]
        if misfits and not others:
            pairs.append(_misfit(path, misfits))
        where = source.place(path)
        mistakes += [SpecError(problem, where=where, hint=hint) for problem, hint in pairs]
    return mistakes


_INSTEAD: Mapping[str, tuple[str, ...]] = {
    "use": ("type", "name", "kind", "class", "plugin", "evaluator"),
    "study": ("name", "title"),
    "space": ("name", "search_space"),
}
"""For each required key, keys of other tools that users write in its place."""


def _stands_for(key: str, found: object) -> str:
    """Return the key in the mapping that probably stands for ``key``; else empty."""
    if not isinstance(found, dict):
        return ""
    return next((other for other in _INSTEAD.get(key, ()) if other in found), "")


def _path(loc: tuple[str | int, ...], source: SourceDocument) -> list[str | int]:
    """Return pydantic's error path as a key path, without the names of union members in it."""
    value, path = source.value, list[str | int]()
    for part in loc:
        inside = isinstance(value, dict) and part in value
        listed = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if inside or listed:
            value = value[part]
            path.append(part)
    return path


def _misfit(path: Path_, ones: list[Any]) -> tuple[str, str]:
    found = ones[0]["input"]
    wanted = _describe_kinds(ones)
    hint = "write it in quotes if it is a word" if found is None and len(ones) > 1 else ""
    if (
        isinstance(found, str)
        and "number" in wanted
        and _is_number_of_kind(found, {one["type"] for one in ones})
    ):
        hint = f"without quotes: {found.strip()}"
    return f"{_label(path)}: expected {wanted}, found {_shown(found)}", hint or example(path, found)


def _is_number_of_kind(text: str, kinds: Set[str]) -> bool:
    """Return whether a text spells a number of an expected type; ``3.5`` is no integer."""
    try:
        return math.isfinite(float(text) if "float_type" in kinds else int(text))
    except (ValueError, OverflowError):
        return False


def _describe_kinds(ones: list[Any]) -> str:
    words = list(dict.fromkeys(_TYPES[one["type"]] for one in ones))
    if {"a text", "a number", "a whole number"} <= set(words):
        rest = [word for word in words if word not in ("a text", "a number", "a whole number")]
        scalar = (
            "a number or a word" if "true or false" in words else "a number, or one with a unit"
        )
        words = [scalar, *(word for word in rest if word != "true or false")]
    return " or ".join(words)


def _words(one: Any, kind: type[BaseModel]) -> tuple[str, str]:
    key, context = (one["loc"][-1] if one["loc"] else ""), one.get("ctx", {})
    match one["type"]:
        case "extra_forbidden":
            valid = _keys(kind, one["loc"][:-1])
            problem = f"there is no key {key!r} here"
            return problem, meant(str(key), valid) or nearest(str(key), valid)
        case "missing":
            other = _stands_for(str(key), one["input"])
            mend = f"write '{key}' in place of {other!r}" if other else f"add '{key}: ...'"
            return f"the key {key!r} is missing", mend
        case "value_error":
            return str(context["error"]), ""
        case "string_pattern_mismatch":
            shown = f"{one['input'][:60]!r} is no name"
            return shown, "letters, digits, '_', '-', '.' and spaces"
        case "literal_error":
            return f"{key} cannot be {_shown(one['input'])}", f"valid: {context['expected']}"
        case "too_short" | "too_long" | "string_too_short" | "string_too_long":
            return _length(key, one["type"], context), example([key], one["input"])
        case bound if bound in _BOUNDS:
            words, limit = _BOUNDS[bound]
            return f"{key} is {words} {context[limit]}, not {_shown(one['input'])}", ""
        case _:
            return f"{key} cannot be {_shown(one['input'])}", ""


def _length(key: str | int, kind: str, context: Mapping[str, Any]) -> str:
    short = kind.endswith("short")
    limit = context["min_length" if short else "max_length"]
    if short and limit == 1:
        return f"{key} is empty"
    what = "characters" if kind.startswith("string") else "entries"
    return f"{key} needs at {'least' if short else 'most'} {limit} {what}"


def _label(path: Path_) -> str:
    """Return the last key of a path for messages, with a list index: ``choice[0]``."""
    words = [part for part in path if isinstance(part, str)]
    inner = path[-1] if path and isinstance(path[-1], int) else None
    name = words[-1] if words else "the file"
    return name if inner is None else f"{name}[{inner}]"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "nothing" if value is None else repr(value)[:60]


def _keys(kind: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """Return the keys that the model allows at a path; unknown parts of the path are skipped."""
    model: type[BaseModel] = kind
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is not None:
            model = _model_in(field.annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = getattr(annotation, "__args__", ())
    return next((found for arg in inner if (found := _model_in(arg))), None)


MOST_REPORTED = 60
"""Maximum number of errors reported; a file that is not a space at all would give thousands."""


class HiddenError(SpecError):
    """Error in a rule that follows from another reported error, and is not reported itself."""


class ErrorCollector:
    """Collector of the distinct errors found in the files of a study.

    Sections of the files that could not be checked because of errors are collected, too.
    """

    def __init__(self) -> None:
        self.errors: list[DseError] = []
        self.unchecked: dict[str, None] = {}
        self._reported: set[tuple[str, str]] = set()

    def add(self, error: DseError, where: str = "") -> None:
        """Record an error, or each error of a :class:`SpecErrors`, if it is not recorded yet.

        ``where`` is the location of an error that has no location yet. A :class:`HiddenError` is
        not recorded; the location is recorded as unchecked instead.
        """
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            if isinstance(one, HiddenError):
                self.skip(where)
                continue
            placed = one.at(where) if where and not one.where else one
            key = (placed.where, placed.problem)
            if key not in self._reported:
                self._reported.add(key)
                self.errors.append(placed)

        for part in error.unchecked if isinstance(error, SpecErrors) else ():
            self.skip(part)

    def add_in(self, error: DseError, source: SourceDocument, path: Sequence[str | int]) -> None:
        """Record an error at its location within the part of a file at the key path ``path``.

        Of a :class:`SpecErrors`, each error is recorded at its own line.
        """
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            self.add(one, source.place([*path, *one.part]))

    def skip(self, what: str) -> None:
        """Record that a section of a file, by location or description, was not checked."""
        self.unchecked[what] = None

    def check(self) -> None:
        """Raise SpecErrors with the recorded errors, sorted by file and line, if there are any."""
        if not self.errors:
            return
        errors = sorted(self.errors, key=self._reading_order())
        reported, rest = errors[:MOST_REPORTED], len(errors) - MOST_REPORTED
        if rest > 0:
            reported = [
                *reported,
                SpecError(f"and {rest} more mistakes like these", where=reported[-1].where),
            ]
        lines = {error.where for error in self.errors}
        raise SpecErrors(reported, [part for part in self.unchecked if part and part not in lines])

    def _reading_order(self) -> Callable[[DseError], tuple[int, int]]:
        """Return a sort key for errors: file, in order of first recorded errors, then line."""
        files = dict.fromkeys(error.where.rpartition(":")[0] for error in self.errors)
        rank = {file: place for place, file in enumerate(files)}

        def place(error: DseError) -> tuple[int, int]:
            file, _, line = error.where.rpartition(":")
            return rank[file], int(line) if line.isdecimal() else 0

        return place
