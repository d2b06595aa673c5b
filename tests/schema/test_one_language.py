"""Rules, expressions and objectives are one language: the table of docs/language.md says all of it."""

import re
from pathlib import Path

import pytest

from dse.core.batch import Column
from dse.core.expressions.parser import ARGUMENTS
from dse.errors import SpecErrors
from dse.schema.space.space_loader import space_of
from dse.schema.study.plan import Plan, plan_of
from dse.schema.yaml.files import Files

PAGE = (Path(__file__).parents[2] / "docs/language.md").read_text()
SECTION = PAGE.partition("## One language")[2].partition("\n## ")[0]
SPACE = re.search(r"```yaml\n(.*?)```", SECTION, re.DOTALL).group(1)
ROWS = re.findall(r"^\| .* \| `([^`]+)` \| (\S+) \|$", SECTION, re.MULTILINE)
VALUES = {"true": 1.0, "false": 0.0}
OPERATORS = [
    "->",
    "or",
    "and",
    "not",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "not in",
    "is absent",
]
OPERATORS += ["is not absent", "+", "-", "*", "/", "//", "%", "**", "true", "false", "@", "[", "."]


def value_of(told: str) -> float:
    return VALUES[told] if told in VALUES else float(told)


def as_number(formula: str, told: str) -> str:
    return f"({formula}) + 0" if told in VALUES else formula


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Plan:
    folder = tmp_path_factory.mktemp("one")
    (folder / "one_design.yaml").write_text(SPACE)
    metrics = "".join(f'      m{n}: {{formula: "{one}"}}\n' for n, (one, _) in enumerate(ROWS))
    goals = "".join(f'  - minimize: "{as_number(*row)}"\n' for row in ROWS)
    path = folder / "study.yaml"
    path.write_text(
        "study: s\nspace: one_design.yaml\nevaluators:\n  e:\n    use: expression\n    metrics:\n"
        f"{metrics}objectives:\n{goals}"
    )
    return plan_of(path)


def test_the_table_has_every_function_and_every_operator():
    text = " ".join(formula for formula, _ in ROWS)
    called = set(re.findall(r"(\w+)\(", text))
    assert set(ARGUMENTS) - called == set()
    words = OPERATORS[:]
    words.remove("@")  # a metric under a scenario
    assert [one for one in words if one not in text] == []


@pytest.mark.parametrize(("formula", "value"), ROWS)
def test_a_row_has_its_value_in_a_rule(tmp_path, formula, value):
    holds = formula if value == "true" else f"({formula}) == {value}"
    for rule, legal in ((holds, 1), (f"not ({holds})", 0)):
        path = tmp_path / "space.yaml"
        path.write_text(SPACE.replace("constraints:\n", f'constraints:\n  - "{rule}"\n'))
        assert space_of(path, Files(), may_be_empty=True).count() == legal


def test_each_row_has_its_value_in_an_expression_and_in_an_objective(told):
    (batch,) = told.problem.space.enumerate()
    metrics = told.pipeline.known(batch).columns
    expressions = [metrics[f"e.m{n}"][0] for n in range(len(ROWS))]
    columns = dict(batch.columns) | {name: Column(one) for name, one in metrics.items()}
    objectives = [one.values(columns, 1)[0] * one.scale for one in told.problem.objectives]
    wanted = pytest.approx([value_of(value) for _, value in ROWS])
    assert expressions == wanted
    assert objectives == wanted


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("count(words == 'int9')", "is never 'int9'"),
        ("words[0] * 2", "a word stands where a number or a truth is needed"),
        ("bits * 2", "bits is a list of 3, but one value is needed"),
        ("layers[0].weigths", "layers has no field 'weigths'"),
        ("devices[format].memory / 1 B", "has no value where format is 'int8'"),
        ("tp + 3 s", "does not go with"),
    ],
)
def test_a_mistake_is_one_in_a_rule_an_expression_and_an_objective(tmp_path, formula, problem):
    rule = f"({formula}) == 1"
    (tmp_path / "space.yaml").write_text(SPACE + f'  - "{rule}"\n')
    with pytest.raises(SpecErrors) as of_rule:
        space_of(tmp_path / "space.yaml", Files())
    (tmp_path / "one_design.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: one_design.yaml\nevaluators:\n  e:\n    use: expression\n"
        f'    metrics: {{m: {{formula: "{formula}"}}}}\nobjectives:\n  - minimize: "{formula}"\n'
    )
    with pytest.raises(SpecErrors) as of_study:
        plan_of(tmp_path / "study.yaml")
    assert problem in str(of_rule.value)
    places = [one.where.rpartition(":")[2] for one in of_study.value.errors]
    assert places == ["6", "8"]
    assert all(problem in one.problem for one in of_study.value.errors)


FRAGMENT = """
space: net
data: {layers: [{weights: 3}, {weights: 5}]}
parameters:
  bits: {each: layers, ordinal: [2, 4]}
  parts: {subset: [a, b]}
"""


def test_an_expression_finds_lists_and_data_of_an_include_by_their_last_words(tmp_path):
    (tmp_path / "net.yaml").write_text(FRAGMENT)
    (tmp_path / "space.yaml").write_text("space: s\ninclude: {net: net.yaml}\n")
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: space.yaml\nevaluators:\n  e: {use: expression, metrics: {m: {formula: "
        '"sum(bits * layers.weights) + count(parts)"}}}\nobjectives: [{minimize: e.m}]\n'
    )
    plan = plan_of(tmp_path / "study.yaml")
    (batch,) = plan.problem.space.enumerate()
    found = plan.pipeline.known(batch).columns["e.m"]
    assert sorted(set(found.tolist())) == sorted(
        {3.0 * a + 5 * b + c for a in (2, 4) for b in (2, 4) for c in (0, 1, 2)}
    )


def test_an_expression_over_a_bound_list_reads_its_members(tmp_path):
    (tmp_path / "net.yaml").write_text(FRAGMENT)
    (tmp_path / "space.yaml").write_text("space: s\ninclude: {net: net.yaml, side: net.yaml}\n")
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: space.yaml\nevaluators:\n"
        '  e: {use: expression, bind: {bits: side.bits}, metrics: {m: {formula: "sum(bits)"}}}\n'
        "objectives: [{minimize: e.m}]\nunread: [net, side.parts]\n"
    )
    problem = plan_of(tmp_path / "study.yaml").problem
    assert problem.sources["e.m"].reads == {"side.bits[0]", "side.bits[1]"}
