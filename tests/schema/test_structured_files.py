"""Lists, orders, subsets, partitions and shares in space files, counted against brute force."""

import itertools
import math

import numpy as np
import pytest

from dse.core.compound_parameters import Each, Partition, Permutation, Simplex, Subset
from dse.core.parameter import Ordinal
from dse.errors import DesignError


def designs(space):
    return [dict(design) for batch in space.enumerate() for design in batch]


# -- each -----------------------------------------------------------------------------------------


def test_a_list_has_a_member_for_each_item(read):
    space = read(
        """
space: s
parameters:
  bits: {each: 3, ordinal: [2, 4, 8]}
constraints:
  - sum(bits) <= 12
  - count(bits == 8) <= 1
  - bits[0] >= bits[-1]
"""
    )
    assert [p.name for p in space.parameters] == ["bits[0]", "bits[1]", "bits[2]"]
    legal = [
        b
        for b in itertools.product([2, 4, 8], repeat=3)
        if sum(b) <= 12 and b.count(8) <= 1 and b[0] >= b[-1]
    ]
    assert space.count() == len(legal)
    domain = Ordinal(name="bits", values=(2, 4, 8))
    assert space.lists["bits"] == Each(name="bits", domain=domain, length=3)
    assert space.constraints[0].text == "sum(bits) <= 12"


@pytest.mark.parametrize(
    ("domain", "count"),
    [
        ("integer: [1, 4], step: 3", 4),
        ("choice: [a, b, 3]", 9),
        ("boolean: true", 4),
        ("ordinal: pow2(1 KiB .. 4 KiB)", 9),
    ],
)
def test_a_list_is_of_any_domain(read, domain, count):
    assert read(f"space: s\nparameters:\n  x: {{each: 2, {domain}}}\n").count() == count


def test_a_list_of_reals_is_drawn(read):
    space = read("space: s\nparameters:\n  x: {each: 2, real: [1 GHz, 2 GHz], scale: log}\n")
    drawn = space.sample(50, np.random.default_rng(0))
    assert ((drawn["x[1]"] >= 1e9) & (drawn["x[1]"] <= 2e9)).all()


def test_a_list_is_as_long_as_the_data_or_the_list_that_it_goes_with(read):
    space = read(
        """
space: s
arguments: {n: 2}
data: {layers: [{params: 4}, {params: 8}, {params: 2}]}
parameters:
  rank:  {each: bits, ordinal: [1, 2]}
  bits:  {each: layers, ordinal: [2, 4]}
  stage: {each: n * 2, boolean: true}
  half:  {each: len(layers) - 1, boolean: true}
constraints:
  - sum(bits * layers.params) <= 40
"""
    )
    assert [len(space.lists[name].members) for name in ("rank", "bits", "stage", "half")] == [
        3,
        3,
        4,
        2,
    ]
    legal = [
        b
        for b in itertools.product([2, 4], repeat=3)
        if sum(x * p for x, p in zip(b, [4, 8, 2], strict=True)) <= 40
    ]
    assert space.count() == len(legal) * 2**3 * 2**4 * 2**2


def test_each_item_of_a_generated_list_divides(read):
    text = "space: s\nparameters:\n  n: {ordinal: [4, 6]}\n  d: {each: 2, ordinal: divisors(n)}\n"
    space = read(text)
    assert space.by_name["d[1]"].values == (1, 2, 3, 4, 6)
    assert space.count() == 3**2 + 4**2


def test_a_list_is_absent_together(read):
    space = read(
        """
space: s
parameters:
  mixed: {boolean: true}
  bits:  {each: 2, ordinal: [2, 4], when: mixed}
constraints: [sum(bits) <= 6]
"""
    )
    assert space.count() == 1 + 3
    assert {len(design) for design in designs(space)} == {1, 3}


def test_a_list_is_settled_as_a_whole_or_item_by_item(read):
    part = "space: p\nparameters:\n  bits: {each: 3, ordinal: [2, 4, 8]}\n"
    text = (
        "space: s\ninclude:\n  a: {file: part.yaml, narrow: {bits: [2, 4]}, fix: {'bits[1]': 4}}\n"
    )
    space = read(text, part=part)
    assert [space.by_name[f"a.bits[{i}]"].values for i in range(3)] == [(2, 4), (4,), (2, 4)]


def test_a_whole_has_rules_over_the_lists_of_its_parts(read):
    part = "space: p\nparameters:\n  bits: {each: 2, ordinal: [2, 4]}\nconstraints: ['bits[0] <= bits[1]']\n"
    text = """
space: s
include: {a: part.yaml, b: {file: part.yaml, rename: {bits: widths}}}
constraints: [sum(a.bits) + sum(b.widths) == 12, all(a.bits <= b.widths)]
"""
    space = read(text, part=part)
    pairs = [(2, 2), (2, 4), (4, 4)]
    legal = [
        1
        for a, b in itertools.product(pairs, pairs)
        if sum(a) + sum(b) == 12 and all(x <= y for x, y in zip(a, b, strict=True))
    ]
    assert space.count() == len(legal)


