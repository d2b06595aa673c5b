"""Mistakes in rules and domains: each is told, with its line, and none hides another."""

import pytest

SPACE = """
space: s
arguments: {n: 12}
parameters:
  a: {ordinal: [1, 2, 4]}
  b: {integer: [0, 3]}
  f: {choice: [int8, int4]}
  on: {boolean: true}
  x: {real: [0, 1]}
  m: {ordinal: [1 KiB, 2 KiB]}
"""


def with_rules(*rules: str) -> str:
    return SPACE + "constraints:\n" + "".join(f'  - "{rule}"\n' for rule in rules)


# -- all at once ----------------------------------------------------------------------------------


def test_a_mistake_of_any_kind_hides_no_other(told):
    message = told(
        """
space: s
colour: red
include: {gone: gone.yaml}
data: {t: {k: {v: 1}, l: {v: x}}}
parameters:
  a: {ordinal: []}
  b: {ordinal: [1, 2], when: a ==}
  c: {ordinal: [1], hue: 3}
  d: {choice: [null]}
  e: {ordinal: [1, 2]}
constraints:
  - a <
  - z <= e
  - e + 1
  - {e: 1}
  - e <= 20 ms
tables:
  - {allow: [q], rows: [[1]]}
"""
    )
    lines = [line for line in message.splitlines() if "main.yaml" in line.partition(" ")[0]]
    told_at = sorted(int(line.split("main.yaml:")[1].partition(":")[0]) for line in lines)
    assert told_at == [3, 4, 5, 7, 8, 9, 10, 13, 14, 15, 16, 17, 19]


def test_what_mentions_a_broken_name_is_not_told_again(told):
    message = told(
        """
space: s
parameters:
  a: {ordinal: []}
  b: {ordinal: divisors(a), when: a == 1}
  c: {each: a, boolean: true}
constraints: [a <= 3, b <= a, "c[0]"]
tables: [{allow: [a], rows: [[1]]}]
"""
    )
    assert message.count("main.yaml") == 1


def test_an_include_that_cannot_be_read_is_told_once(told):
    text = "space: s\ninclude: {a: gone.yaml}\nparameters: {b: {ordinal: [1]}}\nconstraints: [a.x <= b, a.y.z == b]\n"
    assert told(text).count("main.yaml:") == 1


def test_thousands_of_mistakes_are_not_all_told(told):
    message = told(with_rules(*(f"z{k} <= 1" for k in range(300))))
    assert message.count("main.yaml") == 61
    assert "and 240 more mistakes like these" in message


# -- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{choice: [null]}", "choice[0]: expected a number or a word, found nothing"),
        ("{choice: 3}", "choice: expected a list, found 3"),
        ("{choice: [[1]]}", "choice[0]: expected a number or a word, found a list"),
        ("{ordinal: [true]}", "ordinal[0]: expected a number, or one with a unit, found true"),
        ("{ordinal: {a: 1}}", "ordinal: expected a list or a text, found a mapping"),
        ("{real: [0]}", "real needs at least 2 entries"),
        ("{real: [0, 1, 2]}", "real needs at most 2 entries"),
        ("{real: null}", "this has none"),
        ("3", "x: expected a mapping, found 3"),
        ("[1, 2]", "x: expected a mapping, found a list"),
        ("{boolean: yes}", "boolean: expected true or false, found 'yes'"),
        ("{boolean: false}", "write 'boolean: true'"),
        ("{real: [0, 1], scale: logg}", "scale cannot be 'logg'"),
        ("{ordinal: [1], unit: 3}", "unit: expected a text, found 3"),
        ("{ordinal: [1], when: true}", "when: expected a text, found true"),
        ("{integer: [0, 1], step: [1]}", "step: expected a number, or one with a unit"),
    ],
)
def test_a_wrong_type_is_told_in_plain_words(told, spec, expected):
    message = told(f"space: s\nparameters:\n  x: {spec}\n")
    assert "main.yaml:3" in message
    assert expected in message
    leaks = ("pydantic", "Input should", "dictionary", "instance of", "Spec", " str:", " int:")
    assert not [word for word in leaks if word in message], message


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("parameters: 3", "parameters: expected a mapping, found 3"),
        ("parameters: [a]", "parameters: expected a mapping, found a list"),
        ("constraints: a", "constraints: expected a list, found 'a'"),
        ("constraints: [3]", "a rule is a text, not 3"),
        ("include: {a: 3}", "a: expected a mapping, found 3"),
        ("include: {a: {with: {}}}", "the key 'file' is missing"),
        ("include: {a: {file: x.yaml, wiht: {}}}", "did you mean 'with'"),
        ("arguments: {a: [1]}", "expected a number or a word, found a list"),
        ("extends: [a]", "extends: expected a text, found a list"),
        ("drop: a", "drop: expected a list, found 'a'"),
        ("table: 3", "table: expected a text, found 3"),
        ("'': 3", "there is no key '' here"),
        ("arguments: {'a b': 1}", "'a b' is no name"),
        ("data: {a b: {k: {v: 1}}}", "'a b' is no name"),
        ("include: {not: x.yaml}", "'not' is no name"),
    ],
)
def test_a_section_of_the_wrong_type_is_told_in_plain_words(told, section, expected):
    message = told(f"space: s\n{section}\n")
    assert "main.yaml:2" in message
    assert expected in message


