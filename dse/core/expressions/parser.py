"""Recursive-descent parser from text to :class:`~dse.core.expressions.expression.Expression`.

Parsing never executes the text.

Loosest to tightest: ``->`` (to the right), ``or``, ``and``, ``not``, comparisons (chained, ``in``,
``is absent``), ``+ -``, ``* / // %``, unary ``-``, ``**`` (to the right), ``[key]`` and ``.field``.
A number may carry a unit: ``64 KiB``, ``1 mJ s``, ``3.35 TB/s`` (a slash without spaces belongs to
the unit). ``in`` is followed by ``[a, b]`` or the name of a list. ``metric@scenario`` is one name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dse.core.expressions import syntax
from dse.core.expressions.error_position import build_position_error
from dse.core.expressions.expression import Expression
from dse.core.expressions.operators import FUNCTIONS
from dse.errors import SpecError, nearest

MAX_LENGTH = 4_000
MAX_DEPTH = 60
MAX_HEIGHT = 200
"""Greatest height of a formula's syntax tree: ``a + b + c`` has height 3."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>'[^']*'|"[^"]*")
    | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:@[^\W\d]\w*)?)
    | (?P<mark>->|\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],$%.])
    )""",
    re.VERBOSE,
)
_UNIT = re.compile(r"(?:[ \t]*(?:\$(?:/\w+)?|[^\W\d]\w*(?:\^-?\d+)?(?:/[^\W\d]\w*(?:\^-?\d+)?)*))+")
RESERVED = frozenset({"and", "or", "not", "in", "is", "absent", "true", "false"})
_SHARE = "'%' is the remainder of a division; a share is written '90 percent' or 0.9"
ARGUMENTS: Mapping[str, tuple[int, int | None]] = {
    **{name: (one.least, one.most) for name, one in FUNCTIONS.items()},
    **syntax.LIST_FUNCTIONS,
}
"""Functions that every formula may call: the least and the most arguments of each."""
_FOLDS = frozenset(name for name, one in FUNCTIONS.items() if one.lists) | {"all", "any"}
_MEANT: Mapping[str, str] = {
    "=<": "'<='",
    "=>": "'>=' to compare, or '->' between a condition and what follows from it",
    "=": "'==' to compare",
    "&": "'and'",
    "|": "'or'",
    "!": "'not' to negate a condition, or '!='",
    "≤": "'<='",
    "≥": "'>='",
    "≠": "'!='",
    "^": "'**' for a power",
    "·": "'*'",
    "÷": "'/'",
    "\u00d7": "'*'",
    "→": "'->'",
}
"""Operators of other languages, and their spelling in this language, for hints."""
_MEANT_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("x", "times"), "'*' to multiply"),
    **dict.fromkeys(("if", "then", "implies"), "'a -> b' for: if a holds, so does b"),
    **dict.fromkeys(("AND", "And", "&&"), "'and'"),
    **dict.fromkeys(("OR", "Or", "||"), "'or'"),
    **dict.fromkeys(("NOT", "Not"), "'not'"),
    **dict.fromkeys(("mod", "modulo"), "'%' for the remainder"),
}
"""Names used as operators in other languages, and their spelling here, for hints."""
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def parse(text: str, functions: Mapping[str, tuple[int, int | None]] = ARGUMENTS) -> Expression:
    """Parse the text of a formula into an :class:`Expression`.

    Args:
        text: the formula.
        functions: the functions that it may call, with the least and the most arguments of each;
            ``None`` is no upper limit.

    Raises:
        SpecError: the text is not a valid expression; the message shows the position.
    """
    if len(text) > MAX_LENGTH:
        raise SpecError(
            f"the expression is {len(text)} characters long; at most {MAX_LENGTH} are read"
        )
    return _Parser(text, functions).whole()


class _Parser:
    def __init__(self, text: str, functions: Mapping[str, tuple[int, int | None]]) -> None:
        self.text = text
        self.functions = functions
        self.place = 0
        self.depth = 0
        self.token = self._next()

    def whole(self) -> Expression:
        node = self._implication()
        if self.token.kind != "end":
            raise self._build_token_error("an operator or the end", self._foreign_word())
        if _height(node) > MAX_HEIGHT:
            problem = f"more than {MAX_HEIGHT} nested operations"
            raise self._error(problem, 0, "write a + b + c as sum(a, b, c)")
        return Expression(self.text, node)

    # -- tokens ---------------------------------------------------------------------------------

    def _next(self) -> _Token:
        rest = self.text[self.place :]
        if not rest.strip():
            return _Token("end", "", len(self.text))
        found = _TOKEN.match(self.text, self.place)
        if found is None or found.lastgroup is None:
            start = self.place + len(rest) - len(rest.lstrip())
            character = self.text[start]
            meant = _MEANT.get(self.text[start : start + 2]) or _MEANT.get(character)
            hint = f"write {meant}" if meant else ""
            raise self._error(f"unexpected character {character!r}", start, hint)
        self.place = found.end()
        kind, words = found.lastgroup, found.group(found.lastgroup)
        if kind == "name" and words in RESERVED:
            kind = "word"
        return _Token(kind, words, found.start(kind if kind != "word" else "name"))

    def _take(self) -> _Token:
        token, self.token = self.token, self._next()
        return token

    def _at(self, *texts: str) -> bool:
        return self.token.kind in ("mark", "word") and self.token.text in texts

    def _expect(self, text: str) -> None:
        if not self._at(text):
            raise self._build_token_error(repr(text))
        self._take()

    def _foreign_word(self) -> str:
        """Return a hint if an operator is spelled as in another language (``&&``); else ``""``."""
        words = (self.token.text, self.text.split(maxsplit=1)[0])
        meant = next((_MEANT_WORDS[word] for word in words if word in _MEANT_WORDS), "")
        return f"write {meant}" if meant else ""

    def _build_token_error(self, wanted: str, hint: str = "") -> SpecError:
        shown = repr(self.token.text) if self.token.kind != "end" else "the end"
        return self._error(f"expected {wanted}, found {shown}", self.token.column, hint)

    def _error(self, problem: str, column: int, hint: str = "") -> SpecError:
        return build_position_error(problem, self.text, column, hint)

    # -- grammar, loosest first -----------------------------------------------------------------

    def _implication(self) -> syntax.Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}", self.token.column)
        left = self._disjunction()
        if self._at("->"):
            self._take()
            left = syntax.Logic("->", (left, self._implication()))
        self.depth -= 1
        return left

    def _disjunction(self) -> syntax.Node:
        operands = [self._conjunction()]
        while self._at("or"):
            self._take()
            operands.append(self._conjunction())
        return operands[0] if len(operands) == 1 else syntax.Logic("or", tuple(operands))

    def _conjunction(self) -> syntax.Node:
        operands = [self._negation()]
        while self._at("and"):
            self._take()
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else syntax.Logic("and", tuple(operands))

    def _negation(self) -> syntax.Node:
        count = 0
        while self._at("not"):
            self._take()
            count += 1
        node = self._comparison()
        return syntax.Unary("not", node) if count % 2 else node

    def _comparison(self) -> syntax.Node:
        operands, operators = [self._sum()], []
        while True:
            if self.token.kind == "mark" and self.token.text in _COMPARISONS:
                operators.append(self._take().text)
                operands.append(self._sum())
            elif not operators and self._at("in", "not"):
                return self._member(operands[0])
            elif not operators and self._at("is"):
                return self._absent(operands[0])
            else:
                break
        if not operators:
            return operands[0]
        return syntax.Compare(tuple(operators), tuple(operands))

    def _member(self, item: syntax.Node) -> syntax.Node:
        negated = self._at("not")
        if negated:
            self._take()
        self._expect("in")
        if self.token.kind == "name":
            listed = syntax.Call("in", (item, self._sum()))
            return syntax.Unary("not", listed) if negated else listed
        self._expect("[")
        values = [self._sum()]
        while self._at(","):
            self._take()
            values.append(self._sum())
        self._expect("]")
        return syntax.Member(item, tuple(values), negated)

    def _absent(self, item: syntax.Node) -> syntax.Node:
        if not isinstance(item, syntax.Name | syntax.Index):
            raise self._build_token_error("a parameter's name before 'is absent'")
        self._expect("is")
        negated = self._at("not")
        if negated:
            self._take()
        self._expect("absent")
        return syntax.Absent(item, negated)

    def _sum(self) -> syntax.Node:
        node = self._product()
        while self._at("+", "-"):
            operator = self._take().text
            node = syntax.Binary(operator, node, self._product())
        return node

    def _product(self) -> syntax.Node:
        node = self._parse_sign()
        while self._at("*", "/", "//", "%"):
            operator = self._take().text
            node = syntax.Binary(operator, node, self._parse_sign())
        return node

    def _parse_sign(self) -> syntax.Node:
        count = 0
        while self._at("-", "+"):
            count += self._take().text == "-"
        node = self._power()
        if count % 2 == 0:
            return node
        return (
            syntax.Number(-node.value, node.unit)
            if isinstance(node, syntax.Number)
            else syntax.Unary("-", node)
        )

    def _power(self) -> syntax.Node:
        base = self._atom()
        if not self._at("**"):
            return base
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}", self.token.column)
        self._take()
        node = syntax.Binary("**", base, self._parse_sign())
        self.depth -= 1
        return node

    def _atom(self) -> syntax.Node:
        token = self.token
        if token.kind == "number":
            return self._number()
        if token.kind == "text":
            return syntax.Text(self._take().text[1:-1])
        if self._at("true", "false"):
            return syntax.Truth(self._take().text == "true")
        if self._at("("):
            self._take()
            node = self._implication()
            self._expect(")")
            return node
        if token.kind == "name":
            self._take()
            named = self._call(token) if self._at("(") else syntax.Name(token.text, token.column)
            return self._parse_suffixes(named)
        share = self.text[: self.token.column].rstrip().endswith("%")
        raise self._build_token_error("a number, a name or '('", _SHARE if share else "")

    def _parse_suffixes(self, node: syntax.Node) -> syntax.Node:
        """Parse the keys and fields that follow the node, as in ``devices[chip].memory``."""
        while self._at("["):
            self._take()
            node = syntax.Index(node, self._implication())
            self._expect("]")
            if self._at("."):
                self._take()
                if self.token.kind != "name":
                    raise self._build_token_error("a field's name")
                node = syntax.Field(node, self._take().text)
        return node

    def _number(self) -> syntax.Number:
        token = self.token
        value = _plain(token.text)
        unit = _UNIT.match(self.text, self.place)
        words = unit.group().split() if unit else []
        while words and words[-1] in RESERVED:
            words.pop()
        for index, word in enumerate(words):
            if word in RESERVED:
                words = words[:index]
                break
        if words and unit:
            last = unit.group()
            end = 0
            for word in words:
                end = last.index(word, end) + len(word)
            self.place = unit.start() + end
        self.token = self._next()
        return syntax.Number(value, " ".join(words))

    def _call(self, name: _Token) -> syntax.Node:
        if name.text not in self.functions:
            hint = nearest(name.text, self.functions)
            raise self._error(f"there is no function {name.text!r}", name.column, hint)
        self._take()
        least, most = self.functions[name.text]
        arguments = [] if least == 0 and self._at(")") else [self._implication()]
        while self._at(","):
            self._take()
            arguments.append(self._implication())
        self._expect(")")
        if name.text in _FOLDS and not any(syntax.names_in(argument) for argument in arguments):
            least = 2  # a single number is not a list
        if not least <= len(arguments) <= (len(arguments) if most is None else most):
            raise self._error(f"{name.text} was given {len(arguments)} arguments", name.column)
        return syntax.Call(name.text, tuple(arguments))


def _height(node: syntax.Node) -> int:
    """Return the height of the syntax tree: the number of nodes on its longest branch."""
    height, level = 0, [node]
    while level:
        height += 1
        level = [child for parent in level for child in syntax.children(parent)]
    return height


def _plain(text: str) -> int | float:
    digits = text.replace("_", "")
    if digits.isdigit():
        if len(digits) > 18:
            raise SpecError(
                f"{digits[:20]}... is too large a whole number", hint="at most 18 digits"
            )
        return int(digits)
    if math.isinf(float(digits)):
        raise SpecError(f"{digits[:20]} is too large a number", hint="at most about 1e308")
    return float(digits)
