"""What importing ``dse`` brings along: nothing heavy, and little of our own."""

import subprocess
import sys
from pathlib import Path

import pytest

import dse

USUAL = "from dse import Metric, Space, Study, evaluator"
EVERYTHING = f"from dse import {', '.join(dse.__all__)}"
HEAVY = {
    *("ax", "botorch", "cloudpickle", "jinja2", "matplotlib", "moocore", "optuna", "pandas"),
    *("pint", "plotly", "polars", "psycopg", "pyarrow", "pydantic", "pymoo", "ray", "rich"),
    *("scipy", "sklearn", "sqlalchemy", "torch", "yaml"),
}
MOST_OTHERS = 300
"""Numpy and what Python brings are 265 modules; other versions of them may have a few more."""
MOST_OWN = 83


def modules_after(code: str) -> list[str]:
    """The modules that a fresh interpreter has imported after these lines."""
    lines = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    words = [sys.executable, "-c", lines]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


@pytest.fixture(scope="module", params=["import dse", USUAL, EVERYTHING])
def modules(request) -> list[str]:
    return modules_after(request.param)


def test_an_import_brings_no_heavy_library(modules):
    assert not HEAVY & {name.partition(".")[0] for name in modules}


def test_an_import_brings_few_modules(modules):
    own = [name for name in modules if name.partition(".")[0] == "dse"]
    assert len(own) <= MOST_OWN, own
    assert len(modules) - len(own) <= MOST_OTHERS


def test_every_public_name_is_one_that_type_checkers_know():
    stub = Path(dse.__file__).with_suffix(".pyi").read_text()
    known = [name for name in dse.__all__ if f" as {name}\n" in stub or f"\n{name} = " in stub]
    assert known == dse.__all__


@pytest.mark.parametrize("name", dse.__all__)
def test_each_name_can_be_the_first_that_is_imported(name):
    assert getattr(dse, name).__doc__
