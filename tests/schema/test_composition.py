"""Space files in space files: under names, with arguments, settled, renamed, extended."""

import numpy as np
import pytest

from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.errors import DesignError

CHIP = """
space: chip
parameters:
  rows:   {ordinal: pow2(4 .. 64)}
  cols:   {integer: [1, 64]}
  clock:  {real: [200 MHz, 1.6 GHz], scale: log}
  buffer: {ordinal: pow2(1 KiB .. 64 KiB)}
  flow:   {choice: [os, ws, is]}
  depth:  {ordinal: [1, 2, 4], when: flow == 'ws'}
constraints:
  - rows <= cols
"""

PLAN = """
space: plan
arguments: {gpus: 8, heads: null, fabric: ring, memory: 80 GiB}
parameters:
  tp: {ordinal: divisors(gpus)}
  pp: {ordinal: pow2(1 .. gpus)}
  dp: {ordinal: divisors(gpus)}
  kind: {choice: [fabric, none]}
  cache: {real: [0 B, memory / 2]}
constraints:
  - tp * pp * dp == gpus
  - heads % tp == 0
"""


def include(**settled: str) -> str:
    inner = ", ".join(["file: chip.yaml", *(f"{key}: {text}" for key, text in settled.items())])
    return f"space: s\ninclude:\n  chip: {{{inner}}}\n"


# -- arguments ------------------------------------------------------------------------------------


def test_a_fragment_takes_its_arguments_from_the_include(read):
    text = "space: s\ninclude:\n  a: {file: plan.yaml, with: {gpus: 64, heads: 32}}\n"
    space = read(text, plan=PLAN)
    assert space.by_name["a.tp"].values == (1, 2, 4, 8, 16, 32, 64)
    assert space.by_name["a.kind"].values == ("fabric", "none")
    assert space.by_name["a.cache"].high == 40 * 2**30
    assert [rule.text for rule in space.constraints] == [
        "a.tp * a.pp * a.dp == 64",
        "32 % a.tp == 0",
    ]


def test_one_fragment_under_two_names_has_two_arguments(read):
    text = """
space: s
arguments: {n: 16}
include:
  train: {file: plan.yaml, with: {gpus: n, heads: 4}}
  serve: {file: plan.yaml, with: {heads: 1}}
constraints: [serve.tp <= train.tp]
"""
    space = read(text, plan=PLAN)
    assert space.by_name["train.pp"].values == (1, 2, 4, 8, 16)
    assert space.by_name["serve.pp"].values == (1, 2, 4, 8)


def test_a_missing_argument_is_told_where_it_should_be_given(told):
    message = told("space: s\ninclude:\n  a: plan.yaml\n", plan=PLAN)
    assert "main.yaml:3: " in message
    assert "needs 'heads'" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{heads: 2, gpuz: 8}", "there is no argument 'gpuz'"),
        ("{heads: 2, gpus: many}", "is a bare number, and 'many' is a word"),
        ("{heads: 2, memory: 3 s}", "is a quantity in GiB, and '3 s' is a quantity in s"),
    ],
)
def test_an_argument_that_does_not_fit_is_told_with_its_line(told, given, expected):
    message = told(f"space: s\ninclude:\n  a: {{file: plan.yaml, with: {given}}}\n", plan=PLAN)
    assert "main.yaml:3: " in message
    assert expected in message


def test_a_file_with_an_argument_that_nobody_gives_is_told(told):
    message = told(PLAN)
    assert "main.yaml:3: the argument 'heads' has no value here" in message


# -- fix, narrow, rename --------------------------------------------------------------------------


def test_a_fixed_parameter_stays_with_one_value(read):
    fixed = "{rows: 16, cols: 20, clock: 1 GHz, buffer: 4 KiB, flow: ws}"
    space = read(include(fix=fixed), chip=CHIP)
    assert space.by_name["chip.rows"] == Ordinal(name="chip.rows", values=(16,))
    assert space.by_name["chip.cols"] == Integer(name="chip.cols", low=20, high=20)
    clock = Real(name="chip.clock", low=1e9, high=1e9, unit="Hz", scale="log")
    assert space.by_name["chip.clock"] == clock
    assert space.by_name["chip.buffer"].values == (4096,)
    assert space.by_name["chip.flow"] == Choice(name="chip.flow", values=("ws",))
    drawn = space.sample(20, np.random.default_rng(0)).designs()
    assert {design["chip.clock"] for design in drawn} == {1e9}


def test_a_fixed_parameter_is_still_absent_where_it_is_inactive(read):
    space = read(include(fix="{depth: 2, clock: 1 GHz}"), chip=CHIP)
    design = {"chip.rows": 4, "chip.cols": 8, "chip.clock": 1e9, "chip.buffer": 1024}
    space.check({**design, "chip.flow": "os"})
    space.check({**design, "chip.flow": "ws", "chip.depth": 2})
    with pytest.raises(DesignError, match="depth cannot be 4"):
        space.check({**design, "chip.flow": "ws", "chip.depth": 4})


