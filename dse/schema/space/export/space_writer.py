"""Serialization of a space as one flat YAML file, with all includes resolved.

Reading the file yields an equal space: the same parameters, conditions and rules, and so the same
number of legal designs and the same fingerprint (hash of the space). Two constructs are written as
constraints instead of in their original form: the domain of a list member that was narrowed
differently from the other members, and the activity condition of a column in a table with blanks.
The legal designs stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dse.core.compound_parameters import Each
from dse.core.expressions.expression import Expression
from dse.core.expressions.items import literal
from dse.core.expressions.list_rules import Table
from dse.core.expressions.syntax import Compare, Listed, Member, Name, Node, Number
from dse.core.inspection.fingerprint import form
from dse.core.parameter import Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.models import NAME_HINT, is_name
from dse.schema.space.declared_parameters import domain_of, list_of, shared_domain
from dse.schema.space.export.rule_text import RuleWriter
from dse.schema.space.parameters.domains import Amount
from dse.schema.space.parameters.number_text import spell_number
from dse.schema.space.tables.cells import cell
from dse.schema.yaml.source import MAX_BYTES
from dse.schema.yaml.writer import yaml_text
from dse.units import units


def format_space(space: DesignSpace, name: str, description: str = "") -> str:
    """Return the YAML text of a space file that describes the space.

    Args:
        space: a space read from files or built in Python.
        name: the value of the key ``space``.
        description: the value of the key ``description``.

    Raises:
        SpecError: a rule cannot be expressed as a text, or the file would exceed the maximum size.
    """
    text = yaml_text(mapping_of(space, name, description))
    if len(text.encode()) > MAX_BYTES:
        raise SpecError(
            f"the space takes {len(text.encode()):,} bytes of YAML; at most {MAX_BYTES:,} are read",
            hint="keep its tables in files",
        )
    return text


def mapping_of(space: DesignSpace, name: str, description: str = "") -> dict[str, Any]:
    """Return the content of a space file that describes the space, as a mapping.

    Args:
        space: a space read from files or built in Python.
        name: the value of the key ``space``.
        description: the value of the key ``description``.

    Raises:
        SpecError: a rule cannot be expressed as a text.
    """
    formulas = RuleWriter(space)
    parameters = dict(_parameters(space, formulas))
    rules = list(_rules(space))
    plain = [rule for rule in rules if not isinstance(rule.node, Listed)]
    constraints = [text for rule in plain for text in formulas.texts(rule)]
    tables = [_combinations(rule.node) for rule in rules if isinstance(rule.node, Listed)]
    value = {
        "space": name,
        "description": description,
        "data": {table: _records(one) for table, one in formulas.tables.items()},
        "parameters": parameters,
        "constraints": constraints,
        "tables": tables,
    }
    return {key: one for key, one in value.items() if one}


# -- parameters ---------------------------------------------------------------------------------


def _parameters(space: DesignSpace, formulas: RuleWriter) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the declaration of each parameter, as written in a space file.

    The members of a list are written as one declaration, at the position of the first member.
    """
    owner = {m.name: one for one in space.lists.values() for m in one.members}
    done = set[str]()
    for parameter in space.parameters:
        one = owner.get(parameter.name)
        if one is None:
            _check_name(parameter.name)
            rule = space.conditions.get(parameter.name)
            yield parameter.name, {**domain_of(parameter), **_when(rule, formulas)}
        elif one.name not in done:
            done.add(one.name)
            members = [space.by_name[m.name] for m in one.members]
            yield one.name, {**list_of(one, members), **_when(_resolve_units(one.when), formulas)}


def _check_name(name: str) -> None:
    if not is_name(name):
        raise SpecError(f"{name!r} is not a valid name in a space file", hint=NAME_HINT)


def _when(rule: Expression | None, formulas: RuleWriter) -> dict[str, str]:
    return {} if rule is None else {"when": formulas.text(rule)}


def _resolve_units(rule: Expression | None) -> Expression | None:
    return None if rule is None else rule.resolve_units(units.factor)


# -- rules --------------------------------------------------------------------------------------


def _rules(space: DesignSpace) -> Iterator[Expression]:
    """Yield the constraints to write to the file.

    They are those not implied by a compound parameter, and one for each member whose domain was
    narrowed.
    """
    implied = [
        form(rule.resolve_units(units.factor).node)
        for one in space.lists.values()
        for rule in one.rules
    ]
    for rule in space.constraints:
        own = form(rule.node)
        if own in implied:
            implied.remove(own)
        else:
            yield rule
    for one in space.lists.values():
        members = [space.by_name[member.name] for member in one.members]
        shared = domain_of(shared_domain(one, members)) if isinstance(one, Each) else None
        for declared, member in zip(one.members, members, strict=True):
            if domain_of(member) != (shared or domain_of(declared)):
                yield Expression("", _within(member))


def _within(parameter: Parameter) -> Node:
    name = Name(parameter.name)
    if isinstance(parameter, Real):
        return Compare(("<=", "<="), (Number(parameter.low), name, Number(parameter.high)))
    return Member(name, tuple(literal(value) for value in parameter.values))


def _combinations(node: Node) -> dict[str, Any]:
    assert isinstance(node, Listed)
    names = [name.name for name in node.names]
    return {"forbid" if node.negated else "allow": names, "rows": [list(row) for row in node.rows]}


def _records(table: Table) -> Any:
    """Return a data table as YAML values: a list of rows, or a mapping if it has other keys."""
    rows: list[dict[str, Value]] = [{} for _ in table.keys]
    for field, column in table.columns.items():
        for row, value in zip(rows, column, strict=True):
            if value is not None:
                row[field] = _cell(value, table.units.get(field, ""))
                _check_cell(row[field], value)
    if table.keys == tuple(range(len(table.keys))):
        return rows
    for key in table.keys:
        _check_cell(str(key), key)
    return {str(key): row for key, row in zip(table.keys, rows, strict=True)}


def _check_cell(written: Value, value: Value) -> None:
    """Raise SpecError unless the written table cell is parsed as the value again."""
    found = cell(written)
    plain = found.value if isinstance(found, Amount) else found
    if plain != value or isinstance(plain, bool | str) != isinstance(value, bool | str):
        raise SpecError(f"a table of a space file cannot hold {value!r}: it would be {plain!r}")


def _cell(value: Value, unit: str) -> Value:
    if unit and not isinstance(value, bool | str):
        return spell_number(value, unit)
    return value