# -- domains --------------------------------------------------------------------------------------


def test_domains_may_be_formulas_of_arguments_and_data(read):
    space = read(
        """
space: s
arguments: {gpus: 12, size: 4 KiB, word: int8}
data: {t: [{v: 3}, {v: 5}]}
parameters:
  a: {ordinal: [gpus, gpus / 2, 1]}
  b: {integer: [0, "gpus - 2"], step: len(t)}
  c: {real: [size / 4, 2 * size]}
  d: {ordinal: pow2(size / 2 .. size * 2)}
  e: {ordinal: "multiples(gpus, gpus .. 3 * gpus)"}
  f: {choice: [word, gpus, other]}
  g: {ordinal: "divisors(gpus * 2)"}
  h: {ordinal: "divisors(a * 2)"}
  i: {ordinal: "range(0 .. t[1].v, t[0].v)"}
  j: {integer: [64 KiB, 256 KiB], step: 64 KiB}
"""
    )
    values = {name: getattr(p, "values", ()) for name, p in space.by_name.items()}
    assert values["a"] == (12, 6, 1)
    assert values["b"] == (0, 2, 4, 6, 8, 10)
    assert (space.by_name["c"].low, space.by_name["c"].high) == (1024, 8192)
    assert values["d"] == (2048, 4096, 8192)
    assert values["e"] == (12, 24, 36)
    assert values["f"] == ("word", "gpus", "other")
    assert values["g"] == (1, 2, 3, 4, 6, 8, 12, 24)
    assert values["h"] == (1, 2, 3, 4, 6, 8, 12, 24)
    assert values["i"] == (0, 3)
    assert values["j"] == (65536, 131072, 196608, 262144)
    assert [rule.text for rule in space.constraints] == ["(a * 2) % h == 0"]


def test_divisors_of_a_formula_are_those_of_each_of_its_values(read):
    text = """
space: s
parameters:
  p: {ordinal: divisors(n * m)}
  n: {ordinal: [2, 3]}
  m: {ordinal: [2, 5]}
"""
    space = read(text)
    assert space.by_name["p"].values == (1, 2, 3, 4, 5, 6, 10, 15)
    assert space.count() == 3 + 4 + 4 + 4


def test_divisors_carry_the_unit_of_what_they_divide(read):
    text = "space: s\nparameters:\n  m: {ordinal: [4 KiB]}\n  d: {ordinal: divisors(m)}\nconstraints: [d >= 1 KiB]\n"
    space = read(text)
    assert space.by_name["d"].unit == "B"
    assert space.count() == 3


def test_the_scale_of_numbers_is_no_restriction(read):
    text = "space: s\nparameters:\n  a: {integer: [1, 8], scale: log}\n  b: {ordinal: [1, 10, 100], scale: log}\n"
    space = read(text)
    assert space.count() == 24
    assert {p.scale for p in space.parameters} == {"log"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{ordinal: [1, 0], scale: log}", "ascending values above zero"),
        ("{integer: [0, 4], scale: log}", "bounds above zero"),
        ("{integer: [1, 4], step: 0}", "'step' is a whole number above zero"),
        ("{integer: [1, 4], step: 1 s}", "'step' is a whole number above zero"),
        ("{integer: [1.5, 4]}", "whole bounds"),
        ("{ordinal: divisors(x)}", "'x' has no list of numbers"),
        ("{ordinal: divisors(q)}", "there is no 'q'"),
        ("{ordinal: divisors(y)}", "the domain of y depends on itself: y needs y"),
        ("{ordinal: divisors(n / 7)}", "is never a whole number above zero"),
        ("{ordinal: divisors(10 ** 15)}", "beyond counting"),
        ("{ordinal: divisors(9 ** 9 ** 9)}", "is never a whole number"),
        ("{ordinal: divisors()}", "found the end"),
        ("{ordinal: pow2(n)}", "is no range"),
        ("{ordinal: pow2(a .. 4)}", "'a' depends on a, but a domain must be constant"),
        ("{ordinal: pow2(q .. 4)}", "'q' is no number"),
        ("{ordinal: pow2(n .. a * n)}", "'a * n' depends on a, but a domain must be constant"),
        ("{ordinal: pow2(-1 .. 4)}", "above zero"),
        ("{ordinal: 'range(1 .. 4, 0)'}", "has no step"),
        ("{ordinal: 'range(4 .. 1)'}", "the range goes backwards"),
        ("{ordinal: 'multiples(1e-300, 0 .. 1e300)'}", "more than 100000 values"),
        ("{ordinal: 9**9**9}", "generates no list"),
        ("{ordinal: [9**9**9]}", "there is no unit '**9**9'"),
        ("{ordinal: [1], unit: 9**9**9}", "there is no unit"),
        ("{real: [-1e308, 1e308]}", "wider than a number can be"),
        ("{real: [0, 1e308 GHz]}", "no finite number"),
        ("{real: [0, n * 1e308]}", "no finite number"),
        ("{choice: [true, 1, true]}", "appears twice"),
        ("{choice: []}", "nothing to choose from"),
    ],
)
def test_a_domain_that_cannot_be_is_told_with_its_line(told, spec, expected):
    message = told(SPACE + f"  y: {spec}\n")
    assert "main.yaml:11" in message
    assert expected in message


