"""Construction of the decision diagram of a group of coupled parameters, one parameter at a time.

A state holds what the rules still need to know about the parameters set so far. Each parameter
expands every state by its values; edges that violate a rule are removed as early as possible; and
states that agree in every value still needed are merged. The result is a layered graph whose paths
are the legal combinations (:mod:`dse.core.legal_set.decision_diagram`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare, Name, Node
from dse.core.legal_set.decision_diagram import Codes, Layer, product_edges
from dse.core.legal_set.intervals import Interval, Intervals, interval_of, span, whole_bounds
from dse.core.legal_set.partial_design import (
    PartialValue,
    compute_formula,
    distinct,
    encode_column,
    keys,
    taken,
)
from dse.core.legal_set.paths import TableWalk, Walk, walk_of
from dse.core.legal_set.residual_rules import (
    cares,
    defines,
    fold_names,
    names_of,
    normal,
    whole_bound,
)
from dse.core.parameter import Finite
from dse.core.values import Ints, Mask

MAX_EDGES = 4_000_000
"""Most edges (states times values) of one layer."""

MAX_TOTAL = 24_000_000
"""Most edges of all layers together: about a gigabyte."""

_CHUNK = 1_000_000


class TooWideError(Exception):
    """Raised if a decision diagram has too many states; ``rules`` are those to drop, by index."""

    def __init__(self, rules: Sequence[int]) -> None:
        super().__init__(f"rules {rules}")
        self.rules = list(rules)


@dataclass(slots=True)
class _Rule:
    """Partially evaluated rule: its formula, the index of the original rule, and where it holds.

    ``kept`` marks the states in which the rule is already certain to hold.
    """

    node: Node
    origin: int
    names: frozenset[str] = field(default_factory=frozenset)
    kept: Mask | None = None
    live: bool = False


def grown(
    parameters: Sequence[Finite],  # in the order in which they are to be set
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
    *,
    share: int = 1,
    most_tried: float = math.inf,
) -> list[Layer]:
    """Build the layers of a decision diagram of coupled parameters, one per parameter.

    Args:
        parameters: the group's parameters, in the order in which they are to be set.
        conditions: activity condition of each parameter that has one.
        constraints: the rules between the parameters.
        share: number by which both limits on the number of edges are divided.
        most_tried: most edges tried at one parameter, including edges that rules forbid.

    Raises:
        TooWideError: a layer has more than :data:`MAX_EDGES` edges, or all layers together have
            more than :data:`MAX_TOTAL`.
    """
    growth = _Growth(parameters, conditions, constraints, MAX_EDGES // share)
    growth.most_tried = most_tried
    if growth.hopeless:
        none = np.zeros(0, dtype=np.int64)
        return [Layer(none, none.astype(np.int32), none, 0) for _ in parameters]
    layers, total = list[Layer](), 0
    for parameter in parameters:
        layers.append(growth.layer(parameter))
        total += len(layers[-1].code)
        if total > MAX_TOTAL // share and growth.widest:
            raise TooWideError(growth.widest)
    return layers


class _Growth:
    """Builder of a diagram: its current states, and the rules partially evaluated in each."""

    def __init__(
        self,
        parameters: Sequence[Finite],
        conditions: Mapping[str, Expression],
        constraints: Sequence[Expression],
        most_edges: int,
    ) -> None:
        self.states = 1
        self.most_edges = most_edges
        self.most_tried = math.inf
        self.known: dict[str, PartialValue] = {}
        self.bounds: dict[str, float] = whole_bounds(parameters)
        self.parts: dict[Node, Name] = {}
        domains = {p.name: p.values for p in parameters if p.name not in conditions}
        self.rules = [
            _Rule(node, origin, names_of(node))
            for origin, rule in enumerate(constraints)
            for node in normal(rule, self.bounds, domains)
        ]
        self.conditions = {
            name: _Rule(rule.node, -1, rule.names) for name, rule in conditions.items()
        }
        self.walks: dict[str, Walk] = {}
        self.origins: dict[str, int] = {}
        self._start_walks(parameters, frozenset(conditions))
        self.waiting: dict[str, list[_Rule]] = {}
        for rule in self.rules:
            for name in rule.names:
                self.waiting.setdefault(name, []).append(rule)
        self.live: list[_Rule] = []
        self.spans = {p.name: span(p.values) for p in parameters if p.name not in conditions}
        self.domains = domains
        self.intervals = Intervals(self._interval, domains)
        self.touched: list[_Rule] = []

    def layer(self, parameter: Finite) -> Layer:
        """Set the next parameter, and return the diagram's layer of this parameter."""
        for rule in self.waiting.pop(parameter.name, ()):
            if not rule.live:
                rule.live = True
                self.live.append(rule)
        source, code = self._edges(parameter)
        self._advance(parameter, source, code)
        alive = self._find_alive()
        if not alive.all():
            rows = np.flatnonzero(alive)
            source, code = source[rows], code[rows]
            self.known = {name: taken(known, rows) for name, known in self.known.items()}
            self.states = len(rows)
        target = self._merge_states(len(source))
        return Layer(source, code, target, self.states)

    def _start_walks(self, parameters: Sequence[Finite], optional: frozenset[str]) -> None:
        """Replace rules by automata where possible, which reject partial combinations early."""
        order = {parameter.name: turn for turn, parameter in enumerate(parameters)}
        by_name = {parameter.name: parameter for parameter in parameters}
        for rule in list(self.rules):
            walk = walk_of(rule.node, order, by_name, optional)
            if walk is not None:
                name = f"@{len(self.walks)}"
                self.walks[name] = walk
                self.origins[name] = rule.origin
                self.known[name] = PartialValue(
                    np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
                )
                self.rules.remove(rule)

    @property
    def hopeless(self) -> bool:
        """Whether no combination is legal because a rule without parameters is false."""
        bare = [Expression("", rule.node) for rule in self.rules if not rule.names]
        return not all(rule.holds({}, 1, unknown=True)[0] for rule in bare)

    # -- which values a state allows ----------------------------------------------------------

    def _edges(self, parameter: Finite) -> tuple[Ints, Codes]:
        ready = [rule for rule in self.live if self._completed_by(parameter.name, rule)]
        solvable = ready if parameter.name in self.spans else []
        defining = next((r for r in solvable if defines(r.node, parameter.name, self.bounds)), None)
        active = self._active(parameter.name)
        sources, codes, total = list[Ints](), list[Codes](), 0
        step = max(_CHUNK // (len(parameter.values) + 1), 1)
        if not defining and self.states * len(parameter.values) > self.most_tried and self.widest:
            raise TooWideError(self.widest)
        for start in range(0, max(self.states, 1), step):
            states = np.arange(start, min(start + step, self.states))
            found = self._solve_rule(defining, parameter, states, active) if defining else None
            source, code = found or self._expand_states(parameter, states, active)
            for rule in ready:
                columns = self._columns(rule.names, parameter, source, code)
                keep = Expression("", rule.node).holds(columns, len(source), unknown=True)
                source, code = source[keep], code[keep]
            if 4 * step < self.states:  # prune each chunk before the next, to bound the memory
                source, code = self._prune_edges(parameter, source, code)
            total += len(source)
            if total > self.most_edges and self.widest:
                raise TooWideError(self.widest)
            sources.append(source)
            codes.append(code)
        done = set(map(id, ready))
        self.live = [rule for rule in self.live if id(rule) not in done]
        return np.concatenate(sources), np.concatenate(codes)

    def _prune_edges(self, parameter: Finite, source: Ints, code: Codes) -> tuple[Ints, Codes]:
        """Return the edges (state, value) that do not certainly violate a rule."""
        for rule in self.live:
            if parameter.name not in rule.names:
                continue
            columns = self._columns(rule.names, parameter, source, code)
            intervals = Intervals(partial(interval_of, columns, self.spans), self.domains)
            fate = intervals.fate(rule.node, len(source))
            if fate is not None and fate.broken.any():
                source, code = source[~fate.broken], code[~fate.broken]
        return source, code

    def _solve_rule(
        self, rule: _Rule, parameter: Finite, states: Ints, active: Mask
    ) -> tuple[Ints, Codes] | None:
        """Solve an equation for the parameter; return the solvable states and the values' codes.

        States in which no value of the parameter solves the equation are left out. The result is
        ``None`` if some states may have no unique solution.
        """
        assert isinstance(rule.node, Compare)
        (side,) = (side for side in rule.node.operands if side != Name(parameter.name))
        columns = {n: taken(self.known[n], states).column() for n in names_of(side)}
        wanted = Expression("", side).values(columns, len(states))
        values = np.array(parameter.values)
        order = np.argsort(values, kind="stable")
        if wanted.absent is not None or len(np.unique(values)) < len(values):
            return None
        place = np.minimum(np.searchsorted(values[order], wanted.values), len(values) - 1)
        code = order[place]
        same = (values[code] == wanted.values) & active[states]
        return states[same], code[same].astype(np.int32)

    def _expand_states(self, parameter: Finite, states: Ints, active: Mask) -> tuple[Ints, Codes]:
        """Return edges from some states: one per value of a parameter that tables allow."""
        walks = [name for name, walk in self.walks.items() if parameter.name in walk.names]
        table = next((name for name in walks if isinstance(self.walks[name], TableWalk)), None)
        if table is None:
            source, code = product_edges(states, active[states], len(parameter.values))
        else:
            walk, known = self.walks[table], self.known[table]
            assert isinstance(walk, TableWalk)
            place, found = walk.expand(known.values[known.codes[states]], parameter.name)
            keep = active[states[place]] == (found >= 0)
            source, code = states[place[keep]], found[keep].astype(np.int32)
        for name in walks:
            known = self.known[name]
            raw = known.values[known.codes[source]]
            _, fine = self.walks[name].advance(raw, parameter.name, code)
            source, code = source[fine], code[fine]
        return source, code

    def _completed_by(self, parameter: str, rule: _Rule) -> bool:
        return parameter in rule.names and rule.names <= self.known.keys() | {parameter}

    def _active(self, name: str) -> Mask:
        rule = self.conditions.pop(name, None)
        if rule is None:
            return np.ones(self.states, dtype=bool)
        columns = {known: self.known[known].column() for known in rule.names}
        return Expression("", rule.node).holds(columns, self.states, unknown=False)

    def _columns(
        self, names: frozenset[str], parameter: Finite, source: Ints, code: Codes
    ) -> dict[str, Column]:
        columns = {
            name: taken(self.known[name], source).column() for name in names if name in self.known
        }
        if parameter.name in names:
            columns[parameter.name] = Column.coded(parameter.values, code)
        return columns

    @property
    def widest(self) -> list[int]:
        """Indices of the rules by the number of states that they cause, largest first.

        If the diagram is too large, the rules that come first are dropped.
        """
        weight = {rule.origin: 0.0 for rule in self.live}
        for rule in self.live:
            for name in sorted(rule.names & self.known.keys()):
                weight[rule.origin] += round(float(np.log2(1.0 + len(self.known[name].values))), 6)
        weight |= {self.origins[name]: 0.0 for name in self.walks}
        return sorted(weight, key=lambda origin: (-weight[origin], origin))

    # -- values that the next states have to keep ---------------------------------------------

    def _advance(self, parameter: Finite, source: Ints, code: Codes) -> None:
        """Store the new parameter's value in each state, and evaluate the rules partially."""
        self.states = len(source)
        self.known = {name: taken(known, source) for name, known in self.known.items()}
        for name, walk in self.walks.items():
            if parameter.name in walk.names:
                known = self.known[name]
                states, _ = walk.advance(known.values[known.codes], parameter.name, code)
                self.known[name] = encode_column(Column(states))
                if parameter.name == walk.names[-1]:
                    del self.known[name]
        self.walks = {name: walk for name, walk in self.walks.items() if name in self.known}
        self.known[parameter.name] = PartialValue(
            code.astype(np.int64), np.arange(len(parameter.values)), parameter.values
        )
        self.touched = [rule for rule in self.live if parameter.name in rule.names]
        for rule in [*self.touched, *self.conditions.values()]:
            if parameter.name in rule.names:
                rule.node = fold_names(rule.node, frozenset(self.known), self.bounds, self._part)
                rule.names = names_of(rule.node)

    def _find_alive(self) -> Mask:
        """Return which states may still lead to a legal combination, (s,), by interval bounds.

        Only rules that read the latest parameter are tested. Where such a rule certainly holds, its
        mask ``kept`` is set, so that the values it reads need not be stored there.
        """
        alive = np.ones(self.states, dtype=bool)
        for rule in self.touched:
            fate = self.intervals.fate(rule.node, self.states)
            if fate is not None:
                alive &= ~fate.broken
                rule.kept = fate.kept
        for rule in self.touched:
            if rule.kept is not None:
                rule.kept = rule.kept[alive]
        return alive

    def _interval(self, name: str) -> Interval | None:
        known = self.known.get(name)
        return interval_of({} if known is None else {name: known.column()}, self.spans, name)

    def _part(self, node: Node) -> Node:
        """Return a name for a subexpression whose parameters are all set, and store its values.

        There is one value per state.
        """
        if isinstance(node, Name):
            return node
        name = self.parts.get(node)
        if name is None or name.name not in self.known:
            name = Name(f"#{len(self.parts)}")
            self.parts[node] = name
            self.known[name.name] = compute_formula(node, self.known, self.states)
            bound = whole_bound(node, self.bounds)
            if bound is not None:
                self.bounds[name.name] = bound
        return name

    def _merge_states(self, size: int) -> Ints:
        """Merge states that agree in all values still needed; return each edge's target state."""
        needed = [*self.live, *self.conditions.values()]
        read = frozenset(self.walks).union(*(rule.names for rule in needed))
        names = sorted(self.known.keys() & read)
        matter = self._matter(names, size)
        for name in names:
            if name in matter:
                self.known[name].codes = np.where(matter[name], self.known[name].codes, -1)
        _, first, target = distinct(*keys([self.known[name] for name in names], size))
        self.known = {name: taken(self.known[name], first) for name in names}
        self.states = len(first)
        return target

    def _matter(self, names: Sequence[str], size: int) -> dict[str, Mask]:
        """Return, by stored value, the mask of states where it can still affect legality.

        Values that matter in every state are omitted.
        """
        everywhere = np.ones(size, dtype=bool)
        found: dict[str, Mask] = {}

        def settled(name: str, truth: bool) -> Mask:  # noqa: FBT001 - a truth, not a switch
            if name not in self.known:
                return ~everywhere
            column = self.known[name].column()
            same = column.values.astype(bool) == truth
            return same if column.absent is None else same & ~column.absent

        for rule in [*self.live, *self.conditions.values()]:
            open_ = everywhere if rule.kept is None else ~rule.kept
            rule.kept = None
            if not rule.names & self.known.keys():
                continue
            for name, mask in cares(rule.node, settled, open_).items():
                found[name] = found[name] | mask if name in found else mask
        return {name: mask for name, mask in found.items() if name in names and not mask.all()}
