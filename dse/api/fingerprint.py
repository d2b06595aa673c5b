"""What a function is, as a short text: another text where its numbers may be others."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dse.api.plain import is_plain

Function = Callable[..., Any]

_LETTERS = 12


def fingerprint(function: Function) -> str:
    """A hash of the function's text, and of what it refers to outside itself.

    Numbers, texts and lists of them count, and so do other functions of its module; what it imports
    does not, nor what is in an object. A comment inside the function counts, a decorator does not.
    """
    digest = hashlib.sha256()
    for part in _parts(function, set()):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:_LETTERS]


def _parts(function: Function, seen: set[int]) -> Iterator[str]:
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    yield _text(function)
    for name, value in sorted(_outside(function).items()):
        if is_plain(value):
            yield f"{name}={value!r}"
        elif callable(value) and _module(value) == function.__module__:
            yield name
            yield from _parts(value, seen)


def _text(function: Function) -> str:
    """Its source from ``def`` on, as deep as it stands; without a source, what it compiled to."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        first = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        code = function.__code__
        return repr((code.co_code, code.co_names, [c for c in code.co_consts if is_plain(c)]))
    return "\n".join(text.splitlines()[first.lineno - 1 : first.end_lineno])


def _outside(function: Function) -> Mapping[str, Any]:
    """What its names mean that are not its own."""
    try:
        names = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # it refers to what is not there yet
        return {}
    defaults = enumerate(getattr(function, "__defaults__", None) or ())
    return {**names.globals, **names.nonlocals, **{f"default {n}": v for n, v in defaults}}


def _module(value: Any) -> str | None:
    return getattr(inspect.unwrap(value), "__module__", None)
