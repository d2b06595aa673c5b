"""ConfigSpace's JSON: what the library itself writes is read, and it reads what is written."""

import io
import itertools
import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Listed, Name
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.errors import DesignError, SpecError
from dse.interop.configspace import configspace
from dse.testing.strategies import spaces

cs = pytest.importorskip("ConfigSpace")


def written(theirs) -> str:
    stream = io.StringIO()
    theirs.to_json(stream)
    return stream.getvalue()


def imported(theirs) -> configspace.SpaceImport:
    return configspace.read_configspace(written(theirs))


def exported(space: DesignSpace, **options):
    return cs.ConfigurationSpace.from_json(
        io.StringIO(configspace.write(space, "ours", **options).text)
    )


def allows(theirs, values) -> bool:
    """Whether the library takes the values for a legal configuration."""
    try:
        cs.Configuration(theirs, values=dict(values)).check_valid_configuration()
    except (ValueError, cs.exceptions.ForbiddenValueError):
        return False
    return True


def combinations(axes):
    """Every choice of a value, or of none, on each axis."""
    rows = itertools.product(*([(name, v) for v in (None, *values)] for name, values in axes))
    return [{name: v for name, v in row if v is not None} for row in rows]


def legal_ones(theirs, space: DesignSpace) -> tuple[set[Design], set[Design]]:
    """The designs that the library allows, and those that the space allows."""
    all_of_them = combinations((p.name, p.values) for p in space.parameters)
    allowed = {Design(values) for values in all_of_them if allows(theirs, values)}
    return allowed, {Design(values) for values in all_of_them if values in space}


PLAN = DesignSpace(
    parameters=(
        Ordinal(name="tp", values=(1, 2, 4, 8)),
        Ordinal(name="pp", values=(1, 2, 4, 8)),
        Ordinal(name="dp", values=(1, 2, 4, 8, 16, 32, 64)),
        Choice(name="format", values=("int8", "fp8", "bf16")),
        Ordinal(name="group", values=(32, 64, 128), unit="B"),
        Real(name="clock", low=2e8, high=1.6e9, unit="Hz", scale="log"),
        Integer(name="batch", low=1, high=100),
        Choice(name="fused", values=(False, True)),
        Integer(name="tiles", low=2, high=20, step=3),
        Real(name="share", low=0, high=1),
        Integer(name="fixed", low=7, high=7),
    ),
    conditions={
        "group": parse("format == 'int8' or format == 'fp8' and fused"),
        "tiles": parse("batch > 30 and group is absent"),
        "share": parse("clock > 1000000000 and fused"),
    },
    constraints=(
        parse("tp * pp * dp == 64"),
        parse("batch >= 5"),
        parse("fused -> batch < 50"),
        parse("group != 64 or tp > 2"),
        parse("format == 'bf16' -> clock >= 500000000"),
        parse("tiles is absent or tiles % 4 == 0"),
        parse("not (tp == pp)"),
        parse("tp <= dp < 64"),
    ),
)


def test_what_the_library_draws_from_an_export_is_legal():
    theirs = exported(PLAN)
    theirs.seed(0)
    back = configspace.read_configspace(configspace.write(PLAN, "plan").text)
    drawn = [back.design(dict(one)) for one in theirs.sample_configuration(300)]
    assert all(design in PLAN for design in drawn)


def test_what_is_legal_is_legal_in_an_export_and_in_its_import():
    theirs = exported(PLAN)
    back = configspace.read_configspace(configspace.write(PLAN, "plan").text)
    drawn = PLAN.sample(300, np.random.default_rng(0)).designs()
    assert all(allows(theirs, design) and design in back.space for design in drawn)


def test_an_export_keeps_names_units_scales_and_steps_of_one():
    back = configspace.read_configspace(configspace.write(PLAN, "plan").text)
    assert back.name == "plan"
    assert back.space.by_name["clock"] == PLAN.by_name["clock"]
    assert back.space.by_name["batch"] == PLAN.by_name["batch"]
    assert back.space.by_name["group"] == PLAN.by_name["group"]
    assert back.space.by_name["fused"] == PLAN.by_name["fused"]


def test_the_default_configuration_of_an_export_is_legal():
    default = exported(PLAN).get_default_configuration()
    default.check_valid_configuration()
    assert dict(default) in PLAN


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], max_examples=40
)
@given(spaces())
def test_an_export_allows_exactly_what_the_space_does(space):
    assume((space.count() or 0) > 0)
    allowed, legal = legal_ones(exported(space), space)
    assert allowed == legal


