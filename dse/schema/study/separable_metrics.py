"""Declared separable metrics, and formulas of evaluators, in the names of a study.

A measured metric is separable if it is a sum of terms, each with few parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.design import base
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing, Table
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Name, Node, map_nodes
from dse.core.separable import Separable
from dse.core.space import DesignSpace
from dse.core.values import Floats
from dse.errors import DseError, SpecError, nearest, raise_all
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import Evaluator, ExpandsFormulas, declared_parts
from dse.schema.models import EVERY_METRIC, PartsSpec
from dse.schema.study.fixed_inputs import FixedInputs
from dse.schema.yaml.validation import HiddenError


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyNames:
    """Names of a study to which the declaration of a separable metric may refer.

    ``modelled`` are the metrics of evaluators that need no measurement, ``measured`` all others.
    ``hidden`` are names of metrics that are missing because of an earlier error.
    """

    parameters: Collection[str]
    modelled: Collection[str]
    measured: Collection[str]
    hidden: bool = False


def separable_metrics(
    bound: Bound, declared: Mapping[str, PartsSpec] | None, names: StudyNames
) -> Bound:
    """Return an evaluator with the declarations of which of its metrics are additive.

    Args:
        bound: evaluator of the study.
        declared: the declarations in the study file, by metric; ``None`` if it declares nothing, so
            that the evaluator's own declarations hold.
        names: the names of the study.

    Raises:
        SpecErrors: a declaration names an unknown metric, parameter or feature, or the evaluator
            is modelled.
    """
    if declared is None:
        own = declared_parts(bound.evaluator).items()
        found = {metric: _bind(declaration, bound) for metric, declaration in own}
        return replace(bound, separable={m: s for m, s in found.items() if s is not None})
    if declared and bound.evaluator.kind == "modelled":
        raise SpecError(
            f"{bound.name} is modelled, and its metrics are computed as they are",
            hint="declare 'parts' at the evaluator that measures",
            part=("parts",),
        )
    errors: list[DseError] = []
    separable: dict[str, Separable] = {}
    for metric, spec in declared.items():
        part = ["parts"] if metric == EVERY_METRIC else ["parts", metric]
        try:
            for one in _metrics(bound, metric):
                separable[one] = _separable(bound, spec, names)
        except DseError as error:
            error.part = (*part, *error.part)
            errors.append(error)
    raise_all(errors)
    return replace(bound, separable=separable)


def _metrics(bound: Bound, metric: str) -> Sequence[str]:
    """Return the evaluator's metrics that a key of the declaration stands for."""
    provides = tuple(bound.evaluator.provides)
    if metric == EVERY_METRIC:
        return provides
    own = metric.removeprefix(f"{bound.name}.")
    if own not in provides:
        raise SpecError(f"{bound.name} has no metric {metric!r}", hint=nearest(metric, provides))
    return (own,)


def _separable(bound: Bound, spec: PartsSpec, names: StudyNames) -> Separable:
    groups = tuple(_groups(spec, names.parameters))
    read = frozenset(bound.names.values())
    for group in groups:
        unread = sorted(frozenset(group.values()) - read)
        if unread:
            raise SpecError(
                f"{bound.name} does not read {base(unread[0])!r}, so it has no part in its metrics",
                hint=nearest(base(unread[0]), {base(one) for one in read}),
                part=("over",),
            )
    members = [frozenset(group.values()) for group in groups]
    twice = sorted(
        {one for at, own in enumerate(members) for two in members[:at] for one in own & two}
    )
    if twice:
        raise SpecError(f"{base(twice[0])!r} is in two parts", part=("over",))
    if len(members) < 2:
        raise SpecError(
            "a sum needs two parts or more",
            hint="name a list, or several parameters",
            part=("over",),
        )
    metric = _feature_metric(spec.by, names)
    features = None if spec.by is None or metric else _formulas(spec.by, groups, names)
    return Separable(groups=tuple(members), by=metric, features=features, monotone=spec.monotone)


