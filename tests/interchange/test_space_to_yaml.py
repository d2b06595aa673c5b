"""A space written as YAML and read again: the same space."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import (
    Call,
    Compare,
    Listed,
    Logic,
    Lookup,
    Member,
    Name,
    Number,
    Text,
)
from dse.core.inspection.fingerprint import fingerprint, form
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.errors import SpecError
from dse.schema.space.export.space_writer import format_space, mapping_of
from dse.schema.space.space_loader import space_from, space_of
from dse.schema.yaml import source
from dse.schema.yaml.files import Files, library
from dse.schema.yaml.writer import yaml_text
from dse.testing.strategies import spaces


def read(folder: Path, text: str, **others: str) -> DesignSpace:
    for name, content in others.items():
        (folder / name.replace("_csv", ".csv").replace("_yaml", ".yaml")).write_text(content)
    path = folder / "main.yaml"
    path.write_text(text)
    return space_of(path, Files())


def again(folder: Path, space: DesignSpace) -> DesignSpace:
    path = folder / "written.yaml"
    path.write_text(format_space(space, "again"), encoding="utf-8")
    return space_of(path, Files())


def rules(space: DesignSpace) -> list[str]:
    return sorted(map(str, (form(rule.node) for rule in space.constraints)))


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], max_examples=60
)
@given(spaces())
def test_a_space_written_and_read_again_is_equal(space):
    assume(space.count())
    back = space_from(mapping_of(space, "s"))
    assert back.parameters == space.parameters
    assert {n: r.node for n, r in back.conditions.items()} == {
        n: r.node for n, r in space.conditions.items()
    }
    assert rules(back) == rules(space)
    assert back.count() == space.count()
    assert fingerprint(back) == fingerprint(space)


LIBRARY = sorted((library() / "spaces").rglob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_every_space_of_the_library_comes_back_from_one_flat_file(tmp_path, path):
    space = space_of(path, Files())
    back = again(tmp_path, space)
    assert back.parameters == space.parameters
    assert back.count() == space.count()
    assert fingerprint(back) == fingerprint(space)


DECLARED = {
    "list": "bits: {each: 4, ordinal: [2, 4, 8], scale: log}",
    "list of quantities": "buffers: {each: 3, ordinal: pow2(64 KiB .. 1 MiB)}",
    "permutation of words": "order: {permutation: [a, b, c]}",
    "permutation of numbers": "order: {permutation: 4}",
    "permutation of other numbers": "order: {permutation: [1, 2, 4]}",
    "subset": "kept: {subset: [conv1, conv2, fc]}",
    "subset of two": "kept: {subset: [conv1, conv2, fc], size: 2}",
    "subset of one to two": "kept: {subset: [conv1, conv2, fc], size: [1, 2]}",
    "subset of numbers": "kept: {subset: [8, 16, 32], size: 2}",
    "subset as a parameter says": "kept: {subset: [a, b, c], size: n}\n  n: {integer: [0, 3]}",
    "partition": "stages: {partition: 6, parts: 3}",
    "partition into two to four": "stages: {partition: 6, parts: [2, 4]}",
    "partition as a parameter says": "stages: {partition: 6, parts: n}\n  n: {integer: [1, 3]}",
    "shares": "mix: {simplex: [cpu, gpu, npu]}",
    "shares in tenths": "mix: {simplex: 3, step: 0.1}",
    "shares in thirds": "mix: {simplex: [cpu, gpu], step: 0.333333333333}",
    "list with a condition": "bits: {each: 3, ordinal: [2, 4], when: on}\n  on: {boolean: true}",
    "partition with a condition": (
        "stages: {partition: 5, parts: [1, 3], when: on}\n  on: {boolean: true}"
    ),
}


@pytest.mark.parametrize("case", DECLARED)
def test_a_structured_parameter_is_written_as_what_it_was_declared(tmp_path, case):
    space = read(tmp_path, f"space: s\nparameters:\n  {DECLARED[case]}\n")
    back = again(tmp_path, space)
    assert back.lists == space.lists
    assert back.parameters == space.parameters
    assert fingerprint(back) == fingerprint(space)


WHOLE = """
space: whole
arguments: {gpus: 8, roof: 300 W}
data:
  devices: {a100: {memory: 80 GiB, power: 400 W}, l4: {memory: 24 GiB, power: 72 W}}
  layers: layers.csv