@settings(suppress_health_check=[HealthCheck.filter_too_much], max_examples=60)
@given(spaces())
def test_an_export_is_imported_with_the_same_count(space):
    assume((space.count() or 0) > 0)
    assert (
        configspace.read_configspace(configspace.write(space, "s").text).space.count()
        == space.count()
    )


KINDS = [
    cs.UniformFloatHyperparameter("x", 0.1, 10, log=True),
    cs.NormalFloatHyperparameter("x", 0, 1, lower=-3, upper=3),
    cs.BetaFloatHyperparameter("x", 2, 3, lower=1, upper=4),
    cs.UniformIntegerHyperparameter("x", 1, 1000, log=True),
    cs.NormalIntegerHyperparameter("x", 5, 2, lower=0, upper=10),
    cs.BetaIntegerHyperparameter("x", 2, 3, lower=1, upper=9),
    cs.CategoricalHyperparameter("x", ["a", "b", "c"], weights=[1, 2, 3]),
    cs.CategoricalHyperparameter("x", [True, False]),
    cs.CategoricalHyperparameter("x", [1, 2.5, 4]),
    cs.CategoricalHyperparameter("x", [None, "a", 3]),
    cs.OrdinalHyperparameter("x", ["cold", "warm", "hot"]),
    cs.OrdinalHyperparameter("x", [1, 2, 8]),
    cs.Constant("x", 3),
    cs.Constant("x", "adam"),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_drawn_of_each_kind_of_hyperparameter_is_legal(kind):
    theirs = cs.ConfigurationSpace(seed=0)
    theirs.add(kind)
    found = imported(theirs)
    assert all(found.design(dict(one)) in found.space for one in theirs.sample_configuration(50))


WARNED = {
    "its normal distribution (mu = 0.0, sigma = 1.0) is not kept": KINDS[1],
    "its beta distribution (alpha = 2.0, beta = 3.0) is not kept": KINDS[2],
    "its weights [1, 2, 3] are not kept": KINDS[6],
    "null is the word 'none' here": KINDS[9],
    "the order of its words is not kept": KINDS[10],
    "its notes under 'meta' are not kept": cs.Constant("x", 1, meta={"paper": "A"}),
    "its unit 'parsec' is not kept": cs.Constant("x", 1, meta={"unit": "parsec"}),
    "defaults are not part of a space; a study's 'baselines' can hold them: x: cold": KINDS[10],
    "'a:b c' is called a.b_c here": cs.Constant("a:b c", 1),
}


@pytest.mark.parametrize("words", WARNED)
def test_what_is_not_kept_is_told(words):
    theirs = cs.ConfigurationSpace()
    theirs.add(WARNED[words])
    assert any(words in warning for warning in imported(theirs).warnings)


def clauses_space():
    """The library insists on a legal default, so each clause below leaves this one."""
    theirs = cs.ConfigurationSpace({"a": (1, 4), "e": [True, False]}, seed=0)
    theirs.add(cs.UniformIntegerHyperparameter("b", 1, 4, default_value=3))
    theirs.add(cs.CategoricalHyperparameter("c", ["x", "y", "z"], default_value="y"))
    theirs.add(cs.OrdinalHyperparameter("d", [8, 2, 4], default_value=4))
    return theirs


def small_space(theirs) -> DesignSpace:
    return imported(theirs).space


CONDITIONS = {
    "equals": lambda s: cs.EqualsCondition(s["a"], s["c"], "x"),
    "not equals": lambda s: cs.NotEqualsCondition(s["a"], s["c"], "x"),
    "less": lambda s: cs.LessThanCondition(s["a"], s["b"], 3),
    "greater": lambda s: cs.GreaterThanCondition(s["a"], s["b"], 3),
    "less in a list": lambda s: cs.LessThanCondition(s["a"], s["d"], 4),
    "greater in a list": lambda s: cs.GreaterThanCondition(s["a"], s["d"], 8),
    "in": lambda s: cs.InCondition(s["a"], s["c"], ["x", "z"]),
    "and": lambda s: cs.AndConjunction(
        cs.EqualsCondition(s["a"], s["c"], "x"), cs.GreaterThanCondition(s["a"], s["b"], 1)
    ),
    "or of ands": lambda s: cs.OrConjunction(
        cs.EqualsCondition(s["a"], s["c"], "x"),
        cs.AndConjunction(
            cs.EqualsCondition(s["a"], s["c"], "y"), cs.NotEqualsCondition(s["a"], s["e"], True)
        ),
    ),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_a_condition_means_what_it_means_in_the_library(case):
    theirs = clauses_space()
    theirs.add(CONDITIONS[case](theirs))
    allowed, legal = legal_ones(theirs, small_space(theirs))
    assert allowed == legal


def test_a_test_for_another_value_holds_where_its_parameter_is_inactive_as_in_the_library():
    theirs = clauses_space()
    theirs.add(cs.EqualsCondition(theirs["a"], theirs["c"], "y"))
    theirs.add(cs.NotEqualsCondition(theirs["b"], theirs["a"], 2))
    allowed, legal = legal_ones(theirs, small_space(theirs))
    assert allowed == legal


FORBIDDEN = {
    "equals": lambda s: cs.ForbiddenEqualsClause(s["b"], 2),
    "in": lambda s: cs.ForbiddenInClause(s["c"], ["x", "z"]),
    "greater": lambda s: cs.ForbiddenGreaterThanClause(s["b"], 3),
    "less in a list": lambda s: cs.ForbiddenLessThanClause(s["d"], 4),
    "and": lambda s: cs.ForbiddenAndConjunction(
        cs.ForbiddenEqualsClause(s["c"], "x"), cs.ForbiddenInClause(s["b"], [3, 4])
    ),
    "about one that may be inactive": lambda s: cs.ForbiddenAndConjunction(
        cs.ForbiddenEqualsClause(s["a"], 2), cs.ForbiddenEqualsClause(s["b"], 2)
    ),
    "or": lambda s: cs.ForbiddenOrConjunction(
        cs.ForbiddenEqualsClause(s["c"], "z"), cs.ForbiddenEqualsClause(s["b"], 1)
    ),
    "less than another": lambda s: cs.ForbiddenLessThanRelation(s["a"], s["b"]),
    "equal to another": lambda s: cs.ForbiddenEqualsRelation(s["b"], s["d"]),
    "greater than another": lambda s: cs.ForbiddenGreaterThanRelation(s["b"], s["d"]),
}


@pytest.mark.parametrize("case", FORBIDDEN)
def test_a_forbidden_clause_means_what_it_means_in_the_library(case):
    theirs = clauses_space()
    theirs.add(cs.EqualsCondition(theirs["a"], theirs["c"], "x"))
    theirs.add(FORBIDDEN[case](theirs))
    allowed, legal = legal_ones(theirs, small_space(theirs))
    assert allowed == legal


def test_a_quantized_range_of_an_older_version_is_a_list():
    items = [
        {"type": "uniform_float", "name": "x", "lower": 0, "upper": 0.3, "q": 0.1, "default": 0.1},
        {"type": "uniform_int", "name": "y", "lower": 2, "upper": 10, "q": 3, "log": False},
        {"type": "uniform_int", "name": "z", "lower": 2, "upper": 10, "q": None, "log": True},
    ]
    found = configspace.read_configspace(json.dumps({"hyperparameters": items}))
    assert found.space.by_name["x"] == Ordinal(name="x", values=(0.0, 0.1, 0.2, 0.3))
    assert found.space.by_name["y"] == Integer(name="y", low=2, high=8, step=3)
    assert found.space.by_name["z"] == Integer(name="z", low=2, high=10, scale="log")


def test_a_number_that_differs_by_rounding_is_the_value_that_is_meant():
    item = {"type": "ordinal", "name": "x", "sequence": [0.1, 0.3]}
    found = configspace.read_configspace(json.dumps({"hyperparameters": [item]}))
    assert found.design({"x": np.float64(0.1) + 0.2}) == Design({"x": 0.3})
    with pytest.raises(SpecError, match=r"x cannot be 0\.2"):
        found.design({"x": 0.2})


def computing_space(rule: str) -> DesignSpace:
    parameters = (
        Real(name="x", low=0, high=1),
        Real(name="y", low=0, high=1),
        Integer(name="n", low=1, high=3),
    )
    return DesignSpace(parameters=parameters, constraints=(parse(rule),), places={rule: "a.yaml:7"})


def test_a_rule_that_cannot_be_said_is_named_with_its_place_and_the_way_out():
    with pytest.raises(SpecError) as caught:
        configspace.write(computing_space("x * n <= 1"), "s")
    assert "a.yaml:7" in str(caught.value)
    assert "'x * n <= 1'" in str(caught.value)
    assert "--drop-rules" in str(caught.value)


def test_a_dropped_rule_is_told_and_leaves_a_superset():
    found = configspace.write(computing_space("x * n <= 1"), "s", drop_rules=True)
    assert found.warnings == (
        "left out the rule 'x * n <= 1' (a.yaml:7): it computes with a real parameter",
    )
    assert configspace.read_configspace(found.text).space.constraints == ()


def test_two_real_parameters_are_compared_by_a_relation():
    space = computing_space("x <= y")
    theirs = exported(space)
    theirs.seed(0)
    assert all(one["x"] <= one["y"] for one in theirs.sample_configuration(100))


def test_a_bound_that_the_library_evaluates_wrongly_is_said_by_its_other_side():
    found = configspace.write(computing_space("x > 0.25"), "s")
    assert "x is exactly 0.25" in found.warnings[0]
    theirs = cs.ConfigurationSpace.from_json(io.StringIO(found.text))
    theirs.seed(0)
    assert all(one["x"] >= 0.25 for one in theirs.sample_configuration(100))


def table_space(rows, *, negated: bool) -> DesignSpace:
    parameters = tuple(Integer(name=name, low=1, high=700) for name in "abc")
    table = Listed((Name("a"), Name("b")), rows, negated=negated)
    return DesignSpace(parameters=parameters, constraints=(Expression("a table", table),))


def test_a_long_table_of_forbidden_rows_is_said_row_by_row():
    rows = tuple((n, 701 - n) for n in range(1, 701))
    theirs = exported(table_space(rows, negated=True))
    assert not allows(theirs, {"a": 300, "b": 401, "c": 1})
    assert allows(theirs, {"a": 300, "b": 400, "c": 1})


def test_a_long_table_of_allowed_rows_cannot_be_said():
    rows = tuple((n, 701 - n) for n in range(1, 701))
    with pytest.raises(SpecError, match="more than 250,000 combinations"):
        configspace.write(table_space(rows, negated=False), "s")


def test_all_different_is_said_by_pairs():
    names = [f"order{place}" for place in range(8)]
    parameters = tuple(Ordinal(name=name, values=tuple(range(8))) for name in names)
    space = DesignSpace(
        parameters=parameters, constraints=(parse(f"all_different({', '.join(names)})"),)
    )
    theirs = exported(space)
    assert len(theirs.forbidden_clauses) == 28
    assert dict(theirs.get_default_configuration()) in space


REALS = (
    Real(name="x", low=0, high=1),
    Real(name="y", low=0, high=2),
    Integer(name="n", low=1, high=12),
    Choice(name="m", values=("a", "b", "c")),
)


def agree(space: DesignSpace) -> bool:
    """Whether the library and the space take each other's designs."""
    text = configspace.write(space, "s").text
    theirs, back = (
        cs.ConfigurationSpace.from_json(io.StringIO(text)),
        configspace.read_configspace(text),
    )
    theirs.seed(0)
    ours = space.sample(100, np.random.default_rng(0)).designs()
    drawn = [back.design(dict(one)) for one in theirs.sample_configuration(100)]
    return all(allows(theirs, design) and design in back.space for design in ours) and all(
        design in space for design in drawn
    )


REAL_RULES = [
    "x < 0.5 or n > 6",
    "n == 1 -> x >= 0.5 and x <= 0.75",
    "not (x > 0.5 and n >= 7)",
    "0.25 < x < 0.75",
    "0.5 >= x",
    "x != 0.5",
    "x <= 2",
    "x >= -1 and x > 0.1",
    "x > 3 -> n == 1",
    "3 != x",
    "y <= x",
    "x < y < 1.5 and n < 10",
    "m is absent or x < 0.5",
    "m != 'a' or y > 1",
    "4 <= n <= 8",
    "n in [1, 2, 3, 4, 5] -> x < y",
    "y == 3 -> n == 1",
    "n * n <= 30",
]


@pytest.mark.parametrize("rule", REAL_RULES)
def test_rules_with_real_parameters_mean_the_same_there(rule):
    conditions = {"m": parse("n > 3")}
    assert agree(DesignSpace(parameters=REALS, conditions=conditions, constraints=(parse(rule),)))


@pytest.mark.parametrize("rule", ["y > 3 -> n == 1", "y >= 0 -> n < 7", "y < 0.5"])
def test_rules_about_a_real_parameter_that_may_be_inactive_mean_the_same_there(rule):
    conditions = {"y": parse("n > 3")}
    assert agree(DesignSpace(parameters=REALS, conditions=conditions, constraints=(parse(rule),)))


@pytest.mark.parametrize(
    "rule",
    [
        "x > 0.5 and n > 3",
        "0.2 < x < 0.6",
        "x < 0.3 or x > 0.7",
        "x < 0.5 or m == 'a'",
        "x > -1",
        "x > -1 or x > 0.5",
        "n in [4, 5, 6, 7, 8]",
        "n % 2 == 0 -> m == 'c'",
        "x != 0.5 and n > 3",
    ],
)
def test_conditions_with_real_parameters_mean_the_same_there(rule):
    assert agree(DesignSpace(parameters=REALS, conditions={"y": parse(rule)}))


UNSAYABLE = {
    "it compares two parameters": ({"y": parse("x < n")}, ()),
    "computes with a real parameter": ({"y": parse("x * n > 2")}, ()),
}


@pytest.mark.parametrize("reason", UNSAYABLE)
def test_the_reason_why_something_cannot_be_said_is_told(reason):
    conditions, rules = UNSAYABLE[reason]
    space = DesignSpace(parameters=REALS, conditions=conditions, constraints=rules)
    with pytest.raises(SpecError, match=reason):
        configspace.write(space, "s")


@pytest.mark.slow
def test_a_rule_that_too_many_combinations_break_cannot_be_said():
    parameters = tuple(
        Integer(name=n, low=1, high=top) for n, top in zip("abc", (150, 150, 10), strict=True)
    )
    rule = parse("(7 * a * a + 13 * b * b + a * b * c) % 997 > 498")
    space = DesignSpace(parameters=parameters, constraints=(rule,))
    with pytest.raises(SpecError, match="more than 10,000 combinations break it"):
        configspace.write(space, "s")


def test_a_parameter_that_is_never_active_is_left_out_and_told():
    space = DesignSpace(
        parameters=(Integer(name="n", low=1, high=3), Integer(name="m", low=1, high=3)),
        conditions={"m": parse("n > 5")},
        constraints=(parse("m < n"),),
    )
    found = configspace.write(space, "s")
    assert found.warnings == ("m is never active, and is left out",)
    assert list(cs.ConfigurationSpace.from_json(io.StringIO(found.text))) == ["n"]


def test_a_space_without_a_legal_design_is_not_exported():
    space = computing_space("n > 5")
    with pytest.raises(DesignError, match="no legal design"):
        configspace.write(space, "s")


HYPERPARAMETER = {"type": "uniform_int", "name": "a", "lower": 1, "upper": 4}
BAD = {
    "this is no JSON": "{",
    "a JSON object is expected": "[]",
    "there are no hyperparameters": {},
    "is no list": {"hyperparameters": 3},
    "a JSON object is expected, not 3": {"hyperparameters": [3]},
    "'name' is None, and no name": {"hyperparameters": [{"type": "constant"}]},
    "a is of the type 'float'": {"hyperparameters": [{**HYPERPARAMETER, "type": "float"}]},
    "'lower' of a is 'x', and no number": {"hyperparameters": [{**HYPERPARAMETER, "lower": "x"}]},
    "a goes backwards": {"hyperparameters": [{**HYPERPARAMETER, "lower": 9}]},
    "a is a whole number, but goes from 1.5": {
        "hyperparameters": [{**HYPERPARAMETER, "lower": 1.5}]
    },
    "a has a log scale, but starts at 0": {
        "hyperparameters": [{**HYPERPARAMETER, "lower": 0, "log": True}]
    },
    "a has 4,000,000,000 values": {"hyperparameters": [{**HYPERPARAMETER, "upper": 4_000_000_000}]},
    "there are two hyperparameters 'a'": {"hyperparameters": [HYPERPARAMETER, HYPERPARAMETER]},
    "a has no 'choices'": {"hyperparameters": [{"type": "categorical", "name": "a"}]},
    "a value of a stands twice": {
        "hyperparameters": [{"type": "ordinal", "name": "a", "sequence": [1, 1.0]}]
    },
    "a cannot be [1, 2]": {
        "hyperparameters": [{"type": "categorical", "name": "a", "choices": [[1, 2]]}]
    },
    "a condition names 'b', which is not defined": {
        "hyperparameters": [HYPERPARAMETER],
        "conditions": [{"type": "EQ", "child": "b", "parent": "a", "value": 1}],
    },
    "a is active by itself": {
        "hyperparameters": [HYPERPARAMETER],
        "conditions": [{"type": "EQ", "child": "a", "parent": "a", "value": 1}],
    },
    "a cannot be 7": {
        "hyperparameters": [HYPERPARAMETER],
        "forbiddens": [{"type": "EQUALS", "name": "a", "value": 7}],
    },
    "'LIKE' is no forbidden clause": {
        "hyperparameters": [HYPERPARAMETER],
        "forbiddens": [{"type": "LIKE", "name": "a", "value": 1}],
    },
    "'LIKE' is no condition": {
        "hyperparameters": [HYPERPARAMETER, {**HYPERPARAMETER, "name": "b"}],
        "conditions": [{"type": "LIKE", "child": "b", "parent": "a", "value": 1}],
    },
    "'b' has two conditions": {
        "hyperparameters": [HYPERPARAMETER, {**HYPERPARAMETER, "name": "b"}],
        "conditions": [{"type": "EQ", "child": "b", "parent": "a", "value": 1}] * 2,
    },
    "b cannot be active by the value of a, a real": {
        "hyperparameters": [
            {**HYPERPARAMETER, "type": "uniform_float"},
            {**HYPERPARAMETER, "name": "b"},
        ],
        "conditions": [{"type": "EQ", "child": "b", "parent": "a", "value": 1}],
    },
    "'RELATION_XX' is no relation": {
        "hyperparameters": [HYPERPARAMETER],
        "forbiddens": [{"type": "RELATION_XX", "left": "a", "right": "a"}],
    },
    "a and b are not both numbers": {
        "hyperparameters": [HYPERPARAMETER, {"type": "constant", "name": "b", "value": "x"}],
        "forbiddens": [{"type": "RELATION_LT", "left": "a", "right": "b"}],
    },
    "has no 'clauses'": {
        "hyperparameters": [HYPERPARAMETER],
        "forbiddens": [{"type": "AND", "clauses": []}],
    },
    "nested deeper than 50": {
        "hyperparameters": [HYPERPARAMETER],
        "forbiddens": [json.loads('{"type": "AND", "clauses": [' * 60 + "{}" + "]}" * 60)],
    },
    "there is no hyperparameter 'c'": {
        "hyperparameters": [HYPERPARAMETER],
        "forbiddens": [{"type": "EQUALS", "name": "c", "value": 1}],
    },
}


@pytest.mark.parametrize("problem", BAD)
def test_a_malformed_text_is_one_clear_error_with_its_place(problem):
    text = BAD[problem] if isinstance(BAD[problem], str) else json.dumps(BAD[problem])
    with pytest.raises(SpecError) as caught:
        configspace.read_configspace(text, "space.json")
    assert problem in str(caught.value)
    assert caught.value.where.startswith("space.json:1")


def test_a_mistake_is_told_with_the_line_of_its_name():
    value = {"hyperparameters": [HYPERPARAMETER, {**HYPERPARAMETER, "name": "b", "upper": 0}]}
    with pytest.raises(SpecError) as caught:
        configspace.read_configspace(json.dumps(value, indent=1), "space.json")
    assert caught.value.where == "space.json:11"


PLAN_TEXT = configspace.write(PLAN, "plan").text
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def damaged(draw):
    """What the library writes, with one part replaced by anything."""
    value = json.loads(PLAN_TEXT)
    part, key = value, draw(st.sampled_from(sorted(value)))
    while isinstance(part[key], dict | list) and part[key] and draw(st.integers(0, 3)):
        part = part[key]
        key = draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
    part[key] = draw(JSON)
    return json.dumps(value)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_a_damaged_text_is_read_or_refused_in_words(text):
    with suppress(SpecError):
        configspace.read_configspace(text)