def _groups(spec: PartsSpec, parameters: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield the parameters of each part, by the name that the declaration gives them."""
    over = [spec.over] if isinstance(spec.over, str) else spec.over
    for entry in over:
        written = [entry] if isinstance(entry, str) else entry
        columns = [_members(one, parameters) for one in written]
        longest = max((len(own) for own in columns), default=0)
        uneven = [own for own in columns if len(own) not in (1, longest)]
        if uneven:
            raise SpecError(
                f"{written} have {', '.join(str(len(own)) for own in columns)} members",
                hint="lists in one part have equal lengths",
                part=("over",),
            )
        for place in range(longest):
            yield {
                name: own[place if len(own) > 1 else 0]
                for name, own in zip(written, columns, strict=True)
            }


def _members(name: str, parameters: Collection[str]) -> list[str]:
    """Return the members of a list of parameters, or a parameter itself.

    The name may be the last part of only one full name, as for inputs of evaluators.
    """
    known = dict.fromkeys([*parameters, *(base(one) for one in parameters)])
    full = name if name in known else None
    if full is None:
        ending = [one for one in known if base(one) == one and one.endswith(f".{name}")]
        full = ending[0] if len(ending) == 1 else None
    if full is None:
        plain = {base(one) for one in parameters}
        raise SpecError(
            f"the space has no parameter {name!r}", hint=nearest(name, plain), part=("over",)
        )
    own = [one for one in parameters if one != full and base(one) == full]
    return own or [full]


def _feature_metric(by: str | None, names: StudyNames) -> str:
    """Return the modelled metric that is the feature; empty if it is a formula or not given."""
    if by is None:
        return ""
    for known in (names.modelled, names.measured):
        full = [one for one in known if one == by] or [o for o in known if o.endswith(f".{by}")]
        if not full:
            continue
        if known is names.measured:
            raise SpecError(
                f"{full[0]} is measured, and a feature has to be modelled",
                hint=nearest(by, names.modelled),
                part=("by",),
            )
        if len(full) > 1:
            raise SpecError(f"{by!r} may be {' or '.join(sorted(full))}", part=("by",))
        return full[0]
    return ""


def _formulas(by: str, groups: Sequence[Mapping[str, str]], names: StudyNames) -> partial[Floats]:
    """Return a function that computes a formula for each part of n designs."""
    try:
        expression = parse(by)
    except SpecError as error:
        error.part = ("by",)
        raise
    for group in groups:
        unknown = sorted(expression.names - group.keys())
        if unknown and names.hidden:
            raise HiddenError(by)
        if unknown and isinstance(expression.node, Name):
            raise SpecError(
                f"there is no modelled metric {by!r}",
                hint=nearest(by, [*names.modelled, *group]),
                part=("by",),
            )
        if unknown:
            raise SpecError(
                f"{unknown[0]!r} is no parameter of the part",
                hint=nearest(unknown[0], group),
                part=("by",),
            )
    return partial(_compute_formulas, tuple(_renamed(expression, group) for group in groups))


def _renamed(expression: Expression, group: Mapping[str, str]) -> Expression:
    def rename(node: Node) -> Node:
        return Name(group[node.name]) if isinstance(node, Name) else node

    return Expression(expression.text, map_nodes(expression.node, rename))


def _compute_formulas(formulas: Sequence[Expression], batch: Batch) -> Floats:
    """Return the value of each formula for n designs, (n, formulas)."""
    values = [one.values(batch.columns, len(batch)).values.astype(float) for one in formulas]
    return np.column_stack(values)


def _bind(separable: Separable, bound: Bound) -> Separable | None:
    """Return a declaration in the study's names; ``None`` with fewer than two non-empty parts."""
    kept = [
        (place, frozenset(bound.names[name] for name in group if name in bound.names))
        for place, group in enumerate(separable.groups)
    ]
    kept = [(place, group) for place, group in kept if group]
    if len(kept) < 2:
        return None
    features = separable.features
    places = tuple(place for place, _ in kept)
    return Separable(
        groups=tuple(group for _, group in kept),
        features=None if features is None else partial(_own_features, bound, features, places),
        monotone=separable.monotone,
    )


def _own_features(
    bound: Bound, features: Callable[[Batch], Floats], places: Sequence[int], batch: Batch
) -> Floats:
    return np.asarray(features(bound.own_inputs(batch)))[:, list(places)]


def expand_formulas(
    evaluator: Evaluator, bind: Mapping[str, str], known: Collection[str], space: DesignSpace
) -> Evaluator:
    """Return the evaluator with list members and table lookups in its formulas expanded.

    A name in a formula is matched with a list or table of the space as an input is with a
    parameter: by ``bind`` (lists only), by its full name, or as the last part of only one full
    name. Evaluators without formulas are returned unchanged.

    Raises:
        SpecErrors: a formula uses a list or a table incorrectly.
    """
    if isinstance(evaluator, FixedInputs):
        return FixedInputs(
            expand_formulas(evaluator.evaluator, bind, known, space), evaluator.values
        )
    if not isinstance(evaluator, ExpandsFormulas) or not evaluator.formulas:
        return evaluator
    names = frozenset[str]().union(*(one.names for one in evaluator.formulas.values()))
    lists: dict[str, Listing] = {}
    data: dict[str, Table] = {}
    for name in sorted(names - set(known)):
        full = _full(bind.get(name, name), space.lists)
        table = _table(name, space.data)
        if full is not None:
            lists[name] = _rename_members(space.lists[full].listing, full, name)
        elif table is not None:
            data[table[0]] = space.data[table[1]]
    return evaluator.over(lists, data)


def _full(name: str, names: Iterable[str]) -> str | None:
    """Return the full name equal to a name, or the only full name that ends with it.

    It is ``None`` if there is no such name.
    """
    found = [one for one in names if one == name] or [
        one for one in names if one.endswith(f".{name}")
    ]
    return found[0] if len(found) == 1 else None


def _table(name: str, data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the data table that a name in a formula refers to, or ``None``.

    The name may be ``table`` or ``table.column``; the result is the table's name in the formula and
    its full name in the space.
    """
    for own in (name, name.rpartition(".")[0]):
        full = _full(own, data) if own else None
        if full is not None:
            return own, full
    return None


def _rename_members(listing: Listing, full: str, own: str) -> Listing:
    """Return the list with ``own`` in place of its full name in the names of its members."""

    def changed(node: Node) -> Node:
        if isinstance(node, Name) and node.name.startswith((f"{full}[", f"{full}.")):
            return Name(own + node.name.removeprefix(full))
        return node

    nodes = tuple(map_nodes(node, changed) for node in listing.nodes)
    sizes = None if listing.sizes is None else tuple(map_nodes(n, changed) for n in listing.sizes)
    return replace(listing, nodes=nodes, sizes=sizes)
