"""Printer of syntax trees: the text that :func:`~dse.core.expressions.parser.parse` reads back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import assert_never

from dse.core.expressions import syntax
from dse.errors import SpecError

MOST_DIGITS = 100
"""Number of digits from which a count is printed as a power of ten."""

_MOST_DIGITS = 18
_MEMBER = re.compile(r"(?P<list>.*)\[(?P<key>[^\[\]]*)\]", re.DOTALL)


class _Tightness(IntEnum):
    """Operator precedence of a printed expression, from the loosest binding to the tightest."""

    IMPLIES = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARE = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    POWER = 8
    ATOM = 9


_T = _Tightness

_LOGIC = {"->": (_T.IMPLIES, _T.OR), "or": (_T.OR, _T.AND), "and": (_T.AND, _T.NOT)}
"""Precedence of each logical operator, and the lowest precedence of an unbracketed operand."""


def format_node(node: syntax.Node) -> str:
    """Return the syntax tree as text with the fewest parentheses.

    A lookup is printed as the formula wrote it, and a table constraint as a description; the parser
    cannot read either of these back.

    Raises:
        SpecError: the tree holds a value that the language cannot express, such as infinity.
    """
    return _format_node(node)[0]


def _at(node: syntax.Node, least: _Tightness) -> str:
    """Return the node as text, in parentheses if it binds less tightly than ``least``."""
    text, level = _format_node(node)
    return text if level >= least else f"({text})"


def _format_node(  # noqa: C901, PLR0912 - one case per kind of node
    node: syntax.Node,
) -> tuple[str, _Tightness]:
    match node:
        case syntax.Number():
            text = _number(node)
            return text, _T.SIGN if text.startswith("-") else _T.ATOM
        case syntax.Text():
            return quote_text(node.value), _T.ATOM
        case syntax.Truth():
            return ("true" if node.value else "false"), _T.ATOM
        case syntax.Name():
            return _name(node.name), _T.ATOM
        case syntax.Unary():
            return _unary(node)
        case syntax.Binary():
            return _binary(node)
        case syntax.Compare():
            return _chain(node), _T.COMPARE
        case syntax.Logic():
            return _logic(node)
        case syntax.Member():
            word = "not in" if node.negated else "in"
            return f"{_at(node.item, _T.SUM)} {word} [{_list(node.values)}]", _T.COMPARE
        case syntax.Absent():
            word = "is not absent" if node.negated else "is absent"
            return f"{_at(node.name, _T.ATOM)} {word}", _T.COMPARE
        case syntax.Call():
            return _call(node)
        case syntax.Index():
            return f"{_at(node.item, _T.ATOM)}[{_at(node.key, _T.IMPLIES)}]", _T.ATOM
        case syntax.Field():
            return f"{_at(node.item, _T.ATOM)}.{node.field}", _T.ATOM
        case syntax.Lookup():
            return node.text or f"table[{_at(node.key, _T.IMPLIES)}]", _T.ATOM
        case syntax.Listed():
            return _table(node), _T.COMPARE
        case _:
            assert_never(node)


def _list(nodes: Sequence[syntax.Node]) -> str:
    return ", ".join(_at(node, _T.SUM) for node in nodes)


def _unary(node: syntax.Unary) -> tuple[str, _Tightness]:
    if node.operator == "not":
        return f"not {_at(node.operand, _T.COMPARE)}", _T.NOT
    return f"-{_at(node.operand, _T.POWER)}", _T.SIGN


def _binary(node: syntax.Binary) -> tuple[str, _Tightness]:
    if node.operator == "**":
        own, left, right = _T.POWER, _T.ATOM, _T.SIGN
    elif node.operator in ("+", "-"):
        own, left, right = _T.SUM, _T.SUM, _T.PRODUCT
    else:
        own, left, right = _T.PRODUCT, _T.PRODUCT, _T.SIGN
    return f"{_at(node.left, left)} {node.operator} {_at(node.right, right)}", own


def _call(node: syntax.Call) -> tuple[str, _Tightness]:
    if node.function == "in":
        item, items = (_at(one, _T.SUM) for one in node.arguments)
        return f"{item} in {items}", _T.COMPARE
    arguments = ", ".join(_at(one, _T.IMPLIES) for one in node.arguments)
    return f"{node.function}({arguments})", _T.ATOM


def _table(node: syntax.Listed) -> str:
    """Describe a table constraint by its names and number of rows.

    It has no syntax as an expression, because it is written under ``tables:`` in the space file.
    """
    names = ", ".join(name.name for name in node.names)
    return f"{'forbid' if node.negated else 'allow'} [{names}] in {len(node.rows)} rows"


def _chain(node: syntax.Compare) -> str:
    words = [_at(node.operands[0], _T.SUM)]
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        words += [operator, _at(operand, _T.SUM)]
    return " ".join(words)


def _logic(node: syntax.Logic) -> tuple[str, _Tightness]:
    if len(node.operands) == 1:
        return _format_node(node.operands[0])
    own, least = _LOGIC[node.operator]
    words = [_at(operand, least) for operand in node.operands]
    if node.operator == "->":  # it groups to the right, so the last operand may be one itself
        words[-1] = _at(node.operands[-1], own)
    return f" {node.operator} ".join(words), own


def _name(name: str) -> str:
    """Return a name in the language's syntax, with the non-numeric key of a member quoted."""
    found = _MEMBER.fullmatch(name)
    if found is None or re.fullmatch(r"\d+", found["key"]):
        return name
    return f"{found['list']}[{quote_text(found['key'])}]"


def quote_text(text: str) -> str:
    """Return a string as a quoted literal of the formula language.

    Raises:
        SpecError: the text contains both kinds of quotes.
    """
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    raise SpecError(f"{text!r} holds both kinds of quotes, and cannot be written in a rule")


def _number(node: syntax.Number) -> str:
    value = node.value
    if not math.isfinite(value):
        raise SpecError(f"{value} is no finite number, and cannot be written in a rule")
    if isinstance(value, int) and len(str(abs(value))) > _MOST_DIGITS:
        if int(float(value)) != value:
            raise SpecError(f"{value} has too many digits to be written in a rule")
        value = float(value)
    return f"{value!r} {node.unit}".rstrip()


def whole_text(number: int) -> str:
    """Return an integer as text; with :data:`MOST_DIGITS` digits or more, as ``some 10^n``."""
    digits = int(number.bit_length() * math.log10(2))
    return f"{number:,}" if digits < MOST_DIGITS else f"some 10^{digits}"