# -- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("a / (b - b) <= 1", "divides by zero, whatever the parameters are"),
        ("a % 0 == 1", "divides by zero, whatever the parameters are"),
        ("f == 'int8' -> 1 // 0 > a", "divides by zero, whatever the parameters are"),
        ("a <= 9 ** 9 ** 9", "is too large for a number"),
        ("a <= 1e999", "too large"),
        ("a ** 1000 >= 2 ** 2000", "is too large for a number"),
        ("log2(0 * a) <= 3", "is too large for a number"),
        ("sqrt(-a) <= 3", "has no value"),
        ("a <= 20 ms", "does not go with"),
        ("m <= 20", "does not go with"),
        ("m ** 99 <= 1 TiB^99", "beyond what a number can hold"),
        ("f <= 3", "a word is compared with a number"),
        ("f == 'int9'", "f is never 'int9'"),
        ("f in ['int8', 'int9']", "f is never 'int9'"),
        ("a", "neither true nor false"),
        ("a + 1", "neither true nor false"),
        ("on and a", "neither true nor false"),
        ("on -> a + b", "neither true nor false"),
        ("not a", "neither true nor false"),
        ("len(a) == 1", "len was given no list"),
        ("n[0] == 1", "found '['"),
        ("f.x == 1", "there is no 'f.x'"),
        ("a <= b and", "found the end"),
    ],
)
def test_a_rule_that_cannot_be_told_is_named(told, rule, expected):
    message = told(with_rules("a <= 4", rule))
    assert "main.yaml:13" in message
    assert expected in message
    assert "main.yaml:12" not in message


def test_a_rule_that_divides_by_zero_for_some_designs_is_decided_there(read):
    space = read(
        """
space: s
parameters:
  a: {ordinal: [2, 4]}
  b: {integer: [0, 2]}
constraints: [a % b == 0]
"""
    )
    found = {(d["a"], d["b"]) for batch in space.enumerate() for d in batch}
    assert found == {(2, 1), (2, 2), (4, 1), (4, 2)}


def test_a_truth_is_a_rule(read):
    assert (
        read(
            "space: s\nparameters: {on: {boolean: true}}\nconstraints: [on, 'true', on or on]\n"
        ).count()
        == 1
    )


def test_rules_that_contradict_are_named_together(told):
    message = told(
        """
space: s
parameters:
  a: {ordinal: [1, 2, 3]}
  b: {ordinal: [1, 2, 3]}
constraints:
  - a >= 1
  - a < b
  - b <= 3
  - b < a
"""
    )
    assert "main.yaml:10: no legal design is left once 'b < a' is to hold" in message
    assert "'a < b'" in message
    assert "main.yaml:8" in message
    assert "a >= 1" not in message


def test_a_contradiction_with_reals_is_found(told):
    text = "space: s\nparameters:\n  x: {real: [0, 1]}\nconstraints: [x >= 0, x * x >= 2]\n"
    assert "once 'x * x >= 2' is to hold" in told(text)


def test_a_longer_circle_of_conditions_is_told_with_its_members(told):
    message = told(
        """
space: s
parameters:
  a: {ordinal: [1], when: c == 1}
  b: {ordinal: [1], when: a == 1}
  c: {ordinal: [1], when: b == 1}
"""
    )
    assert "main.yaml:4: the condition of a depends on a itself" in message
    assert "a depends on c on b on a" in message


def test_the_condition_of_each_parameter_has_its_own_line(told):
    text = "space: s\nparameters:\n  a: {ordinal: [1], when: z == 1}\n  b: {ordinal: [1], when: z == 1}\n"
    message = told(text)
    assert "main.yaml:3: there is no 'z'" in message
    assert "main.yaml:4: there is no 'z'" in message


def test_a_rule_of_a_fragment_is_told_in_the_names_of_the_whole(told):
    part = "space: p\nparameters:\n  k: {ordinal: [1]}\nconstraints:\n  - k <= other\n"
    text = "space: s\ninclude: {a: part.yaml}\nparameters: {other: {ordinal: [1]}}\n"
    message = told(text, part=part)
    assert "part.yaml:5: there is no 'a.other' (in 'a.k <= a.other')" in message
