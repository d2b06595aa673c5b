"""What people who met the language for the first time tripped over, and what they are told."""

import numpy as np
import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import SpecError
from dse.schema.yaml.files import library, resolve_path


def of(parameters, *rules, more=""):
    listed = "".join(f"  - '{rule}'\n" for rule in rules)
    constraints = f"constraints:\n{listed}" if rules else ""
    return f"space: s\n{more}parameters:\n{parameters}{constraints}"


LARGE = "  params: {integer: [1, 70000000000], step: 1000000}\n  n: {integer: [1, 8]}\n"

# -- whole numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameter",
    [
        "x: {ordinal: [1, 9007199254740992]}",
        "x: {integer: [9007199254740990, 9007199254740993]}",
        "x: {choice: [9007199254740993, 2]}",
    ],
)
def test_a_value_that_would_be_rounded_is_refused(told, parameter):
    message = told(of(f"  {parameter}\n"))
    assert "whole numbers are exact up to 2**53" in message
    assert "main.yaml:3" in message
    assert "1e17" in message


def test_a_literal_that_would_be_rounded_is_refused(told):
    assert "exact up to 2**53" in told(of("  n: {integer: [1, 8]}\n", "n <= 100000000000000000"))


def test_a_rounded_number_may_be_as_large_as_it_likes(read):
    space = read(of("  n: {ordinal: [1e17, 2e17]}\n  m: {integer: [1, 8]}\n", "m * n <= 4e17"))
    assert space.count() == 6


@pytest.mark.parametrize(
    "rule",
    [
        "params * 1000003 % n == 0",
        "params * 1000003 // n <= 5",
        "params * 1000003 == params * 999983",
        "params * 1000003 != params * 999983",
        "params * 1000003 in [params * 999983]",
        "is_pow2(params * 1000003)",
        "params * 1000003 - params * 999983 == n",
    ],
)
def test_a_rule_that_tells_rounded_numbers_apart_is_refused(told, rule):
    message = told(of(LARGE, rule))
    assert "'params * 1000003' can be as large as 7e16" in message
    assert rule in message
    assert "main.yaml:6" in message


def test_a_sum_over_a_list_can_be_too_large_to_be_divided(told):
    text = of("  x: {each: 3, ordinal: [1, 4000000000000000]}\n", "sum(x) % 7 == 0")
    assert "can be as large as 1e16" in told(text)


def test_a_power_can_be_too_large_to_be_divided(told):
    assert "can be as large as 4e18" in told(of("  k: {integer: [0, 39]}\n", "3 ** k % 7 == 3"))


def test_a_large_product_may_equal_a_small_number(read):
    domain = "{ordinal: pow2(1 .. 65536)}"
    text = of("".join(f"  {n}: {domain}\n" for n in ("tp", "pp", "dp", "ep")), "tp*pp*dp*ep == 64")
    assert read(text).count() == 84


def test_a_large_product_may_be_bounded(read):
    assert read(of(LARGE, "params * 1000003 <= 5e16")).count() is not None


# -- tables -------------------------------------------------------------------------------------


def test_a_column_can_be_a_member_of_a_list(read):
    space = read(
        "space: s\ntable: rows.csv\nconstraints: [sum(bits) <= 10, 'bits[0] >= 4']\n",
        rows_csv="bits[0],bits[1],memory [KiB]\n4,4,1\n8,8,2\n2,4,1\n4,8,1\n",
    )
    assert [p.name for p in space.parameters] == ["bits[0]", "bits[1]", "memory"]
    assert space.by_name["memory"].values == (1024, 2048)
    assert space.count() == 1


def test_a_table_of_combinations_can_have_members_of_a_list(read):
    text = of("  bits: {each: 2, ordinal: [4, 8]}\n")
    text += "tables: [{allow: ['bits[0]', 'bits[1]'], file: rows.csv}]\n"
    assert read(text, rows_csv="bits[0],bits[1]\n4,8\n8,8\n").count() == 2


