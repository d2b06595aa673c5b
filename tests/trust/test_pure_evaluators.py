"""Which of the evaluators that come with dse may be called to look at a study."""

import numpy as np
import pytest

from dse.registry import load, names

MODELLED = [
    name
    for name, point in names("evaluators").items()
    if point.value.startswith("dse_evaluators.")
    and getattr(load("evaluators", name), "kind", None) == "modelled"
]


OF_A_MODEL = ("compression.noise", "compression.size")
"""Whether they are pure depends on the model: a function of the user may do anything."""


@pytest.mark.parametrize("name", MODELLED)
def test_a_model_that_comes_with_dse_is_declared_pure(name):
    kind = load("evaluators", name)
    made = kind(model="digits-cnn") if name in OF_A_MODEL else kind
    assert made.pure is True


@pytest.mark.parametrize("name", OF_A_MODEL)
def test_a_function_of_the_user_is_not_pure_and_named(name, tmp_path):
    (tmp_path / "net.py").write_text("def make(): ...\n")
    options = {"model": {"python": f"{tmp_path}/net.py:make"}, "data": f"{tmp_path}/data.npz"}
    np.savez(tmp_path / "data.npz", inputs=np.eye(4), targets=np.arange(4))
    made = load("evaluators", name)(**options)
    assert not getattr(made, "pure", False)
    assert any("net.py" in one for one in made.starts)


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
