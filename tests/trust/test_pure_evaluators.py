"""Which of the evaluators that come with dse may be called to look at a study."""

import pytest

from dse.registry import load, names

MODELLED = [
    name
    for name, point in names("evaluators").items()
    if point.value.startswith("dse_evaluators.")
    and getattr(load("evaluators", name), "kind", None) == "modelled"
]


@pytest.mark.parametrize("name", MODELLED)
def test_a_model_that_comes_with_dse_is_declared_pure(name):
    assert load("evaluators", name).pure is True


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("command", {"run": ["true"]}),
        ("outside.worker", {"run": ["true"]}),
        ("outside.worker", {"worker": "simulate.py"}),
    ],
)
def test_what_starts_a_program_is_not_pure_and_names_it(name, options):
    made = load("evaluators", name)(metrics={"loss": ""}, kind="modelled", **options)
    assert not getattr(made, "pure", False)
    assert len(made.starts) == 1
    assert any(word in made.starts[0] for word in ("true", "simulate.py"))


@pytest.mark.parametrize("name", ["outside.scalesim", "outside.zigzag", "outside.mlsysim"])
def test_a_simulator_in_an_environment_names_the_python_that_it_starts(name):
    made = load("evaluators", name)(python="/elsewhere/bin/python")
    assert not getattr(made, "pure", False)
    assert "/elsewhere/bin/python" in made.starts[0]
