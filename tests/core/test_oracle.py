"""1,000 generated spaces against an oracle that shares no code with the engine.

A space is written as a text of YAML. The oracle reads nothing of it: it has the same rules as
functions of plain Python values, tries every combination and keeps those for which all hold.
"""

import itertools
import operator
import random

import numpy as np
import pytest

from dse.core.legal_set import diagram_builder as growth
from dse.core.legal_set import solution
from dse.schema.space.space_loader import space_from

SEED = 20_261_123
ABSENT = None
COMPARE = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
WORDS = ("red", "green", "blue")


class Case:
    """Domains by name, a condition for some, and rules: each a text and a function of a design."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(SEED + seed)
        self.domains: dict[str, tuple] = {}
        self.parameters: dict[str, dict] = {}
        self.conditions: dict[str, tuple[str, object]] = {}
        self.rules: list[tuple[str, object]] = []
        self.tables: list[tuple[dict, object]] = []
        for place in range(self.rng.randint(2, 5)):
            self._add_parameter(f"p{place}")
        for _ in range(self.rng.randint(0, 3)):
            self.rules.append(self._rule())
        if seed % 5 == 0:
            for _ in range(self.rng.randint(1, 2)):
                self._add_table()

    def _add_parameter(self, name: str) -> None:
        kind = self.rng.choice(["integer", "ordinal", "choice", "boolean"])
        if kind == "integer":
            low = self.rng.randint(-2, 2)
            domain = tuple(range(low, low + self.rng.randint(1, 4)))
            told = {"integer": [domain[0], domain[-1]]}
        elif kind == "ordinal":
            domain = tuple(
                sorted(self.rng.sample([1, 2, 4, 8, 0.5, 16, 3], self.rng.randint(1, 4)))
            )
            told = {"ordinal": list(domain)}
        elif kind == "choice":
            domain = WORDS[: self.rng.randint(2, 3)]
            told = {"choice": list(domain)}
        else:
            domain, told = (False, True), {"boolean": True}
        if self.domains and self.rng.random() < 0.4:
            parent = self.rng.choice(list(self.domains))
            value = self.rng.choice(self.domains[parent])
            told["when"] = f"{parent} == {_literal(value)}"
            self.conditions[name] = (parent, value)
        self.domains[name] = domain
        self.parameters[name] = told

    def _numbers(self) -> list[str]:
        return [n for n, d in self.domains.items() if not isinstance(d[0], str | bool)]

    def _rule(self) -> tuple[str, object]:
        """A comparison of sums, products or single values; an implication; a set; an absence."""
        shape = self.rng.choice(["compare", "compare", "imply", "member", "absent", "either"])
        if shape == "compare" or len(self.domains) < 2:
            return self._comparison()
        if shape in ("imply", "either"):
            return self._joined(shape)
        name = self.rng.choice(list(self.domains))
        if shape == "absent":
            then, judge = self._comparison()
            text = f"{name} is absent or {then}"
            return text, lambda d: True if d[name] is ABSENT else judge(d)
        some = self.rng.sample(self.domains[name], self.rng.randint(1, len(self.domains[name])))
        text = f"{name} in [{', '.join(map(_literal, some))}]"
        return text, lambda d: ABSENT if d[name] is ABSENT else d[name] in some

    def _joined(self, shape: str) -> tuple[str, object]:
        one, first = self._comparison()
        other, second = self._comparison()
        if shape == "imply":
            return f"{one} -> {other}", lambda d: _either(_opposite(first(d)), second(d))
        return f"({one}) or ({other})", lambda d: _either(first(d), second(d))

    def _comparison(self) -> tuple[str, object]:
        names = self._numbers()
        if not names:
            name = self.rng.choice(list(self.domains))
            value = self.rng.choice(self.domains[name])
            text = f"{name} == {_literal(value)}"
            return text, lambda d: ABSENT if d[name] is ABSENT else d[name] == value
        chosen = self.rng.choices(names, k=self.rng.randint(1, min(3, len(names) + 1)))
        factors = [self.rng.choice([1, 1, 2, 3, -1]) for _ in chosen]
        sign, limit = self.rng.choice(list(COMPARE)), self.rng.randint(-4, 24)
        if self.rng.random() < 0.4:
            text = f"{' * '.join(chosen)} {sign} {limit}"
            return text, _judged(chosen, lambda v: COMPARE[sign](_product(v), limit))
        total = " + ".join(f"{f} * {n}" for f, n in zip(factors, chosen, strict=True))

        def holds(values: list) -> bool:
            return COMPARE[sign](sum(f * v for f, v in zip(factors, values, strict=True)), limit)

        return f"{total} {sign} {limit}", _judged(chosen, holds)

    def _add_table(self) -> None:
        names = self.rng.sample(list(self.domains), min(len(self.domains), self.rng.randint(2, 3)))
        cells = [[*self.domains[n], *([ABSENT] if n in self.conditions else [])] for n in names]
        every = list(itertools.product(*cells))
        rows = self.rng.sample(every, max(1, round(len(every) * self.rng.uniform(0.3, 0.8))))
        key = self.rng.choice(["allow", "allow", "forbid"])

        def judge(design: dict) -> bool:
            mine = tuple(design[n] for n in names)
            if all(value is ABSENT for value in mine) and mine not in rows:
                return True  # there is no combination to judge
            return any(_same(mine, row) for row in rows) == (key == "allow")

        self.tables.append(({key: names, "rows": [list(row) for row in rows]}, judge))

    def document(self) -> dict:
        told = {"space": "s", "parameters": self.parameters}
        told |= {"constraints": [text for text, _ in self.rules]} if self.rules else {}
        return told | ({"tables": [table for table, _ in self.tables]} if self.tables else {})

    def legal(self) -> set[frozenset]:
        """All designs that keep every rule, each as its set of names and values."""
        found = set()
        for values in itertools.product(*([*d, ABSENT] for d in self.domains.values())):
            design = dict(zip(self.domains, values, strict=True))
            if self.is_legal(design):
                found.add(_key(design))
        return found

    def is_legal(self, design: dict) -> bool:
        for name in self.domains:
            parent, value = self.conditions.get(name, (None, None))
            active = parent is None or (design[parent] is not ABSENT and design[parent] == value)
            if active != (design[name] is not ABSENT):
                return False
        judges = [judge for _, judge in (*self.rules, *self.tables)]
        return all(judge(design) is not False for judge in judges)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


def _judged(names: list[str], holds) -> object:
    """Unknown as soon as one of the names is absent."""

    def judge(design: dict):
        values = [design[name] for name in names]
        return ABSENT if ABSENT in values else holds(values)

    return judge


def _product(values: list) -> float:
    total = 1
    for value in values:
        total *= value
    return total


def _either(one, other):
    if one is True or other is True:
        return True
    return ABSENT if ABSENT in (one, other) else False


def _opposite(truth):
    return truth if truth is ABSENT else not truth


def _same(mine: tuple, row: tuple) -> bool:
    return all(
        isinstance(a, bool) == isinstance(b, bool) and a == b
        for a, b in zip(mine, row, strict=True)
    )


def _key(design: dict) -> frozenset:
    return frozenset((n, isinstance(v, bool), v) for n, v in design.items() if v is not ABSENT)


def mismatches(seed: int) -> list[str]:
    """What the engine and the oracle say otherwise of one generated space."""
    case = Case(seed)
    expected = case.legal()
    space = space_from(case.document(), may_be_empty=True)
    listed = [design for batch in space.enumerate() for design in batch]
    found = {_key(dict(design)) for design in listed}
    wrong = []
    if space.count() != len(expected):
        wrong.append(f"{seed}: count {space.count()}, not {len(expected)}")
    if found != expected or len(listed) != len(found):
        wrong.append(f"{seed}: enumerates otherwise")
    rng = np.random.default_rng(seed)
    for values in itertools.islice(_tries(case), 60):
        given = {n: v for n, v in values.items() if v is not ABSENT}
        if (given in space) != (_key(values) in expected):
            wrong.append(f"{seed}: {given} judged otherwise")
    if expected:
        drawn = space.sample(20, rng).designs()
        near = space.neighbours(drawn[0]).designs()
        if not all(_key(dict(design)) in expected for design in (*drawn, *near)):
            wrong.append(f"{seed}: draws or moves to what is illegal")
        if len(expected) > 1 and not near:
            wrong.append(f"{seed}: no neighbour of {dict(drawn[0])}")
    return wrong


def _tries(case: Case):
    """Combinations at random, most of them with as many parameters as a design would have."""
    while True:
        yield {
            name: ABSENT
            if name in case.conditions and case.rng.random() < 0.5
            else case.rng.choice(domain)
            for name, domain in case.domains.items()
        }


WAYS = ("tried", "by graph", "listed from a superset")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """How groups are solved: small ones as usual, or as the large ones are."""
    if request.param != "tried":
        monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    if request.param == "listed from a superset":
        monkeypatch.setattr(growth, "MAX_EDGES", 8)
    return request.param


@pytest.mark.usefixtures("way")
def test_sixty_spaces_are_what_the_oracle_says():
    assert [m for seed in range(60) for m in mismatches(seed)] == []


@pytest.mark.proof
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_spaces_are_what_the_oracle_says(block):
    assert [m for seed in range(block * 50, block * 50 + 50) for m in mismatches(seed)] == []


def test_of_the_thousand_spaces_a_hundred_have_tables_and_absences():
    cases = [Case(seed) for seed in range(1_000)]
    assert sum(bool(case.tables and case.conditions) for case in cases) >= 100