def test_designs_as_csv_are_a_space(tmp_path):
    (tmp_path / "a.yaml").write_text(
        of("  bits: {each: 2, ordinal: [4, 8]}\n  s: {subset: [a, b], size: 1}\n")
    )
    command = ["space", "enumerate", str(tmp_path / "a.yaml"), "--format", "csv"]
    (tmp_path / "rows.csv").write_text(CliRunner().invoke(app, command).stdout)
    (tmp_path / "b.yaml").write_text(
        "space: b\ntable: rows.csv\nconstraints: [\"'a' in s\", all(bits == 8)]\n"
    )
    assert "1 legal design" in CliRunner().invoke(app, ["check", str(tmp_path / "b.yaml")]).stdout


def test_a_unit_without_a_space_is_told(told):
    message = told(
        of("  n: {integer: [1, 8]}\n", more="data: {d: d.csv}\n"), d_csv="k,m[GiB]\na,8\n"
    )
    assert "'m [GiB]'" in message


def test_a_key_that_repeats_is_told_with_both_lines(told):
    message = told(
        of("  chip: {choice: [a, b]}\n", "d[chip].m <= 8", more="data: {d: d.csv}\n"),
        d_csv="k,m\na,8\nb,4\na,2\n",
    )
    assert "it repeats 'a'" in message
    assert "d.csv:2" in message
    assert "d.csv:4" in message


# -- arguments ----------------------------------------------------------------------------------


def test_a_word_stands_for_itself_also_where_an_argument_has_its_name(read):
    space = read(
        of(
            "  o: {permutation: [m, n, k]}\n  c: {choice: [n, x]}\n  s: {subset: [n, m]}\n"
            "  d: {ordinal: divisors(n)}\n  l: {each: n, integer: [1, n]}\n",
            more="arguments: {n: 2}\n",
        )
        + "tables: [{allow: [c, d], rows: [[n, n]]}]\n"
    )
    assert space.by_name["o[0]"].values == ("m", "n", "k")
    assert space.by_name["c"].values == ("n", "x")
    assert "s[n]" in space.by_name
    assert space.by_name["l[1]"].high == 2
    assert space.count() == 6 * 4 * 4


INNER = (
    "space: i\nparameters:\n  o: {permutation: [k, m, n]}\n  s: {subset: [a, b]}\n"
    "  l: {each: 2, integer: [1, 9]}\n  x: {simplex: [p, q], step: 0.25}\n"
)


def test_a_list_is_fixed_as_a_whole(read):
    settled = "{o: [n, k, m], s: [a], l: [3, 4], x: [0.25, 0.75]}"
    space = read(f"space: s\ninclude:\n  i: {{file: inner.yaml, fix: {settled}}}\n", inner=INNER)
    assert space.count() == 1
    assert dict(next(space.enumerate()).design(0)) == {
        "i.o[0]": "n",
        "i.o[1]": "k",
        "i.o[2]": "m",
        "i.s[a]": True,
        "i.s[b]": False,
        "i.l[0]": 3,
        "i.l[1]": 4,
        "i.x[p]": 0.25,
        "i.x[q]": 0.75,
    }


def test_shares_without_steps_are_fixed_together(read):
    inner = "space: i\nparameters:\n  x: {simplex: [p, q]}\n"
    text = "space: s\ninclude:\n  i: {file: inner.yaml, fix: {x: [0.25, 0.75]}}\n"
    space = read(text, inner=inner)
    design = space.sample(3, np.random.default_rng(0)).design(2)
    assert dict(design) == {"i.x[p]": 0.25, "i.x[q]": 0.75}