include:
  chip: part.yaml
  other: {file: part.yaml, fix: {mode: slow}, rename: {cache: buffer}}
parameters:
  device: {choice: [a100, l4]}
  tp: {ordinal: divisors(gpus)}
  bits: {each: layers, ordinal: [2, 4, 8]}
  kept: {subset: [conv1, fc], size: [1, 2]}
  cap: {real: [0.1, 1], when: device == 'a100'}
  batch: {integer: [1, 64], scale: log}
constraints:
  - devices[device].power <= roof or cap <= 0.7
  - sum(bits * layers.weights) <= 8000
  - chip.cache + other.buffer <= 1.5 MiB
  - count(bits == 8) >= 1
  - "'fc' in kept -> bits[-1] >= 4"
  - batch / tp * chip.clock >= 1 GHz
  - other.mode == 'fast' -> tp == 1
tables:
  - {allow: [device, tp], rows: [[a100, 1], [a100, 2], [l4, 1], [l4, 8]]}
  - {forbid: [tp, chip.mode], rows: [[2, fast]]}
"""
PART = """
space: part
parameters:
  mode: {choice: [fast, slow]}
  clock: {ordinal: [200 MHz, 1.2 GHz, 1.65 GHz]}
  cache: {ordinal: pow2(64 KiB .. 1 MiB), when: clock > 1 GHz or mode == 'slow'}
