"""Optuna's distributions: what the library writes is read, and it reads what is written."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.errors import SpecError
from dse.interop.optuna import distributions as exchange
from dse.testing.strategies import spaces

optuna = pytest.importorskip("optuna")
d = optuna.distributions


def imported(**theirs) -> exchange.SpaceImport:
    return exchange.read_distributions(
        json.dumps({name: d.distribution_to_json(one) for name, one in theirs.items()})
    )


def exported(space: DesignSpace, **options):
    value = json.loads(exchange.write(space, **options).text)
    return {name: d.json_to_distribution(text) for name, text in value.items()}


KINDS = {
    d.FloatDistribution(0.1, 10, log=True): Real(name="x", low=0.1, high=10, scale="log"),
    d.FloatDistribution(0, 1): Real(name="x", low=0, high=1),
    d.FloatDistribution(0, 0.3, step=0.1): Ordinal(name="x", values=(0.0, 0.1, 0.2, 0.3)),
    d.IntDistribution(1, 64, log=True): Integer(name="x", low=1, high=64, scale="log"),
    d.IntDistribution(2, 11, step=3): Integer(name="x", low=2, high=11, step=3),
    d.CategoricalDistribution(["a", "b", None]): Choice(name="x", values=("a", "b", "none")),
    d.CategoricalDistribution([True, False]): Choice(name="x", values=(False, True)),
    d.CategoricalDistribution([1, 2.5]): Choice(name="x", values=(1.0, 2.5)),
}


@pytest.mark.parametrize("theirs", KINDS, ids=str)
def test_each_distribution_is_the_parameter_with_its_values(theirs):
    assert imported(x=theirs).space.parameters == (KINDS[theirs],)


@pytest.mark.parametrize("theirs", KINDS, ids=str)
def test_what_a_sampler_draws_is_legal(theirs):
    found = imported(x=theirs)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [study.ask({"x": theirs}).params for _ in range(30)]
    assert all(found.design(one) in found.space for one in drawn)


@pytest.mark.parametrize(
    "theirs", [k for k in KINDS if None not in getattr(k, "choices", ())], ids=str
)
def test_an_import_is_exported_with_the_same_values(theirs):
    back = exported(imported(x=theirs).space)["x"]
    assert imported(x=back).space.count() == imported(x=theirs).space.count()


@pytest.mark.parametrize(
    ("item", "parameter"),
    [
        ({"type": "int", "low": 1, "high": 8}, Integer(name="x", low=1, high=8)),
        ({"type": "categorical", "choices": ["a"]}, Choice(name="x", values=("a",))),
        (
            {"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 8}},
            Real(name="x", low=1, high=8, scale="log"),
        ),
        (
            {"name": "DiscreteUniformDistribution", "attributes": {"low": 0, "high": 1, "q": 0.5}},
            Ordinal(name="x", values=(0.0, 0.5, 1.0)),
        ),
        (
            {"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 8, "step": 2}},
            Integer(name="x", low=1, high=7, step=2),
        ),
    ],
)
def test_short_and_older_forms_are_read(item, parameter):
    assert exchange.read_distributions(json.dumps({"x": item})).space.parameters == (parameter,)


PLAIN = DesignSpace(
    parameters=(
        Real(name="clock", low=2e8, high=1.6e9, unit="Hz", scale="log"),
        Integer(name="batch", low=1, high=64, scale="log"),
        Integer(name="tiles", low=2, high=20, step=3, scale="log"),
        Ordinal(name="width", values=(64, 128, 192)),
        Ordinal(name="tp", values=(1, 2, 4)),
        Choice(name="format", values=("int8", "fp8")),
    )
)


def test_an_export_is_what_the_library_writes_for_the_same_distributions():
    theirs = exported(PLAIN)
    assert theirs == {
        "clock": d.FloatDistribution(2e8, 1.6e9, log=True),
        "batch": d.IntDistribution(1, 64, log=True),
        "tiles": d.IntDistribution(2, 20, step=3),
        "width": d.IntDistribution(64, 192, step=64),
        "tp": d.CategoricalDistribution([1, 2, 4]),
        "format": d.CategoricalDistribution(["int8", "fp8"]),
    }
    text = json.loads(exchange.write(PLAIN).text)
    assert text == {name: d.distribution_to_json(one) for name, one in theirs.items()}


def test_what_a_distribution_cannot_hold_is_told():
    assert exchange.write(PLAIN).warnings == (
        "clock: its unit Hz is lost; Optuna has no units",
        "tiles: its log scale is lost; Optuna has none with steps",
        "tp: its order is lost; Optuna has no uneven lists",
    )


RULED = DesignSpace(
    parameters=PLAIN.parameters,
    conditions={"tp": parse("format == 'fp8'")},
    constraints=(parse("tp <= batch"),),
    places={"tp": "plan.yaml:3", "tp <= batch": "plan.yaml:9"},
)


def test_rules_and_conditions_are_refused_by_name():
    with pytest.raises(SpecError) as caught:
        exchange.write(RULED)
    told = str(caught.value)
    assert "that tp exists only when \"format == 'fp8'\" (plan.yaml:3)" in told
    assert "the rule 'tp <= batch' (plan.yaml:9)" in told
    assert "--drop-rules" in told


def test_dropped_rules_and_conditions_are_told():
    told = exchange.write(RULED, drop_rules=True).warnings
    assert told[0].startswith("left out that tp exists only when")
    assert told[1].startswith("left out the rule 'tp <= batch'")
    assert exported(RULED, drop_rules=True) == exported(PLAIN)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(spaces())
def test_an_export_is_imported_with_the_same_values(space):
    text = exchange.write(space, drop_rules=True).text
    back = exchange.read_distributions(text).space
    assert [p.values for p in back.parameters] == [p.values for p in space.parameters]


BAD = {
    "this is no JSON": "{",
    "a JSON object is expected": "3",
    "there are no distributions": "{}",
    "a is 3, and no distribution": '{"a": 3}',
    "a is 'x', and no distribution": '{"a": "x"}',
    "a is of the kind 'Float'": '{"a": {"name": "Float", "attributes": {}}}',
    "'low' of a is None, and no number": '{"a": {"type": "int"}}',
    "a goes backwards": '{"a": {"type": "int", "low": 3, "high": 1}}',
    "a has a log scale": '{"a": {"type": "int", "low": 0, "high": 1, "log": true}}',
    "a is a whole number": '{"a": {"type": "int", "low": 0.5, "high": 1}}',
    "a goes by steps of 0": '{"a": {"type": "int", "low": 0, "high": 1, "step": 0}}',
    "a goes from 0 to 1 in steps of -1": '{"a": {"type": "float", "low": 0, "high": 1, "step": -1}}',
    "a has no 'choices'": '{"a": {"type": "categorical", "choices": []}}',
    "a value of a stands twice": '{"a": {"type": "categorical", "choices": [1, 1]}}',
    "a cannot be {}": '{"a": {"type": "categorical", "choices": [{}]}}',
    "has 1,000,000,001 values": '{"a": {"type": "int", "low": 0, "high": 1000000000}}',
    "'high' of a cannot be Infinity": '{"a": {"type": "float", "low": 0, "high": Infinity}}',
}


@pytest.mark.parametrize("problem", BAD)
def test_a_malformed_text_is_one_clear_error_with_its_place(problem):
    with pytest.raises(SpecError) as caught:
        exchange.read_distributions(BAD[problem], "space.json")
    assert problem in str(caught.value)
    assert caught.value.where == "space.json:1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts),
    max_leaves=4,
)
KEYS = st.sampled_from(["low", "high", "step", "log", "choices", "q"])


@given(st.sampled_from(["int", "float", "categorical"]), st.dictionaries(KEYS, JSON, max_size=4))
def test_any_distribution_is_read_or_refused_in_words(kind, attributes):
    text = json.dumps({"a": {"type": kind, **attributes}})
    try:
        space = exchange.read_distributions(text).space
    except SpecError:
        return
    assert space.parameters