@pytest.mark.parametrize(
    ("settled", "problem"),
    [
        ("{x: [0.25, 0.5]}", "add up to 0.75"),
        ("{l: [3]}", "has 2 values, and this gives 1"),
        ("{o: [n, n, m]}", "the item 'n' appears twice"),
        ("{s: [c]}", "no item 'c'"),
        ("{l: [3, 10]}", "cannot be 10"),
    ],
)
def test_a_list_that_does_not_fit_is_told_where_it_is_fixed(told, settled, problem):
    text = f"space: s\ninclude:\n  i:\n    file: inner.yaml\n    fix: {settled}\n"
    message = told(text, inner=INNER)
    assert problem in message
    assert "main.yaml:5" in message


NEEDS = "space: i\narguments: {n: DEFAULT}\nparameters:\n  l: {each: n, integer: [1, 2]}\n"


@pytest.mark.parametrize("default", ["4", "~"])
def test_a_wrong_argument_is_told_where_it_is_given(told, default):
    text = "space: s\ninclude:\n  i:\n    file: inner.yaml\n    with: {n: foo}\n"
    message = told(text, inner=NEEDS.replace("DEFAULT", default))
    assert "main.yaml:5" in message
    assert "'foo'" in message


def test_an_argument_can_be_given_by_a_formula(read):
    text = "space: s\narguments: {k: 2}\ninclude: {i: {file: inner.yaml, with: {n: k * 2}}}\n"
    assert read(text, inner=NEEDS.replace("DEFAULT", "1")).count() == 16


# -- messages -----------------------------------------------------------------------------------


def test_an_equation_of_reals_is_answered_with_a_simplex(told):
    message = told(of("  x: {real: [0, 1]}\n  y: {real: [0, 1]}\n", "x + y == 1"))
    assert "no legal design was found" in message
    assert "simplex" in message
    assert "inequality" in message


@pytest.mark.parametrize(
    ("domain", "rule", "hint"),
    [
        ("[1, 2, a]", "x == 1", "x has words such as 'a' among its numbers"),
        ("[1 GB, 2 GB]", "x <= 1 GB", "'ordinal: [1 GB, 2 GB]'"),
        ("[1 GB, 2 GB]", "x == 1 GB", "'ordinal: [1 GB, 2 GB]'"),
    ],
)
def test_a_choice_of_words_is_told_where_a_number_was_meant(told, domain, rule, hint):
    assert hint in told(of(f"  x: {{choice: {domain}}}\n", rule))


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("x = 3", "'=='"),
        ("x == 3 && x == 4", "'and'"),
        ("x == 3 || x == 4", "'or'"),
        ("x ≤ 3", "'<='"),
        ("!x", "'not'"),
    ],
)
def test_signs_of_other_languages_are_answered_with_ours(told, rule, hint):
    assert f"write {hint}" in told(of("  x: {integer: [1, 8]}\n", rule))


def test_sizes_needs_a_fixed_number_of_parts(told):
    text = of("  stages: {partition: 12, parts: [2, 4]}\n", "max(sizes(stages)) <= 5")
    assert "needs a partition into a fixed number of parts" in told(text)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "spaces/../../x.yaml"])
def test_the_library_is_not_left(tmp_path, name):
    with pytest.raises(SpecError, match="leaves the library"):
        resolve_path(f"library:{name}", tmp_path / "main.yaml")


def test_a_file_outside_the_library_is_told_where_it_is_included(told):
    message = told("space: s\ninclude:\n  i: library:../x.yaml\n")
    assert "main.yaml:3: 'library:../x.yaml' leaves the library" in message


def test_a_file_of_the_library_is_found(tmp_path):
    found = resolve_path("library:studies/../spaces/README.md", tmp_path / "main.yaml")
    assert found.resolve() == library() / "spaces/README.md"


def test_one_parameter_is_counted_as_one(tmp_path):
    (tmp_path / "a.yaml").write_text(of("  x: {integer: [1, 8]}\n"))
    told = CliRunner().invoke(app, ["check", str(tmp_path / "a.yaml")]).stdout
    assert "1 parameter, 8 legal designs" in told
