"""Fingerprint of a function: a short hash that changes when its results may change."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Function = Callable[..., Any]

_LETTERS = 12


def fingerprint(function: Function) -> str:
    """Return a hash of the function's source text and of the values that it uses from outside.

    Included are numbers, strings, lists of them, and other functions of its module; excluded are
    imported modules and the contents of objects. Comments inside the function are included, its
    decorators are not. A partial includes its function and arguments, a callable object the
    ``__call__`` of its class.
    """
    digest = hashlib.sha256()
    for part in _parts(function, set()):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:_LETTERS]


def _parts(function: Function, seen: set[int]) -> Iterator[str]:
    function = _unwrap_function(function)
    if isinstance(function, functools.partial):
        yield from _yield_inputs(_arguments(function), _module(function), seen)
        yield from _parts(function.func, seen)
        return
    function = _with_code(function)
    code = getattr(function, "__code__", None)
    if code is None:
        yield from _name(function)
    elif id(code) not in seen:
        seen.add(id(code))
        yield _text(function)
        yield from _yield_inputs(_outside(function), function.__module__, seen)


def _unwrap_function(function: Function) -> Function:
    """Return the function inside decorators, without unwrapping a partial.

    A partial is kept even if its ``__wrapped__`` names another function.
    """
    inner: Function = inspect.unwrap(function, stop=_is_partial)
    return inner


def _is_partial(function: object) -> bool:
    return isinstance(function, functools.partial)


def _yield_inputs(values: Mapping[str, Any], module: str | None, seen: set[int]) -> Iterator[str]:
    """Yield strings for the function's hash: one for each value that it uses from outside.

    They are the plain values (numbers, strings, lists of them) and the functions of its module.
    """
    for name, value in sorted(values.items()):
        if _is_plain(value):
            yield f"{name}={value!r}"
        elif callable(value) and _module(value) == module:
            yield name
            yield from _parts(value, seen)


def _arguments(function: functools.partial[Any]) -> Mapping[str, Any]:
    return {**{f"argument {n}": one for n, one in enumerate(function.args)}, **function.keywords}


def _with_code(function: Function) -> Function:
    """Return the function itself, or for a callable object the ``__call__`` of its class."""
    if hasattr(function, "__code__") or isinstance(function, type):
        return function
    called: Function = type(function).__call__
    return called if hasattr(called, "__code__") else function


def _name(function: Function) -> Iterator[str]:
    """Yield the qualified name of a compiled function; nothing for a class or a callable object."""
    if not isinstance(function, type) and hasattr(function, "__qualname__"):
        yield f"{function.__module__}.{function.__qualname__}"


def _text(function: Function) -> str:
    """Return the function's dedented source without decorators; its bytecode if it has none."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        first = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        code = function.__code__
        return repr((code.co_code, code.co_names, [c for c in code.co_consts if _is_plain(c)]))
    return "\n".join(text.splitlines()[first.lineno - 1 : first.end_lineno])


def _outside(function: Function) -> Mapping[str, Any]:
    """Return the globals and outer variables that the function uses, and its default arguments."""
    try:
        names = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # it refers to a name that is not bound yet
        return {}
    defaults = enumerate(getattr(function, "__defaults__", None) or ())
    return {**names.globals, **names.nonlocals, **{f"default {n}": v for n, v in defaults}}


def _module(value: Any) -> str | None:
    inner = _unwrap_function(value)
    inner = inner.func if isinstance(inner, functools.partial) else inner
    return getattr(inner, "__module__", None)


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, string, bytes, ``None``, or a list or mapping of them."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return True
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(_is_plain(part) for pair in value.items() for part in pair)
    return False
