"""Tuning problems in the format T1 of Kernel Tuner and other tuners, as spaces.

Source:
    T1/1.0.0/input-schema.json of the package kernel-tuner 1.5.0; the values of a parameter are a
    Python list, or a call of ``range`` or ``list``, as its function ``tune_kernel_T1`` reads them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Ordinal, Parameter
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.interop.conversion import SpaceImport
from dse.interop.document import Document, NameMap

KEY = "ConfigurationSpace"
"""Key that only files of this format have."""

_NAME = re.compile(r"[^\W\d]\w*")
_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_LONGEST_RANGE = 1_000_000


def read_t1(text: str, file: str = "t1.json") -> SpaceImport:
    """Return the space that a tuning problem in Kernel Tuner's format T1 describes.

    Conditions become constraints. The kernel, the budget and other entries are ignored.

    Args:
        text: the JSON text.
        file: file name for error messages.

    Raises:
        SpecError: the text is not in this format, or a parameter or a condition cannot be read.
    """
    document = Document(text, file)
    found = document.value.get(KEY)
    items = found.get("TuningParameters") if isinstance(found, dict) else None
    if not isinstance(items, list) or not items:
        raise SpecError(f"there are no TuningParameters in {KEY!r}", where=f"{file}:1")
    names = NameMap()
    parameters = [_parameter(document, item, names) for item in items]
    conditions = found.get("Conditions") or []
    rules = [_rule(document, item, names.ours) for item in conditions]
    kernel = document.value.get("KernelSpecification", {})
    return SpaceImport(
        space=DesignSpace(parameters=tuple(parameters), constraints=tuple(rules)),
        name=str(kernel.get("KernelName", "")),
        names=names.ours,
        warnings=tuple(names.warnings),
    )


def _parameter(document: Document, item: Any, names: NameMap) -> Parameter:
    try:
        theirs, text = str(item["Name"]), str(item["Values"])
    except (TypeError, KeyError) as error:
        raise SpecError(
            "a tuning parameter needs Name, Type and Values", where=f"{document.file}:1"
        ) from error
    where = document.place(theirs)
    if theirs in names.ours:
        raise SpecError(f"there are two tuning parameters {theirs!r}", where=where)
    try:
        values = _values_of(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise SpecError(
            f"the values {text!r} of {theirs} cannot be read",
            where=where,
            hint="a list such as [1, 2, 4], or list(range(1, 9))",
        ) from error
    name, distinct = names.add(theirs), tuple(dict.fromkeys(values))
    if not distinct:
        raise SpecError(f"{theirs} has no values", where=where)
    numbers = [one for one in distinct if isinstance(one, int | float) and not _is_truth(one)]
    if len(numbers) == len(distinct):
        return Ordinal(name=name, values=tuple(sorted(numbers)))
    return Choice(name=name, values=distinct)


def _values_of(node: ast.expr) -> Sequence[Value]:
    """Return the values of a list, or of a call of ``range``; nothing in it is run.

    Raises:
        ValueError: the node is something else.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id == "list" and len(node.args) == 1:
            return _values_of(node.args[0])
        if node.func.id == "range":
            found = range(*(int(ast.literal_eval(one)) for one in node.args))
            if len(found) > _LONGEST_RANGE:
                raise ValueError(node.func.id)
            return list(found)
    values = ast.literal_eval(node)
    whole = list(values) if isinstance(values, list | tuple) else [values]
    if not all(isinstance(one, str | int | float) for one in whole):
        raise ValueError(whole)
    return whole


def _is_truth(value: Value) -> bool:
    return isinstance(value, bool)


def _rule(document: Document, item: Any, names: Mapping[str, str]) -> Expression:
    text = item.get("Expression") if isinstance(item, dict) else None
    if not isinstance(text, str):
        raise SpecError("a condition needs an Expression", where=document.place("Conditions"))
    try:
        rule = parse(_rename(text, names))
    except SpecError as error:
        raise error.at(document.place(text)) from error
    unknown = sorted(rule.names - set(names.values()))
    if unknown:
        raise SpecError(
            f"the condition names {unknown[0]!r}, no tuning parameter",
            where=document.place(text),
            hint=nearest(unknown[0], names.values()),
        )
    return rule


def _rename(text: str, names: Mapping[str, str]) -> str:
    """Return a Python expression with the parameters renamed; string literals stay."""
    words = {**names, "True": "true", "False": "false"}
    parts = re.split(f"({_TEXT.pattern})", text)
    return "".join(
        part
        if _TEXT.fullmatch(part)
        else _NAME.sub(lambda found: words.get(found[0], found[0]), part)
        for part in parts
    )
