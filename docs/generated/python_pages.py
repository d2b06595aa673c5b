"""The reference of what ``dse`` offers to Python, from its signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from types import ModuleType
from typing import Any

import dse
from plain_text import cell, prose

_HEAD = """# Python

The public names of `from dse import ...`. [Jupyter notebooks](../how-to/notebook.md) shows how to
use them together. Other modules may change between releases. Every error is a `DseError`, whose
message states the mistake, its place and a fix.
"""

_SECTIONS = re.compile(r"^(Args|Returns|Raises|Example|Source|Laws):\n", re.MULTILINE)
_ITEM = re.compile(r"^    ([\w*][\w*, ]*): ", re.MULTILINE)
_WIDTH = 88


def python_reference() -> str:
    """The page of all names."""
    found = {name: getattr(dse, name) for name in sorted(dse.__all__, key=str.lower)}
    lines = [_HEAD, "| name | description |", "|---|---|"]
    lines += [f"| [`{n}`](#{_anchor(n)}) | {cell(_first(_one(o)))} |" for n, o in found.items()]
    for name, one in found.items():
        lines += ["", f"## {name} {{#{_anchor(name)}}}", "", *_entry(name, one)]
    return "\n".join([*lines, ""])


def members(kind: Any) -> dict[str, Any]:
    """What a class or a module offers of its own, by name, in its order."""
    if isinstance(kind, ModuleType):
        return {
            f"{name}.{own}" if own else name: one
            for name in kind.__all__
            for own, one in _of_value(getattr(kind, name)).items()
        }
    found = {name: one for base in reversed(_own_bases(kind)) for name, one in vars(base).items()}
    return {
        name: one
        for name, one in found.items()
        if not name.startswith("_") and (_called(one) or isinstance(one, property))
    }


def _own_bases(kind: Any) -> list[type]:
    """Return a class and those of its bases that are written in this project."""
    if not inspect.isclass(kind) or issubclass(kind, Exception):
        return [kind]
    return [base for base in kind.__mro__ if base.__module__.startswith("dse.")]


def _of_value(value: Any) -> dict[str, Any]:
    """A function, under no name; of any other value its methods."""
    return {"": value} if inspect.isfunction(value) else members(type(value))


def _entry(name: str, one: Any) -> Iterator[str]:
    one = _one(one)
    if not isinstance(one, ModuleType) and not _is_plain_error(one):
        yield from _signature(name, one)
    yield from _about(one)
    if is_dataclass(one):
        yield from _fields(one)
    if inspect.isfunction(one):
        return
    for own, member in members(one).items():
        path = f"{name}.{own}"
        yield from ("", f"### {path} {{#{_anchor(path)}}}", "")
        if not isinstance(member, property):
            yield from _signature(path, _called(member) or member)
        yield from _about(member)


def _one(one: Any) -> Any:
    """A module that is called like a function is that function."""
    return one.report if isinstance(one, ModuleType) and callable(one) else one


def _called(member: Any) -> Any | None:
    """The function behind a method of any kind; ``None`` of all else."""
    function = getattr(member, "__func__", member)
    return function if inspect.isfunction(function) else None


def _is_plain_error(one: Any) -> bool:
    """An error that is made like all others: how is told once."""
    return inspect.isclass(one) and issubclass(one, Exception) and "__init__" not in vars(one)


def _signature(path: str, function: Any) -> Iterator[str]:
    """How it is called, on one line or a line for each parameter."""
    told = inspect.signature(function)
    words = [_parameter(one) for one in _marked(list(told.parameters.values()))]
    back = "" if inspect.isclass(function) else _returned(told)
    line = f"{path}({', '.join(words)}){back}"
    if len(line) > _WIDTH:
        line = "\n    ".join([f"{path}(", *(f"{word}," for word in words)]) + f"\n){back}"
    yield from ("```python", line, "```", "")


def _marked(parameters: list[inspect.Parameter]) -> Iterator[inspect.Parameter | str]:
    """The parameters that a caller gives, with the star before those that have names only."""
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for place, one in enumerate(parameters):
        if place == 0 and one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield one


def _parameter(one: inspect.Parameter | str) -> str:
    if isinstance(one, str):
        return one
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation is one.empty else f": {_written(one.annotation)}"
    return f"{star}{one.name}{kind}{_default(one.default)}"


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty or value is MISSING:
        return ""
    return " = ..." if callable(value) or "<" in repr(value) else f" = {value!r}"


def _returned(told: inspect.Signature) -> str:
    kind = told.return_annotation
    return "" if kind in (told.empty, "None", None) else f" -> {_written(kind)}"


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _about(one: Any) -> Iterator[str]:
    """The docstring: its text, then what its sections say."""
    text, *rest = _SECTIONS.split(inspect.getdoc(one) or "")
    yield prose(text).strip()
    for title, section in zip(rest[::2], rest[1::2], strict=True):
        described = _ITEM.split(section)
        pairs = list(zip(described[1::2], described[2::2], strict=True))
        if title in ("Args", "Raises") and pairs:
            heads = ("parameter", "meaning") if title == "Args" else ("raises", "when")
            yield from ("", f"| {' | '.join(heads)} |", "|---|---|")
            yield from (f"| `{name}` | {cell(prose(told.strip()))} |" for name, told in pairs)
        else:
            yield from ("", f"{title}: {prose(inspect.cleandoc(section))}")


def _fields(one: Any) -> Iterator[str]:
    yield from ("", "| field | type | default |", "|---|---|---|")
    for each in fields(one):
        left = _default(each.default).removeprefix(" = ")
        if each.default_factory is not MISSING:
            left = "empty"
        told = f"`{left}`" if left else "required"
        yield f"| `{each.name}` | `{cell(_written(each.type))}` | {told} |"


def _first(one: Any) -> str:
    return prose((inspect.getdoc(one) or "").split("\n\n")[0])


def _anchor(name: str) -> str:
    return name.lower().replace(".", "-")