# -- permutation ----------------------------------------------------------------------------------


def test_a_permutation_is_every_order_of_its_items(read):
    space = read("space: s\nparameters:\n  order: {permutation: [n, m, k]}\n")
    found = {tuple(d[f"order[{i}]"] for i in range(3)) for d in designs(space)}
    assert found == set(itertools.permutations(["n", "m", "k"]))
    assert space.lists["order"] == Permutation(name="order", items=("n", "m", "k"))


def test_a_permutation_of_numbers_has_ordinals(read):
    space = read("space: s\nparameters:\n  p: {permutation: 4}\nconstraints: ['p[0] < p[1]']\n")
    assert space.by_name["p[2]"].values == (0, 1, 2, 3)
    assert space.count() == math.factorial(4) // 2


def test_a_permutation_goes_over_the_keys_of_data(read):
    text = (
        "space: s\ndata: {ops: {mul: {t: 1}, add: {t: 2}}}\nparameters:\n  o: {permutation: ops}\n"
    )
    assert read(text).by_name["o[0]"].values == ("mul", "add")


# -- subset ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "count"),
    [("", 8), (", size: 2", 3), (", size: [1, 2]", 6), (", size: [0, k]", 7), (", size: n", 4)],
)
def test_a_subset_has_as_many_items_as_it_says(read, size, count):
    text = f"""
space: s
arguments: {{k: 2}}
parameters:
  n: {{integer: [1, 1]}}
  kept: {{subset: [conv1, conv2, fc]{size}}}
"""
    space = read(text)
    expected = 3 if size == ", size: n" else count
    assert space.count() == expected
    assert isinstance(space.lists["kept"], Subset)


def test_the_size_of_a_subset_may_be_a_parameter(read):
    space = read(
        """
space: s
parameters:
  kept: {subset: [a, b, c, d], size: n}
  n: {ordinal: [1, 3]}
constraints: ["'a' in kept", "kept[b] -> kept[c]"]
"""
    )
    legal = [
        chosen
        for size in (1, 3)
        for chosen in itertools.combinations("abcd", size)
        if "a" in chosen and ("b" not in chosen or "c" in chosen)
    ]
    assert space.count() == len(legal)


def test_an_item_of_a_subset_keeps_its_name_in_an_include(read):
    part = "space: p\nparameters:\n  kept: {subset: [conv1, fc]}\nconstraints: ['kept[conv1] or kept[fc]']\n"
    space = read("space: s\ninclude: {a: part.yaml}\n", part=part)
    assert space.constraints[0].text == "a.kept[conv1] or a.kept[fc]"
    assert space.count() == 3


# -- partition ------------------------------------------------------------------------------------


def test_a_partition_cuts_a_chain_into_parts_none_of_them_empty(read):
    text = "space: s\nparameters:\n  stages: {partition: 7, parts: 3}\nconstraints: [max(sizes(stages)) <= 4]\n"
    space = read(text)
    legal = [(a, b) for a in range(1, 7) for b in range(a + 1, 7) if max(a, b - a, 7 - b) <= 4]
    found = {(d["stages[0]"], d["stages[1]"]) for d in designs(space)}
    assert found == set(legal)
    assert isinstance(space.lists["stages"], Partition)


@pytest.mark.parametrize("parts", ["[1, 4]", "n"])
def test_a_partition_may_have_any_number_of_parts(read, parts):
    text = f"""
space: s
parameters:
  n: {{integer: [1, 4]}}
  stages: {{partition: 6, parts: {parts}}}
"""
    space = read(text)
    expected = sum(math.comb(5, parts - 1) for parts in range(1, 5))
    assert space.count() == (expected if parts == "n" else 4 * expected)


def test_a_partition_counted_by_a_parameter_rules_out_more_parts_than_links(read):
    text = "space: s\nparameters:\n  n: {ordinal: [0, 2, 8]}\n  stages: {partition: 4, parts: n}\n"
    space = read(text)
    assert {d["n"] for d in designs(space)} == {2}
    assert space.count() == 3


def test_a_partition_of_data_has_a_link_for_each_row(read):
    text = "space: s\ndata: {layers: [{p: 1}, {p: 2}, {p: 3}]}\nparameters:\n  s: {partition: layers, parts: 2}\n"
    assert read(text).by_name["s[0]"].values == (1, 2)


def test_a_partition_may_be_inactive(read):
    text = """
space: s
parameters:
  staged: {boolean: true}
  stages: {partition: 4, parts: [1, 3], when: staged}
"""
    space = read(text)
    assert space.count() == 1 + 1 + 3 + 3
    assert space.conditions["stages[1]"].text == "(staged) and stages.parts > 2"


# -- simplex --------------------------------------------------------------------------------------


