"""Lists and data in formulas: written out over single names, with the values Python would give."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.expressions.list_rules import MAX_PARTS, Listing, Table, expand_lists
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Absent, Index, Lookup, Name, Number, Text, Truth
from dse.errors import SpecError
from dse.units.dimensions import unit_of


def listing(name, *keys, **more):
    return Listing(keys=keys, nodes=tuple(Name(f"{name}[{key}]") for key in keys), **more)


LISTS = {
    "bits": listing("bits", 0, 1, 2),
    "order": listing("order", 0, 1, 2),
    "kept": listing("kept", "conv1", "conv2", "fc", flags=True),
    "mix": listing("mix", "cpu", "gpu"),
    "chips": listing("chips", 0, 1),
    "stages": listing("stages", 0, sizes=(Name("stages[0]"), Name("last"))),
    "nothing": Listing(keys=(), nodes=()),
}
DATA = {
    "devices": Table(
        keys=("gpu", "cpu"),
        columns={"memory": (80, 512), "kind": ("hbm", "ddr"), "shared": (False, True)},
        units={"memory": "B"},
    ),
    "layers": Table(keys=(0, 1, 2), columns={"params": (100, 200, 300), "note": ("a", None, "c")}),
    "blocks": Table(keys=("conv1", "conv2", "fc"), columns={"cost": (1, 2, 4)}),
}
DESIGNS = [
    {"bits[0]": 4, "bits[1]": 8, "bits[2]": 4, "order[0]": 2, "order[1]": 0, "order[2]": 1}
    | {"kept[conv1]": True, "kept[conv2]": False, "kept[fc]": True}
    | {"mix[cpu]": 0.25, "mix[gpu]": 0.75, "chips[0]": "gpu", "chips[1]": "cpu"}
    | {"chip": "cpu", "stages[0]": 3, "last": 2, "n": 1, "word": "conv2"},
    {"bits[0]": 2, "bits[1]": 2, "order[0]": 1, "order[1]": 1, "order[2]": 1}
    | {"kept[conv1]": False, "kept[conv2]": True, "kept[fc]": False}
    | {"mix[cpu]": 1.0, "mix[gpu]": 0.0, "chips[0]": "gpu", "chips[1]": "gpu"}
    | {"chip": "gpu", "stages[0]": 4, "last": 1, "n": 2, "word": "conv2"},
]
ROWS = Batch.of(DESIGNS)


def written(text):
    return expand_lists(parse(text), LISTS, DATA)


def value(text):
    """The value in each row, ``None`` where it is unknown."""
    found = written(text).values(ROWS.columns, len(ROWS))
    gone = np.zeros(len(ROWS), dtype=bool) if found.absent is None else found.absent
    pairs = zip(found.values.tolist(), gone.tolist(), strict=True)
    return [None if missing else one for one, missing in pairs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bits[0] + bits[-2]", [12, 4]),
        ("bits[1 + 1]", [4, None]),
        ("bits[len(layers) - 2]", [8, 2]),
        ("sum(bits)", [16, None]),
        ("sum(order * layers.params)", [500, 600]),
        ("sum(layers.params)", [600, 600]),
        ("sum(order, 10, n)", [14, 15]),
        ("product(order + 1)", [6, 8]),
        ("max(order) - min(order)", [2, 0]),
        ("max(order, 7)", [7, 7]),
        ("count(order == 1) >= 2", [False, True]),
        ("count(order, 1)", [1, 3]),
        ("count(order, layers.params / 100)", [0, 1]),
        ("count(order)", [2, 3]),
        ("all(order >= 1)", [False, True]),
        ("any(order == 2)", [True, False]),
        ("all(0 <= order <= 1)", [False, True]),
        ("all(order in [0, 1])", [False, True]),
        ("all(not order == 2 or layers.params == 100)", [True, True]),
        ("all(is_pow2(order + 1) -> layers.params < 300)", [False, False]),
        ("sum(abs(order - 2))", [3, 3]),
        ("all_different(order)", [True, False]),
        ("len(bits) + len(layers) + len(devices.memory)", [8, 8]),
        ("max(sizes(stages))", [3, 4]),
        ("sizes(stages)[1]", [2, 1]),
        ("len(sizes(stages))", [2, 2]),
        ("'conv1' in kept", [True, False]),
        ("'conv1' not in kept", [False, True]),
        ("kept[conv1] and kept['fc']", [True, False]),
        ("word in kept", [False, True]),
        ("count(kept)", [2, 1]),
        ("sum(kept * blocks.cost)", [5, 2]),
        ("any(kept and blocks.cost == 4)", [True, False]),
        ("2 in order", [True, False]),
        ("n + 1 not in order", [False, True]),
        ("3 in order * 3", [True, True]),
        ("all(order in bits / 2 - 1)", [False, None]),
        ("word in blocks", [True, True]),
        ("chip in devices.kind", [False, False]),
        ("devices[chip].memory", [512, 80]),
        ("devices.memory[chip]", [512, 80]),
        ("devices[chip].kind == 'hbm'", [False, True]),
        ("devices['cpu'].memory", [512, 512]),
        ("devices['cpu'].shared", [True, True]),
        ("sum(devices[chips].memory)", [592, 160]),
        ("layers[n].params", [200, 300]),
        ("layers[n + 1].params", [300, None]),
        ("layers[-1].params", [300, 300]),
        ("sum(layers[order].params * bits) > 0", [True, None]),
        ("layers[n].note == 'c'", [None, True]),
        ("mix[cpu] + mix['gpu']", [1.0, 1.0]),
        ("bits[2] is absent", [False, True]),
        ("any(bits is absent)", [False, True]),
        ("all(bits is not absent)", [True, False]),
        ("sum(nothing) + product(nothing) + count(nothing > 1)", [1, 1]),
        ("all(nothing > 1) and not any(nothing > 1) and all_different(nothing)", [True, True]),
        ("1 in nothing", [False, False]),
        ("round(2.5) + round(-1.5) + round(n / 2)", [0, 1]),
    ],
)
def test_a_formula_over_lists_has_its_value(text, expected):
    assert value(text) == expected


def test_lists_with_named_items_go_together_by_name():
    assert value("sum(mix * devices.memory)") == [0.25 * 512 + 0.75 * 80, 512.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count(bits == 4) >= 0", [True, None]),
        ("sum(bits) > 0 or n == 2", [True, True]),
        ("all(bits > 2)", [True, False]),
        ("all(bits > 1)", [True, None]),
        ("any(bits == 2)", [False, True]),
        ("any(bits == 8)", [True, None]),
        ("all_different(bits)", [False, None]),
        ("2 in bits", [False, True]),
        ("8 in bits", [True, None]),
    ],
)
def test_a_list_with_an_absent_item_is_unknown_unless_the_rest_decides(text, expected):
    assert value(text) == expected


def test_a_written_out_formula_keeps_its_text_and_has_no_list_in_it():
    rule = written("sum(bits * layers.params) <= devices[chip].memory")
    assert rule.text == "sum(bits * layers.params) <= devices[chip].memory"
    assert rule.names == {"bits[0]", "bits[1]", "bits[2]", "chip"}


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("bits[-1]", Name("bits[2]")),
        ("layers[1].params", Number(200)),
        ("devices['gpu'].memory", Number(80, "B")),
        ("devices['gpu'].kind", Text("hbm")),
        ("devices['gpu'].shared", Truth(value=False)),
        ("sum(devices.memory)", Number(592, "B")),
        ("len(layers)", Number(3)),
        ("kept[fc]", Name("kept[fc]")),
        ("bits[1] is absent", Absent(Name("bits[1]"))),
    ],
)
def test_what_is_constant_is_written_as_a_literal(text, node):
    assert written(text).node == node


def test_what_each_design_looks_up_has_the_entries_that_are_not_blank():
    memory, note = written("devices[chip].memory").node, written("layers[n].note").node
    entries = (("gpu", 80), ("cpu", 512))
    assert memory == Lookup(Name("chip"), entries, "B", "devices[chip].memory")
    assert note == Lookup(Name("n"), ((0, "a"), (2, "c")), "", "layers[n].note")


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("bits >= 4", "bits is a list of 3", "all(...), any(...) or count(...)"),
        ("bits * 2", "bits is a list of 3", "sum(...)"),
        ("kept", "kept is a list of 3", "count(...)"),
        ("n + bits > 3", "bits is a list of 3", "all(...)"),
        ("sum(bits * devices.memory)", "devices.memory has 2 items, but bits has 3", "item"),
        ("sum(mix * kept)", "mix has 2 items, but kept has 3", "item"),
        ("sum(layers.parms)", "layers has no field 'parms'", "did you mean 'params'?"),
        ("devices[chip].memry", "devices has no field 'memry'", "did you mean 'memory'?"),
        ("devices['gpux'].memory", "devices has no 'gpux'", "did you mean 'gpu'?"),
        ("devices[0].memory", "devices has no 0", "valid: cpu, gpu"),
        ("bits[3]", "bits has no item 3", "0 to 2"),
        ("bits[-4]", "bits has no item -4", "0 to 2"),
        ("bits[0.5]", "bits has no item 0.5", "0 to 2"),
        ("bits['x']", "bits has no item 'x'", "0 to 2"),
        ("bits[true]", "bits has no item True", "0 to 2"),
        ("bits[1 B]", "the index of bits must be a constant", "all(bits <= 8)"),
        ("nothing[0]", "nothing has no item 0", ""),
        ("layers[3].params", "layers has no item 3", "0 to 2"),
        ("kept[conv3]", "the index of kept must be a constant", "all(kept <= 8)"),
        ("'conv3' in kept", "kept has no 'conv3'", "did you mean 'conv2'?"),
        ("bits[n] > 3", "the index of bits must be a constant", "all(bits <= 8)"),
        ("bit[0] > 3", "bit is not a list", "did you mean 'bits'?"),
        ("(n + 1) in n", "the expression after 'in' is not a list", "x in [a, b]"),
        ("n[0].x", "there is no field 'x' here: only a row of a table", "valid: blocks, devices"),
        ("bits[0].x", "there is no field 'x' here: only a row of a table has fields", ""),
        ("max(nothing)", "an empty list has no max", ""),
        ("sum(n)", "sum was given one value", "a list"),
        ("all(n)", "all was given one value", "a list"),
        ("count(n)", "count was given no list", "count(bits == 4)"),
        ("count(bits * 2)", "count needs items that are true or false", "count(bits == 4)"),
        ("len(n)", "len was given no list", ""),
        ("len(kept)", "len(kept) is not defined for a subset", "count(kept)"),
        ("sizes(bits)", "sizes needs a partition into a fixed number of parts", "parts"),
        ("layers", "layers is a table, not a list", "layers.params"),
        ("sum(layers)", "layers is a table, not a list", "layers.params"),
        ("devices[chip]", "devices is a table, not a list", "devices.memory"),
        ("sum(layers.note == 'a')", "layers.note is blank at 1", "fill"),
        ("layers[1].note == 'a'", "layers.note is blank at 1", "fill"),
        ("devices.memory[chip] is absent", "only a parameter can be absent", ""),
        ("sizes(stages)[n]", "the index of sizes(stages) must be a constant", ""),
    ],
)
def test_a_wrong_use_of_a_list_says_what_is_wrong_and_how_to_mend_it(text, problem, hint):
    with pytest.raises(SpecError) as error:
        written(text)
    assert error.value.problem.startswith(problem)
    assert hint in error.value.hint


def test_a_wrong_use_of_a_list_shows_its_place_with_a_mark():
    with pytest.raises(SpecError) as error:
        written("n == 2 -> bits[3] == 4")
    shown, mark = error.value.hint.splitlines()[1:]
    assert shown.strip() == "n == 2 -> bits[3] == 4"
    assert shown[mark.index("^") :].startswith("bits[3]")


def test_lists_used_too_often_are_refused():
    long = {"long": listing("long", *range(MAX_PARTS // 2))}
    with pytest.raises(SpecError, match="items in all"):
        expand_lists(parse("sum(long, long, long) > 0"), long, {})


def test_every_item_against_every_item_is_refused_where_it_is_endless():
    long = {"long": listing("long", *range(1_000), flags=True)}
    with pytest.raises(SpecError, match="items in all"):
        expand_lists(parse("all(long in long)"), long, {})


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("sum(devices.memory)", "B"),
        ("sum(devices[chips].memory)", "B"),
        ("devices[chip].memory / 2", "B"),
        ("max(devices.memory, 3 KiB)", "B"),
        ("product(devices[chips].memory)", "B^2"),
        ("count(bits == 4)", ""),
        ("sum(bits * layers.params)", ""),
        ("devices[chip].kind", "text"),
        ("all_different(chips)", ""),
        ("chip in devices", ""),
        ("round(devices[chip].memory / 1 KiB)", ""),
    ],
)
def test_a_formula_over_lists_has_its_unit(text, unit):
    assert unit_of(written(text), {"chip": "text", "chips[0]": "text", "chips[1]": "text"}) == unit


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sum(devices.memory) <= 3 s", "does not go with"),
        ("sum(bits, 1 s) > 0", "does not go with"),
        ("sum(devices.kind) > 0", "a word stands"),
        ("max(devices.kind) == 'x'", "a word stands"),
        ("all_different(chip, 3)", "a word is compared with a number"),
        ("round(devices[chip].memory)", "bare number"),
        ("devices[n].memory > 0", "looked up by a number, its keys are words"),
        ("layers[chip].params > 0", "looked up by a word, its keys are numbers"),
        ("chip < 'gpu'", "words have no order"),
        ("chip + chip == 'x'", "a word stands"),
        ("not chip", "a word stands"),
        ("all(devices.kind)", "a word stands"),
    ],
)
def test_units_and_words_that_do_not_fit_are_found(text, problem):
    with pytest.raises(SpecError, match=problem):
        unit_of(written(text), {"chip": "text"})


def test_a_formula_without_lists_is_the_same_written_out():
    rule = parse("-a ** 2 + b in [1, 2] -> not c < 3 <= d % 4 or d is absent")
    assert written(rule.text) == rule


def test_a_key_is_parsed_before_a_power_and_after_a_sign():
    assert parse("-xs[1] ** 2").node == parse("-(xs[1] ** 2)").node
    assert parse("xs[ys[0] + 1]").node == Index(Name("xs"), parse("ys[0] + 1").node)
