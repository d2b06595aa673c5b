"""Values found in tables: of a key, of a combination."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.lookup import ValueIndex
from dse.core.expressions.syntax import Listed, Lookup, Name, names_in

VALUES = st.sampled_from(["x", "y", 0, 1, 2.5, 7])
SOME = st.one_of(st.none(), VALUES)


def told(node, columns, size):
    """The value in each row, ``None`` where it is unknown."""
    found = Expression("", node).values(columns, size)
    gone = [False] * size if found.absent is None else found.absent.tolist()
    pairs = zip(found.values.tolist(), gone, strict=True)
    return [None if missing else value for value, missing in pairs]


def both_forms(rows, width):
    """The columns of the rows, plain and as codes."""
    domain = ("y", 7, 0, "x", 1, 2.5)
    plain, coded = {}, {}
    for place in range(width):
        values = [row[place] for row in rows]
        plain[f"p{place}"] = Column.of(values)
        codes = [-1 if value is None else domain.index(value) for value in values]
        coded[f"p{place}"] = Column.coded(domain, np.array(codes, dtype=np.int32))
    return plain, coded


@given(entries=st.dictionaries(VALUES, VALUES, max_size=5), keys=st.lists(SOME, min_size=1))
def test_a_lookup_is_a_dictionary_and_unknown_where_it_has_no_key(entries, keys):
    node = Lookup(Name("p0"), tuple(entries.items()))
    plain, coded = both_forms([(key,) for key in keys], 1)
    expected = [None if key is None else entries.get(key) for key in keys]
    assert told(node, plain, len(keys)) == expected
    assert told(node, coded, len(keys)) == expected


@given(
    table=st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=8),
    rows=st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=8),
    negated=st.booleans(),
)
def test_a_table_of_combinations_is_membership_among_tuples(table, rows, negated):
    node = Listed((Name("p0"), Name("p1"), Name("p2")), tuple(table), negated)
    plain, coded = both_forms(rows, 3)
    expected = [(row in table) != negated for row in rows]
    assert told(node, plain, len(rows)) == expected
    assert told(node, coded, len(rows)) == expected


@given(
    table=st.lists(st.tuples(SOME, SOME), max_size=8),
    rows=st.lists(st.tuples(SOME, SOME), min_size=1, max_size=8),
)
def test_a_none_is_met_by_absence_alone_row_by_row_and_all_absent_is_unknown(table, rows):
    absent = (None, None)
    expected = [None if row == absent and absent not in table else row in table for row in rows]
    node = Listed((Name("p0"), Name("p1")), tuple(table))
    plain, coded = both_forms(rows, 2)
    assert told(node, plain, len(rows)) == expected
    assert told(node, coded, len(rows)) == expected


def test_a_table_of_all_combinations_holds_each_of_them():
    rows = tuple(itertools.product(range(30), repeat=3))
    grid = np.array(rows)
    columns = {f"p{place}": Column(grid[:, place]) for place in range(3)}
    found = Expression("", Listed(tuple(map(Name, columns)), rows)).values(columns, len(rows))
    assert found.values.all()


def test_a_table_too_wide_for_a_plain_one_is_searched():
    rows = tuple((n, n * 7 % 5_000) for n in range(5_000))
    columns = {"a": Column(np.arange(6_000)), "b": Column(np.arange(6_000) * 7 % 5_000)}
    found = Expression("", Listed((Name("a"), Name("b")), rows)).values(columns, 6_000)
    assert found.values.tolist() == [True] * 5_000 + [False] * 1_000


def test_a_whole_number_is_found_whether_it_is_written_with_a_point_or_not():
    places = ValueIndex((1, 2, 4))
    assert places.of(Column(np.array([4.0, 2.0, 3.0]))).tolist() == [2, 1, -1]


def test_names_of_a_table_are_renamed_and_its_rows_stay():
    node = Listed((Name("a"), Name("b")), ((1, 2),))
    renamed = Expression("", node).renamed(lambda name: f"chip.{name}")
    assert [name.name for name in names_in(renamed.node)] == ["chip.a", "chip.b"]
    assert Expression("", node).renamed(lambda name: name).node is node


def test_what_was_prepared_is_no_part_of_what_a_table_is():
    used, fresh = (Expression("", Listed((Name("a"),), ((1,),))) for _ in range(2))
    used.values({"a": Column.of([1])}, 1)
    assert used == fresh
    assert hash(used) == hash(fresh)
    assert pickle.loads(pickle.dumps(used)) == fresh
    assert repr(used) == repr(fresh)


@pytest.mark.slow
def test_a_million_designs_are_found_among_a_hundred_thousand_rows():
    rng = np.random.default_rng(0)
    rows = tuple(map(tuple, rng.integers(0, 50, (100_000, 3)).tolist()))
    codes = rng.integers(0, 50, (1_000_000, 3))
    columns = {f"p{k}": Column.coded(tuple(range(50)), codes[:, k]) for k in range(3)}
    rule = Expression("", Listed(tuple(map(Name, columns)), rows))
    found = rule.values(columns, 1_000_000).values
    known = set(rows)
    assert found[:1_000].tolist() == [row in known for row in map(tuple, codes[:1_000].tolist())]