def test_shares_in_steps_sum_to_one_exactly(read):
    space = read("space: s\nparameters:\n  mix: {simplex: [cpu, gpu, npu], step: 0.1}\n")
    assert space.count() == math.comb(12, 2)
    assert space.by_name["mix[gpu]"].values[3] == 0.3
    assert isinstance(space.lists["mix"], Simplex)


def test_shares_of_any_size_sum_to_one(read):
    space = read("space: s\nparameters:\n  mix: {simplex: 3}\nconstraints: ['mix[0] <= 0.5']\n")
    drawn = space.sample(100, np.random.default_rng(1))
    total = sum(drawn[f"mix[{i}]"] for i in range(3))
    assert np.abs(total - 1).max() <= 1e-9
    assert (drawn["mix[0]"] <= 0.5).all()


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{each: 0, boolean: true}", "'each' is from 1 to 5000, not 0"),
        ("{each: 9999999, boolean: true}", "'each' is from 0 to 5000, not 9999999"),
        ("{each: 2.5, boolean: true}", "each: expected a whole number or a text, found 2.5"),
        ("{each: layerz, boolean: true}", "'layerz' is no number"),
        ("{each: 3}", "this has none"),
        ("{each: 3, permutation: 3}", "'each' goes with"),
        ("{permutation: []}", "there are no items"),
        ("{permutation: [a, a]}", "the item 'a' appears twice"),
        ("{permutation: ['a]', b]}", "cannot be an item"),
        ("{permutation: [true, false]}", "cannot be an item"),
        ("{subset: [a, b], size: 3}", "3 of 2 items cannot be chosen"),
        ("{subset: [a, b], size: [2, 1]}", "'size' is a number, or [least, most], not [2, 1]"),
        ("{subset: [a, b], size: f}", "f is no whole-number parameter"),
        ("{subset: [a, b], size: -1}", "'size' is from 0 to 5000, not -1"),
        ("{partition: 4}", "a partition needs 'parts'"),
        ("{partition: 4, parts: 5}", "a chain of 4 cannot have 5 parts"),
        ("{partition: 4, parts: 0}", "at least one part"),
        ("{partition: 4, parts: [1, 2, 3]}", "[least, most]"),
        ("{simplex: 1}", "a simplex of one item is constant"),
        ("{simplex: 3, step: 0.3}", "do not add up to one"),
        ("{simplex: 3, step: 2}", "a share of one"),
        ("{simplex: 3, step: 1 s}", "a share of one"),
        ("{simplex: 3, scale: log}", "'scale' goes with"),
        ("{simplex: 3, unit: s}", "'unit' goes with"),
        ("{ordinal: [1], size: 3}", "'size' goes with 'subset' only"),
    ],
)
def test_a_structure_that_cannot_be_is_told_with_its_line(told, spec, expected):
    message = told(f"space: s\nparameters:\n  f: {{choice: [a, b]}}\n  x: {spec}\n")
    assert "main.yaml:4" in message
    assert expected in message


def test_an_order_cannot_be_settled_as_a_whole(told):
    part = "space: p\nparameters:\n  o: {permutation: 3}\n"
    message = told("space: s\ninclude: {a: {file: part.yaml, fix: {o: 1}}}\n", part=part)
    assert "main.yaml:2: o is a compound of several parameters" in message
    assert "o[0]" in message


def test_a_share_cannot_be_settled_alone(told):
    part = "space: p\nparameters:\n  m: {simplex: 3}\n"
    message = told("space: s\ninclude: {a: {file: part.yaml, fix: {'m[0]': 0.5}}}\n", part=part)
    assert "main.yaml:2: a.m[0] is one of the shares of m" in message


def test_lists_that_need_one_another_are_told(told):
    text = "space: s\nparameters:\n  a: {each: b, boolean: true}\n  b: {each: a, boolean: true}\n"
    assert "the domain of a depends on itself: a needs b needs a" in told(text)


def test_a_list_where_a_value_is_needed_is_told(told):
    message = told(
        "space: s\nparameters:\n  a: {each: 2, ordinal: [1]}\nconstraints: [a <= 1, 'a[2] == 1']\n"
    )
    assert "main.yaml:4: a is a list of 2, but one value is needed" in message
    assert "main.yaml:4: a has no item 2" in message


def test_a_member_is_named_by_lowering_only(told):
    message = told("space: s\nparameters:\n  'a[0]': {ordinal: [1]}\n")
    assert "main.yaml:3: 'a[0]' is no name" in message


def test_a_broken_member_is_told_with_the_line_of_its_list(read):
    space = read("space: s\nparameters:\n  order: {permutation: [n, m]}\n")
    with pytest.raises(DesignError, match=r"all_different\(order\)") as caught:
        space.check({"order[0]": "n", "order[1]": "n"})
    assert caught.value.where.endswith("main.yaml:3")
    with pytest.raises(DesignError) as caught:
        space.check({"order[0]": "n"})
    assert caught.value.where.endswith("main.yaml:3")
