"""Export of a space's conditions and rules as clauses of ConfigSpace's JSON.

A ConfigSpace clause tests one hyperparameter for membership in a list of values or against a
bound, or compares two hyperparameters; ``and`` and ``or`` combine clauses. Rules of this form are
exported directly. Other rules over few combinations are exported as a list of the combinations
that violate them.

``<=`` and ``>=`` with a number are avoided: ConfigSpace 1.2.2 evaluates the first one reversed for
vectors of configurations, and prints the operands of the second.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.parameter import Choice, Real
from dse.core.space import DesignSpace
from dse.interop.configspace.branches import UnsayableError, collect_value_names, paths, tree
from dse.interop.configspace.conditions import (
    Clause,
    build_condition,
    clauses_of,
    condition_of,
    conjunction,
    joined_conditions,
)

MAX_CLAUSES = 10_000
"""Largest number of forbidden combinations to which a rule is expanded."""

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_RELATIONS = {
    "<": "RELATION_LT",
    "<=": "RELATION_LE",
    ">": "RELATION_GT",
    ">=": "RELATION_GE",
    "==": "RELATION_EQ",
}


class Forbidden:
    """Converter of a space's conditions and rules to ConfigSpace clauses, conditions first.

    ``never`` collects the parameters that are never active, ``warnings`` the rules that are
    exported only approximately.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self.never: set[str] = set()
        self.warnings: list[str] = []

    def clauses(self, rule: Expression) -> list[Clause]:
        """Return the forbidden clauses (excluded combinations) that enforce the rule.

        Raises:
            UnsayableError: ConfigSpace cannot express the rule.
        """
        found = [conjunction(path) for path in self._where(rule.node, wanted=False)]
        if {} in found:
            raise UnsayableError("it never holds")
        return found

    def condition(self, name: str) -> Clause | bool:
        """Return when the parameter is active: a condition, ``True`` (always) or ``False`` (never).

        Raises:
            UnsayableError: ConfigSpace cannot express the condition.
        """
        found = self._active(self._space.conditions[name].node, name)
        if found is False:
            self.never.add(name)
        return found

    def _active(self, node: syntax.Node, child: str) -> Clause | bool:
        if not self._reads_real(node):
            return build_condition(tree(self._space, Expression("", node), wanted=True), child)
        ways = [
            joined_conditions("and", [condition_of(clause, child) for clause in way], child)
            for way in self._where(node, wanted=True)
        ]
        return joined_conditions("or", ways, child)

    # -- rules ----------------------------------------------------------------------------------

    def _where(self, node: syntax.Node, *, wanted: bool) -> list[tuple[Clause, ...]]:
        """Return the cases in which a formula evaluates to ``wanted``, each an AND of clauses."""
        special = self._special(node, wanted=wanted)
        if special is not None:
            return special
        if self._reads_real(node):
            return self._by_parts(node, "it computes with a real parameter", wanted=wanted)
        try:
            return self._list_clauses(node, wanted=wanted)
        except UnsayableError as error:
            return self._by_parts(node, error.problem, wanted=wanted)

    def _by_parts(
        self, node: syntax.Node, why_not: str, *, wanted: bool
    ) -> list[tuple[Clause, ...]]:
        match node:
            case syntax.Unary(operator="not"):
                return self._where(node.operand, wanted=not wanted)
            case syntax.Logic(operator="->"):
                first, second = node.operands
                either = syntax.Logic("or", (syntax.Unary("not", first), second))
                return self._where(either, wanted=wanted)
            case syntax.Logic():
                return self._logic(node, wanted=wanted)
            case syntax.Compare() if len(node.operators) > 1:
                sides = zip(node.operators, node.operands, node.operands[1:], strict=False)
                links = tuple(syntax.Compare((operator,), (a, b)) for operator, a, b in sides)
                return self._where(syntax.Logic("and", links), wanted=wanted)
            case syntax.Listed() if node.negated != wanted:
                return self._rows(node)
            case _:
                raise UnsayableError(why_not)

    def _logic(self, node: syntax.Logic, *, wanted: bool) -> list[tuple[Clause, ...]]:
        parts = [self._where(operand, wanted=wanted) for operand in node.operands]
        if (node.operator == "or") == wanted:
            return list(itertools.chain.from_iterable(parts))
        found: list[tuple[Clause, ...]] = [()]
        for part in parts:
            _check_count(len(found) * len(part))
            found = [(*path, *more) for path in found for more in part]
        return found

    def _rows(self, node: syntax.Listed) -> list[tuple[Clause, ...]]:
        """Return a conjunction of equalities for each row of a table.

        Blank cells (absent parameters) are refused.
        """
        if any(value is None for row in node.rows for value in row):
            raise UnsayableError("its table has blank cells, and too many combinations to try")
        _check_count(len(node.rows))
        names = [name.name for name in node.names]
        return [
            tuple(
                {"type": "EQUALS", "name": name, "value": value}
                for name, value in zip(names, row, strict=True)
            )
            for row in node.rows
        ]

    def _special(self, node: syntax.Node, *, wanted: bool) -> list[tuple[Clause, ...]] | None:
        """Return a formula's cases if ConfigSpace expresses them directly, else ``None``.

        Each case is a conjunction of clauses. ``None`` means that the combinations of values have
        to be enumerated.
        """
        match node:
            case syntax.Compare(
                operators=(operator,), operands=(syntax.Name() as left, syntax.Name() as right)
            ):
                relation = operator if wanted else _OPPOSITE[operator]
                return self._relation(relation, left.name, right.name)
            case syntax.Compare(
                operators=(operator,), operands=(syntax.Name() as name, syntax.Number() as number)
            ):
                relation = operator if wanted else _OPPOSITE[operator]
                return self._compare_real(relation, name.name, number.value)
            case syntax.Compare(
                operators=(operator,), operands=(syntax.Number() as number, syntax.Name() as name)
            ):
                relation = _MIRRORED[operator if wanted else _OPPOSITE[operator]]
                return self._compare_real(relation, name.name, number.value)
            case syntax.Call(function="all_different") if not wanted and _all_names(node.arguments):
                return self._some_equal(
                    [n.name for n in node.arguments if isinstance(n, syntax.Name)]
                )
            case _:
                return None

    def _relation(self, operator: str, left: str, right: str) -> list[tuple[Clause, ...]] | None:
        if self.never & {left, right}:
            return []
        sides = [self._space.by_name[name] for name in (left, right)]
        if any(
            isinstance(side, Choice) for side in sides
        ):  # to be enumerated: choices do not compare
            return None
        relations = ["<", ">"] if operator == "!=" else [operator]
        return [({"type": _RELATIONS[one], "left": left, "right": right},) for one in relations]

    def _some_equal(self, names: Sequence[str]) -> list[tuple[Clause, ...]] | None:
        """Return the cases in which two of the parameters are equal, one clause for each pair.

        It is ``None`` if the parameters have different activity conditions.
        """
        rules = [self._space.conditions.get(name) for name in names]
        if len({None if rule is None else rule.node for rule in rules}) > 1:
            return None
        found = [self._relation("==", a, b) for a, b in itertools.combinations(names, 2)]
        return None if None in found else [way for some in found for way in some or []]

    def _compare_real(
        self, operator: str, name: str, number: float
    ) -> list[tuple[Clause, ...]] | None:
        """Return clauses that compare a real parameter with a number; ``None`` if not real."""
        parameter = self._space.by_name[name]
        if not isinstance(parameter, Real) or parameter.low == parameter.high:
            return None
        if name in self.never:
            return []
        if operator == "!=":
            sides = [self._compare_real(side, name, number) or [] for side in ("<", ">")]
            return [*sides[0], *sides[1]]
        if operator == "==":
            inside = parameter.low <= number <= parameter.high
            return [({"type": "EQUALS", "name": name, "value": number},)] if inside else []
        return self._build_side(operator, parameter, number)

    def _build_side(self, operator: str, real: Real, number: float) -> list[tuple[Clause, ...]]:
        below = operator in ("<", "<=")
        first, last = (real.low, real.high) if below else (-real.high, -real.low)
        end = number if below else -number
        if end < first or (end == first and operator in ("<", ">")):
            return []
        if end > last or (end == last and operator in ("<=", ">=")):
            return self._where(syntax.Absent(syntax.Name(real.name), negated=True), wanted=True)
        if operator in ("<=", ">="):
            self.warnings.append(
                f"{real.name} {operator} {number} is exported as {operator[0]}: ConfigSpace "
                f"differs where {real.name} is exactly {number}"
            )
        kind = "CLAUSE_LT" if below else "CLAUSE_GT"
        return [({"type": kind, "name": real.name, "value": float(number)},)]

    def _list_clauses(self, node: syntax.Node, *, wanted: bool) -> list[tuple[Clause, ...]]:
        found: list[tuple[Clause, ...]] = []
        for path in paths(tree(self._space, Expression("", node), wanted=wanted)):
            clauses = tuple(clause for test in path for clause in clauses_of(test))
            _check_count(max([len(found) + 1, *(len(c.get("values", ())) for c in clauses)]))
            found.append(clauses)
        return found

    def _reads_real(self, node: syntax.Node) -> bool:
        return any(self._is_real(name) for name in collect_value_names(node))

    def _is_real(self, name: str) -> bool:
        return isinstance(self._space.by_name[name], Real)


def _all_names(nodes: Sequence[syntax.Node]) -> bool:
    return all(isinstance(node, syntax.Name) for node in nodes)


def _check_count(count: int) -> None:
    if count > MAX_CLAUSES:
        raise UnsayableError(f"more than {MAX_CLAUSES:,} combinations break it")