def test_a_narrowed_parameter_has_a_part_of_its_domain(read):
    narrow = """{
      rows: [16, 8], cols: {integer: [10, 30], step: 10}, clock: {real: [400 MHz, 1 GHz]},
      buffer: {ordinal: pow2(2 KiB .. 8 KiB)}, flow: [is, ws], depth: {integer: [1, 2]}}"""
    space = read(include(narrow=narrow), chip=CHIP)
    assert space.by_name["chip.rows"].values == (8, 16)
    assert space.by_name["chip.cols"] == Integer(name="chip.cols", low=10, high=30, step=10)
    clock = space.by_name["chip.clock"]
    assert (clock.low, clock.high, clock.scale) == (4e8, 1e9, "log")
    assert space.by_name["chip.buffer"].values == (2048, 4096, 8192)
    assert space.by_name["chip.flow"].values == ("ws", "is")
    assert space.by_name["chip.depth"].values == (1, 2)


def test_a_range_narrowed_to_some_values_has_only_those(read):
    space = read(include(narrow="{clock: [1 GHz, 400 MHz], cols: [5, 7, 64]}"), chip=CHIP)
    assert space.by_name["chip.clock"].values == (4e8, 1e9)
    assert space.by_name["chip.cols"].values == (5, 7, 64)


@pytest.mark.parametrize(
    ("settled", "expected"),
    [
        ({"fix": "{rows: 12}"}, ["chip.rows cannot be 12", "legal: 4, 8, 16, 32, 64"]),
        ({"fix": "{rowz: 8}"}, ["has no parameter 'rowz'", "did you mean 'rows'"]),
        ({"fix": "{buffer: 4 ms}"}, ["'4 ms' is no quantity in B"]),
        ({"fix": "{flow: osx}"}, ["chip.flow cannot be 'osx'", "did you mean 'os'"]),
        ({"fix": "{clock: 3 GHz}"}, ["chip.clock cannot be '3 GHz'", "2e+08 .. 1.6e+09 Hz"]),
        ({"narrow": "{rows: [8, 12]}"}, ["chip.rows cannot be 12"]),
        ({"narrow": "{rows: {integer: [8, 10]}}"}, ["chip.rows cannot be 9"]),
        ({"narrow": "{rows: {real: [8, 10]}}"}, ["chip.rows has listed values"]),
        ({"narrow": "{cols: {integer: [1, 65]}}"}, ["chip.cols cannot be 65", "1 .. 64"]),
        ({"narrow": "{clock: {real: [100 MHz, 1 GHz]}}"}, ["chip.clock cannot be 100000000.0"]),
        ({"narrow": "{rows: []}"}, ["is empty"]),
        ({"narrow": "{rows: {}}"}, ["a list of values or one domain; this has neither"]),
        ({"narrow": "{rows: {ordinal: divisors(k)}}"}, ["'k' depends on parameters"]),
        ({"rename": "{rowz: r}"}, ["there is no 'rowz' to rename", "did you mean 'rows'"]),
        ({"rename": "{rows: and}"}, ["'and' is no name"]),
        ({"rename": "{rows: r, cols: r}"}, ["two names are changed to 'r'"]),
        ({"rename": "{rows: cols}"}, ["'chip.cols' is declared twice", "first at", "chip.yaml:4"]),
    ],
)
def test_what_cannot_be_settled_is_told_with_its_line(told, settled, expected):
    message = told(include(**settled) + "parameters: {k: {ordinal: [4, 8]}}\n", chip=CHIP)
    assert "main.yaml:3" in message
    assert not [words for words in expected if words not in message], message


def test_a_renamed_parameter_has_its_new_name_everywhere(read):
    text = include(rename="{rows: height, flow: order}", fix="{rows: 8, clock: 1 GHz}")
    space = read(text + "constraints: [chip.height < chip.cols]\n", chip=CHIP)
    assert "chip.rows" not in space.by_name
    assert space.by_name["chip.height"].values == (8,)
    assert space.conditions["chip.depth"].names == {"chip.order"}
    assert space.constraints[0].text == "chip.height <= chip.cols"


def test_what_is_within_an_include_of_an_include_is_settled_by_its_path(read):
    board = """
space: board
include: {chip: {file: chip.yaml, rename: {rows: height}, fix: {clock: 1 GHz}}}
"""
    text = """
space: s
include:
  left:  {file: board.yaml, fix: {chip.height: 16}, narrow: {chip.flow: [os, is]}}
  right: {file: board.yaml, rename: {chip.height: tall}}
"""
    space = read(text, board=board, chip=CHIP)
    assert space.by_name["left.chip.height"].values == (16,)
    assert space.by_name["left.chip.flow"].values == ("os", "is")
    assert space.by_name["right.tall"].values == (4, 8, 16, 32, 64)
    assert "right.tall <= right.chip.cols" in [rule.text for rule in space.constraints]


def test_a_rule_may_mention_a_word_that_was_narrowed_away(read):
    space = read(include(narrow="{flow: [os]}", fix="{clock: 1 GHz}"), chip=CHIP)
    assert "chip.depth" not in space.sample(1, np.random.default_rng(0)).design(0)


