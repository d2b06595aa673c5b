"""From pydantic's findings to messages with a line and a mend, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dse.errors import DseError, SpecError, SpecErrors, nearest
from dse.schema.source import Source

_M = TypeVar("_M", bound=BaseModel)

_WANTED: Mapping[str, str] = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "literal_error": "one of the allowed words",
}


def model_of(kind: type[_M], source: Source) -> _M:
    """The source as a checked model.

    Raises:
        SpecErrors: with every mistake in the file.
    """
    try:
        return kind.model_validate(source.value)
    except ValidationError as error:
        raise SpecErrors(_told(error, kind, source)) from error


class Mistakes:
    """Collects errors, so that a reader sees all of a file's mistakes and not just the first."""

    def __init__(self) -> None:
        self.errors: list[DseError] = []

    def add(self, error: DseError, where: str = "") -> None:
        """Keep an error, with a place if it has none."""
        if isinstance(error, SpecErrors):
            self.errors += error.errors
        else:
            self.errors.append(error.at(where) if where and not error.where else error)

    def check(self) -> None:
        """Raise what was collected. Raises SpecErrors if there is any."""
        if self.errors:
            raise SpecErrors(self.errors)


def _told(error: ValidationError, kind: type[BaseModel], source: Source) -> list[DseError]:
    told: dict[tuple[str, str], DseError] = {}
    for one in error.errors():
        where = source.place(_path(one["loc"], source))
        problem, hint = _words(one, kind)
        told.setdefault((where, problem), SpecError(problem, where=where, hint=hint))
    return list(told.values())


def _path(loc: tuple[str | int, ...], source: Source) -> list[str | int]:
    """The part of pydantic's path that the file has; pydantic adds names of union members."""
    value, path = source.value, list[str | int]()
    for part in loc:
        inside = isinstance(value, dict) and part in value
        listed = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if inside or listed:
            value = value[part]
            path.append(part)
    return path


def _words(one: Any, kind: type[BaseModel]) -> tuple[str, str]:
    key = one["loc"][-1] if one["loc"] else ""
    match one["type"]:
        case "extra_forbidden":
            return f"there is no key {key!r} here", nearest(str(key), _keys(kind, one["loc"][:-1]))
        case "missing":
            return f"the key {key!r} is missing", f"add '{key}: ...'"
        case "value_error":
            return str(one["ctx"]["error"]), ""
        case "string_pattern_mismatch":
            return f"{one['input']!r} is no name", "letters, digits, '_', '-', '.' and spaces"
        case found if found in _WANTED:
            field = next((part for part in reversed(one["loc"]) if isinstance(part, str)), "")
            return f"{field}: expected {_WANTED[found]}, found {_shown(one['input'])}", one["msg"]
        case _:
            return f"{key}: {one['msg']}", ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else repr(value)[:60]


def _keys(kind: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The valid keys of the model at a path: the ones of the model whose field leads there."""
    model: type[BaseModel] = kind
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is not None:
            model = _model_in(field.annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = getattr(annotation, "__args__", ())
    return next((found for arg in inner if (found := _model_in(arg))), None)