constraints: [mode == 'slow' -> clock <= 1.2 GHz]
"""
LAYERS = "layer,weights\nconv1,100\nconv2,900\nfc,500\n"


def whole_space(folder: Path) -> DesignSpace:
    return read(folder, WHOLE, part_yaml=PART, layers_csv=LAYERS)


def test_includes_arguments_data_lists_and_tables_come_back_from_one_flat_file(tmp_path):
    space = whole_space(tmp_path)
    back = again(tmp_path, space)
    assert back.parameters == space.parameters
    assert back.lists == space.lists
    assert fingerprint(back) == fingerprint(space)


def test_rules_are_written_as_they_were_said(tmp_path):
    text = format_space(whole_space(tmp_path), "flat")
    assert "  - sum(bits * layers.weights) <= 8000\n" in text
    assert "  - chip.cache + other.buffer <= 1.5 MiB\n" in text
    assert "  - devices[device].power <= (300 W) or cap <= 0.7\n" in text
    assert "    a100: {memory: 80 GiB, power: 400 W}\n" in text
    assert "  chip.clock: {ordinal: [200 MHz, 1.2 GHz, 1.65 GHz]}\n" in text


def wordless(space: DesignSpace) -> DesignSpace:
    """The same space, as if it were made in Python: nothing is left of what was said."""
    return replace(
        space,
        conditions={name: Expression("", rule.node) for name, rule in space.conditions.items()},
        constraints=tuple(Expression("", rule.node) for rule in space.constraints),
        data={},
    )


def test_rules_without_words_are_written_out_with_units_and_data(tmp_path):
    space = whole_space(tmp_path)
    back = again(tmp_path, wordless(space))
    assert back.lists == space.lists
    assert fingerprint(back) == fingerprint(space)


RULES = {
    "x <= 4 * y": "x <= 4 * y",
    "x + 64 KiB <= 1 MiB": "x + 64 KiB <= 1 MiB",
    "x / t <= 3 GB/s": "x / t <= 3 GB/s",
    "3 GB/s >= x / t": "3 GB/s >= x / t",
    "x / 2 s <= 1.5 GB/s": "x / 2 <= 1.5 GB",
    "2 * p * t <= 5 J": "2 * p * t <= 5 J",
    "p * t ** 2 >= 1 J s": "p * t ** 2 >= 1 s^2 W",
    "max(x, 64 KiB) % 4 KiB == 0": "max(x, 64 KiB) % 4 KiB == 0",
    "x in [64 KiB, 128 KiB]": "x in [64 KiB, 128 KiB]",
    "0 < t < 3 ms": "0 < t < 3 ms",
    "-t < 1 s": "-t < 1 s",
    "sqrt(x * x) <= 1 MiB": "sqrt(x * x) <= 1 MiB",
    "log2(x / 1 KiB) >= 2": "log2(x / 1 KiB) >= 2",
    "ceil(t / 1 ms) * p <= 4 W": "ceil(t / 1 ms) * p <= 4 W",
    "abs(x - y) <= 96 KiB": "abs(x - y) <= 96 KiB",
    "product(n, 2, t) <= 9 s": "product(n, 2, t) <= 9 s",
    "n * 3 s >= t -> p == 2 W": "n * 3 s >= t -> p == 2 W",
    "1 / t <= 2 kHz": "1 / t <= 2 kHz",
    "n <= 3": "n <= 3",
}
MEASURED = DesignSpace(
    parameters=(
        Ordinal(name="x", values=(65536, 131072), unit="B"),
        Ordinal(name="y", values=(65536, 131072), unit="B"),
        Real(name="t", low=1e-3, high=2.0, unit="s"),
        Ordinal(name="p", values=(1, 2), unit="W"),
        Integer(name="n", low=1, high=8),
    )
)


@pytest.mark.parametrize("said", RULES)
def test_the_units_of_literals_are_found_again(said, tmp_path):
    rule = read(tmp_path, _with(said)).constraints[0]
    space = replace(MEASURED, constraints=(Expression("", rule.node),))
    assert mapping_of(space, "s")["constraints"] == [RULES[said]]
    assert rules(again(tmp_path, space)) == rules(space)


def _with(rule: str) -> str:
    return format_space(MEASURED, "s") + f"constraints: [{rule!r}]\n".replace("[64", "[ 64")


def test_a_fixed_space_is_written_with_what_was_fixed(tmp_path):
    space = whole_space(tmp_path).fixed({"device": "a100", "cap": 0.5, "bits[0]": 8})
    back = again(tmp_path, space)
    assert back.count() == space.count()
    assert fingerprint(back) == fingerprint(space)


def test_a_narrowed_member_of_a_list_stays_narrow(tmp_path):
    space = read(
        tmp_path,
        "space: s\ninclude: {net: {file: part.yaml, narrow: {'bits[1]': [2, 4]}}}\n",
        part_yaml="space: p\nparameters:\n  bits: {each: 3, ordinal: [2, 4, 8]}\n",
    )
    back = again(tmp_path, space)
    assert space.count() == back.count() == 18


def test_a_list_that_was_narrowed_as_a_whole_is_written_narrow(tmp_path):
    space = read(
        tmp_path,
        "space: s\ninclude: {net: {file: part.yaml, narrow: {bits: [2, 4]}}}\n",
        part_yaml="space: p\nparameters:\n  bits: {each: 3, ordinal: [2, 4, 8]}\n",
    )
    assert mapping_of(space, "s")["parameters"] == {"net.bits": {"each": 3, "ordinal": [2, 4]}}
    assert fingerprint(again(tmp_path, space)) == fingerprint(space)


def test_a_rule_may_speak_of_words_that_narrowing_took_away(tmp_path):
    space = read(
        tmp_path,
        "space: s\ninclude: {f: {file: part.yaml, narrow: {kind: [a, b]}}}\n",
        part_yaml=(
            "space: p\nparameters:\n  kind: {choice: [a, b, c]}\n  n: {integer: [1, 4]}\n"
            "  m: {integer: [1, 2], when: kind != 'c'}\n"
            "constraints: [kind == 'c' -> n == 1, \"kind in ['b', 'c'] or n < 3\"]\n"
        ),
    )
    back = again(tmp_path, space)
    assert back.count() == space.count()
    assert fingerprint(back) == fingerprint(space)


def test_a_space_that_is_a_table_with_blanks_keeps_its_designs(tmp_path):
    table = "format,group,tiles\nint8,32,1\nint8,64,2\nfp8,,2\nbf16,,1\n"
    space = read(tmp_path, "space: s\ntable: designs.csv\n", designs_csv=table)
    back = again(tmp_path, space)
    assert space.count() == back.count() == 4
    assert set(next(space.enumerate()).designs()) == set(next(back.enumerate()).designs())


def test_a_lookup_that_was_made_in_python_gets_a_table(tmp_path):
    lookup = Lookup(Name("chip"), (("a", 80.0), ("b", 24.0)), "W", "")
    node = Compare(("<=",), (lookup, Number(50)))
    space = DesignSpace(
        parameters=(Choice(name="chip", values=("a", "b")),), constraints=(Expression("", node),)
    )
    value = mapping_of(space, "s")
    assert value["data"] == {"table": {"a": {"value": "80 W"}, "b": {"value": "24 W"}}}
    assert value["constraints"] == ["table[chip].value <= 50 W"]
    assert fingerprint(again(tmp_path, space)) == fingerprint(space)


SMALL = DesignSpace(
    parameters=(
        Ordinal(name="n", values=(1, 2, 3)),
        Choice(name="on", values=(False, True)),
        Choice(name="chip", values=("a", "b")),
    )
)


def look(values, text="costs[chip].price"):
    return Lookup(Name("chip"), tuple(zip("ab", values, strict=True)), "", text)


MADE = {
    "one value is summed": (
        Compare(("<",), (Call("sum", (Name("n"),)), Number(3))),
        "sum(n, 0) < 3",
    ),
    "one value is the least": (
        Compare(("<",), (Call("min", (Name("n"),)), Number(3))),
        "min(n, n) < 3",
    ),
    "one of nothing": (Logic("or", (Member(Name("n"), ()), Name("on"))), "false or on"),
    "none of nothing": (
        Logic("and", (Member(Name("n"), (), negated=True), Name("on"))),
        "true and on",
    ),
    "a table in a formula": (
        Logic("->", (Listed((Name("n"), Name("chip")), ((1, "a"), (2, "b"))), Name("on"))),
        "n == 1 and chip == 'a' or n == 2 and chip == 'b' -> on",
    ),
    "no row of a table in a formula": (
        Logic("or", (Name("on"), Listed((Name("chip"),), (("a",),), negated=True))),
        "on or not chip == 'a'",
    ),
    "two tables of one name": (
        Compare(("<",), (look((1, 2)), look((3, 4)))),
        "costs[chip].price < costs_2[chip].price",
    ),
    "two columns of one table": (
        Compare(("<",), (look((1, 2)), look((3, 4), "costs[chip].power"))),
        "costs[chip].price < costs[chip].power",
    ),
    "a table of a parameter's name": (
        Compare(("<",), (look((1, 2), "n[chip].price"), Number(2))),
        "n_2[chip].price < 2",
    ),
}


@pytest.mark.parametrize("case", MADE)
def test_a_formula_that_no_text_gave_is_written_as_one_that_means_the_same(tmp_path, case):
    node, text = MADE[case]
    space = replace(SMALL, constraints=(Expression("", node),))
    assert mapping_of(space, "s")["constraints"] == [text]
    back = again(tmp_path, space)
    assert set(next(back.enumerate()).designs()) == set(next(space.enumerate()).designs())


def long_rule(operator: str) -> Expression:
    parts = [Compare(("<=",), (Name("n"), Number(1000 + k))) for k in range(400)]
    return Expression("", Logic(operator, tuple(parts)))


def test_a_rule_too_long_for_one_text_becomes_several(tmp_path):
    space = replace(SMALL, constraints=(long_rule("and"),))
    assert len(mapping_of(space, "s")["constraints"]) == 400
    assert again(tmp_path, space).count() == space.count()


def test_a_rule_too_long_for_any_text_is_told():
    with pytest.raises(SpecError, match="cannot be written as a text"):
        format_space(replace(SMALL, constraints=(long_rule("or"),)), "s")


def test_a_condition_too_long_for_a_text_is_told():
    with pytest.raises(SpecError, match="is too long to be written"):
        format_space(replace(SMALL, conditions={"chip": long_rule("and")}), "s")


def test_a_table_with_blanks_within_a_formula_is_told():
    table = Listed((Name("n"), Name("chip")), ((1, None),))
    rule = Expression("", Logic("or", (Name("on"), table)))
    with pytest.raises(SpecError, match="blank cells"):
        format_space(replace(SMALL, constraints=(rule,)), "s")


def test_a_table_with_blanks_is_a_rule_of_its_own(tmp_path):
    table = Listed((Name("n"), Name("chip")), ((1, None), (2, "a"), (3, "b")))
    space = replace(
        SMALL, conditions={"chip": parse("n > 1")}, constraints=(Expression("t", table),)
    )
    back = again(tmp_path, space)
    assert back.count() == space.count() == 6
    assert fingerprint(back) == fingerprint(space)


WORDS = ("no", "null", "~", "1e5", "0x10", "8 KiB", "it's", 'a "b"', "x: y", "#1", "- a", "é ü", "")


def test_words_that_look_like_something_else_stay_words(tmp_path):
    space = DesignSpace(
        parameters=(
            Choice(name="word", values=WORDS),
            Choice(name="n", values=(True, 2, 0.5, "2")),
        ),
        constraints=(Expression("", Compare(("!=",), (Name("word"), Text("x: y")))),),
    )
    back = again(tmp_path, space)
    assert back.parameters == space.parameters
    assert fingerprint(back) == fingerprint(space)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, unique=True))
def test_any_word_comes_back_as_it_was(words):
    text = yaml_text({"space": "s", "parameters": {"x": {"choice": words}}, "constraints": words})
    value = source.parse_yaml(Path("s.yaml"), text).value
    assert value["parameters"]["x"]["choice"] == value["constraints"] == words


NUMBERS = {
    "bytes": (
        Ordinal(name="x", values=(65536, 3 * 65536, 10**9), unit="B"),
        "[64 KiB, 192 KiB, 1 GB]",
    ),
    "powers of two": (
        Ordinal(name="x", values=tuple(2**e for e in range(16, 24)), unit="B"),
        "pow2(64 KiB .. 8 MiB)",
    ),
    "even steps": (Ordinal(name="x", values=(8, 16, 24, 32, 40)), "range(8 .. 40, 8)"),
    "one that no prefix shortens": (
        Ordinal(name="x", values=(1234567891, 5), unit="Hz"),
        "unit: Hz",
    ),
    "a composed unit": (
        Ordinal(name="x", values=(2, 3), unit="kg*m/s"),
        'unit: "kg*m/s"',
    ),
    "a log scale": (Ordinal(name="x", values=(1, 3, 9), scale="log"), "scale: log"),
    "tiny": (Real(name="x", low=1e-9, high=2.5e-6, unit="s", scale="log"), "[1 ns, 2.5 us]"),
    "whole numbers in steps": (
        Integer(name="x", low=1024, high=4096, step=1024, unit="B"),
        "{integer: [1024, 4096], step: 1024, unit: B}",
    ),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_written_short_and_read_exactly(tmp_path, case):
    parameter, words = NUMBERS[case]
    space = DesignSpace(parameters=(parameter,))
    assert words in format_space(space, "s")
    assert again(tmp_path, space).parameters == (parameter,)


@pytest.mark.slow
def test_a_space_too_large_for_a_file_is_told():
    rows = tuple((i, j) for i in range(400) for j in range(300))
    names = ("alpha", "beta")
    rule = Expression("allow", listed(names, rows))
    parameters = tuple(Integer(name=name, low=0, high=399) for name in names)
    with pytest.raises(SpecError, match="bytes of YAML"):
        format_space(DesignSpace(parameters=parameters, constraints=(rule,)), "s")


def listed(names, rows):
    return Listed(tuple(Name(name) for name in names), rows)


def test_a_name_that_no_file_can_have_is_told():
    with pytest.raises(SpecError, match="'a-b' is not a valid name"):
        format_space(DesignSpace(parameters=(Integer(name="a-b", low=1, high=2),)), "s")


def test_data_that_a_file_would_read_as_something_else_is_told():
    lookup = Lookup(Name("x"), (("8 KiB", 1), ("b", 2)), "", "")
    space = DesignSpace(
        parameters=(Choice(name="x", values=("8 KiB", "b")),),
        constraints=(Expression("", Compare(("<",), (lookup, Number(2)))),),
    )
    with pytest.raises(SpecError, match="a table of a space file cannot hold '8 KiB'"):
        format_space(space, "s")


def test_a_rule_that_has_no_text_is_named():
    rule = Expression("quotes", Compare(("==",), (Name("x"), Text("'\""))))
    space = DesignSpace(parameters=(Choice(name="x", values=("'\"", "a")),), constraints=(rule,))
    with pytest.raises(SpecError, match="both kinds of quotes"):
        format_space(space, "s")


def test_a_rule_that_mixes_units_is_named():
    space = replace(MEASURED, constraints=(parse("x + t <= 3"),))
    with pytest.raises(SpecError, match=r"the rule 'x \+ t <= 3' cannot be written"):
        format_space(space, "s")