# -- clashes and circles --------------------------------------------------------------------------


def test_a_name_stands_for_one_thing_in_a_file(told):
    message = told(
        """
space: s
arguments: {n: 3}
data: {n: [{a: 1}]}
parameters:
  n: {ordinal: [1, 2]}
"""
    )
    assert "main.yaml:4: 'n' is declared twice\n  hint: first at" in message
    assert "main.yaml:6: 'n' is declared twice\n  hint: first at" in message


def test_a_longer_circle_of_includes_names_both_places(told):
    message = told(
        "space: s\ninclude:\n  a: one.yaml\n",
        one="space: o\ninclude:\n  b: two.yaml\n",
        two="space: t\n\ninclude:\n  c: one.yaml\n",
    )
    assert "two.yaml:4: " in message
    assert "one.yaml includes itself" in message
    assert "first at" in message
    assert "main.yaml:3" not in message.split("first at")[0]


def test_includes_that_double_with_every_level_are_refused(told):
    files = {
        f"level{k}": f"space: s\ninclude: {{a: level{k + 1}.yaml, b: level{k + 1}.yaml}}\n"
        for k in range(12)
    }
    leaf = "space: s\nparameters: {x: {ordinal: [1, 2]}}\n"
    message = told("space: s\ninclude: {a: level0.yaml}\n", **files, level12=leaf)
    assert "more than 500 files are included" in message


def test_a_mistake_of_a_fragment_is_told_once_however_often_it_is_included(told):
    bad = "space: b\nparameters:\n  x: {ordinal: []}\n"
    message = told("space: s\ninclude: {a: bad.yaml, b: bad.yaml}\n", bad=bad)
    assert message.count("the domain is empty") == 1


# -- extends --------------------------------------------------------------------------------------

BASE = """
space: base
parameters:
  a: {ordinal: [1, 2]}
  f: {choice: [int8, int4]}
  g: {ordinal: [16, 32], when: f == 'int4'}
constraints:
  - a <= 2
  - f == 'int8' -> a  == 1
"""


def test_an_extension_replaces_adds_and_drops(read):
    space = read(
        """
space: more
extends: base.yaml
drop: ["f == 'int8' -> a == 1", g]
parameters:
  a: {ordinal: [1, 2, 3]}
  b: {boolean: true}
constraints: [a + b <= 3]
""",
        base=BASE,
    )
    assert [p.name for p in space.parameters] == ["a", "f", "b"]
    assert [rule.text for rule in space.constraints] == ["a <= 2", "a + b <= 3"]
    assert space.count() == 2 * 2 * 2


def test_an_extension_may_leave_out_a_value_that_a_rule_mentions(read):
    text = "space: less\nextends: base.yaml\nparameters:\n  f: {choice: [int8, fp8]}\n"
    assert read(text, base=BASE).count() == 1 + 2


def test_a_file_that_an_extension_names_is_beside_its_own(read, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "leaf.yaml").write_text("space: l\nparameters: {x: {ordinal: [1]}}\n")
    (tmp_path / "deep" / "base.yaml").write_text("space: b\ninclude: {l: leaf.yaml}\n")
    space = read("space: s\nextends: deep/base.yaml\n")
    assert [p.name for p in space.parameters] == ["l.x"]


def test_a_rule_over_what_was_dropped_is_told_with_both_places(told):
    message = told("space: s\nextends: base.yaml\ndrop: [f]\n", base=BASE)
    assert "base.yaml:6: there is no 'f'" in message
    assert "base.yaml:9: there is no 'f'" in message
    assert "it was dropped at" in message
    assert "main.yaml:3: drop the rule too" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("extends: base.yaml\ndrop: [h]", ["main.yaml:3", "has no 'h' to drop"]),
        ("drop: [a]\nparameters: {a: {ordinal: [1]}}", ["main.yaml:2", "nothing to drop from"]),
        ("extends: main.yaml", ["main.yaml:2", "extends itself"]),
        ("extends: bsae.yaml", ["main.yaml:2", "there is no file", "did you mean 'base.yaml'"]),
        ("extends: ring.yaml", ["ring.yaml:2", "main.yaml extends itself", "main.yaml:2"]),
    ],
)
def test_an_extension_that_cannot_be_is_told_with_its_line(told, text, expected):
    ring = "space: r\nextends: main.yaml\n"
    message = told(f"space: s\n{text}\n", base=BASE, ring=ring)
    assert not [words for words in expected if words not in message], message


def test_a_mistake_in_an_extended_file_is_told_there(told):
    message = told("space: s\nextends: base.yaml\n", base=BASE.replace("a <= 2", "a <= "))
    assert "base.yaml:8" in message


# -- library --------------------------------------------------------------------------------------


def test_a_fragment_of_the_library_is_found_from_anywhere(read):
    text = "space: s\ninclude:\n  chip: {file: 'library:spaces/accelerators/systolic.yaml', fix: {rows: 8, cols: 8}}\n"
    space = read(text)
    assert space.by_name["chip.rows"].values == (8,)
    assert space.places["chip.rows"].endswith("spaces/accelerators/systolic.yaml:7")
