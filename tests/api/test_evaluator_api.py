"""A function's identity, and its way into other processes."""

from __future__ import annotations

import functools
import math
import pickle
import subprocess
import sys

import pytest

from dse import Metric, Study, evaluator
from dse.api.function_fingerprint import fingerprint
from dse.errors import PluginError

SCALE = 3.0


def helper(x: float) -> float:
    return SCALE * x


def uses_helper(tile: int) -> float:
    return helper(tile) + 1


@evaluator(Metric("time", "us"))
def importable(tile: int) -> dict[str, float]:
    return {"time": helper(tile)}


def made(factor: float):
    def inner(tile: int) -> float:
        return factor * tile

    return inner


def test_the_same_function_is_the_same():
    assert fingerprint(uses_helper) == fingerprint(uses_helper)
    assert fingerprint(made(2.0)) == fingerprint(made(2.0))
    assert len({fingerprint(one) for one in (helper, uses_helper, made(2.0))}) == 3


def test_what_a_function_refers_to_counts(monkeypatch):
    before = fingerprint(uses_helper), fingerprint(importable)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 4.0)
    assert fingerprint(uses_helper) != before[0]
    assert fingerprint(importable) != before[1]
    assert fingerprint(made(2.0)) != fingerprint(made(3.0))


def test_defaults_count_and_decorators_do_not():
    def scaled(tile: int, by: float = 2.0) -> float:
        return tile * by

    before = fingerprint(scaled)
    scaled.__defaults__ = (3.0,)
    assert fingerprint(scaled) != before
    assert fingerprint(importable) == fingerprint(importable.function)


def test_a_function_without_a_source_has_an_identity():
    found = []
    for text in ("2 * tile", "3 * tile", "2 * tile"):
        scope: dict = {}
        exec(f"def f(tile):\n    return {text}", scope)
        found.append(fingerprint(scope["f"]))
    assert found[0] == found[2] != found[1]


class Model:
    """What is called like a function, and holds what an evaluator holds too."""

    def __init__(self, weight: float) -> None:
        self.weight, self.metrics, self.version = weight, "mine", "mine"

    def __call__(self, tile: int) -> dict[str, float]:
        return {"time": self.weight * tile}

    def other(self, tile: int) -> dict[str, float]:
        return {"time": self.weight + tile}


def with_partial(tile: int) -> float:
    return TRIPLE(tile)


def scaled(tile: int, by: float) -> dict[str, float]:
    return {"time": tile * by}


TRIPLE = functools.partial(scaled, by=3.0)


def test_a_partial_is_its_function_and_what_that_is_given(monkeypatch):
    double, triple = functools.partial(scaled, by=2.0), functools.partial(scaled, by=3.0)
    first = functools.partial(scaled, 2.0)
    other = functools.partial(helper, by=2.0)
    assert len({fingerprint(one) for one in (double, triple, first, other, scaled)}) == 5
    assert fingerprint(double) == fingerprint(functools.partial(scaled, by=2.0))
    before = fingerprint(with_partial)
    monkeypatch.setattr(sys.modules[__name__], "TRIPLE", double)
    assert fingerprint(with_partial) != before


def test_an_object_is_how_its_class_is_called_and_what_is_compiled_is_its_name():
    told = [Model(1.0), Model(1.0).other, lambda tile: tile, max, min, math.sqrt]
    assert len({fingerprint(one) for one in told}) == len(told)
    assert fingerprint(Model(1.0)) == fingerprint(Model(2.0))  # what it holds is its own affair


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Model(2.0), "Model"),
        (Model(2.0).other, "other"),
        (functools.partial(scaled, by=2.0), "scaled"),
    ],
)
def test_whatever_can_be_called_evaluates_here_and_elsewhere(function, name):
    made = evaluator(Metric("time", goal="minimize"))(function)
    assert made.name == name
    assert f"evaluator {name}: time" in repr(made)
    copy = pickle.loads(pickle.dumps(made))
    assert (copy.version, copy.metrics, copy(tile=3)) == (made.version, made.metrics, made(tile=3))
    study = Study("called", {"tile": [2, 4]}, [made], storage="memory://", optimizer="exhaustive")
    study.run(measurements=2)
    assert [t.metrics[f"{name}.time"] for t in study.trials] == [
        function(tile=t.design["tile"])["time"] for t in study.trials
    ]


async def later(tile: int) -> dict[str, float]:
    return {"time": tile}


class Later:
    async def __call__(self, tile: int) -> dict[str, float]:
        return {"time": tile}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (later, "'later' is async"),
        (functools.partial(later, tile=2), "'later' is async"),
        (Later(), "'Later' is async"),
        (3.0, "3.0 is no function"),
    ],
)
def test_what_gives_no_answer_when_it_is_called_is_told_at_once(function, words):
    with pytest.raises(PluginError, match=words):
        evaluator("time")(function)


def test_functions_that_call_one_another_end():
    assert fingerprint(_even)


def _even(n: int) -> bool:
    return n == 0 or _odd(n - 1)


def _odd(n: int) -> bool:
    return n != 0 and _even(n - 1)


def test_one_of_a_module_is_pickled_by_its_name():
    text = pickle.dumps(importable)
    assert b"importable" in text
    assert pickle.loads(text) is importable


def test_one_of_the_main_script_travels_whole():
    """A worker must not run the script again to find its function."""
    program = (
        "import pickle, subprocess, sys\n"
        "from dse import evaluator\n"
        "factor = 5\n"
        "@evaluator('time')\n"
        "def f(tile): return {'time': factor * tile}\n"
        "text = pickle.dumps(f)\n"
        "assert b'__main__' not in text\n"
        "read = 'import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f(4), f.version)'\n"
        "done = subprocess.run([sys.executable, '-c', read], input=text, capture_output=True)\n"
        "print(done.stdout.decode(), done.stderr.decode())\n"
        "assert done.stdout.decode().split()[-1] == f.version\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "{'time': 20}" in done.stdout


def test_a_version_may_be_said():
    told = evaluator("time", version="7")(helper)
    assert told.version == "7"
    assert "version 7" in repr(told)
    assert told.__name__ == "helper"
    assert told(2.0) == 6.0


def test_a_partial_that_is_dressed_as_its_function_keeps_what_it_is_given():
    def dressed(by: float):
        return functools.update_wrapper(functools.partial(scaled, by=by), scaled)

    assert fingerprint(dressed(2.0)) != fingerprint(dressed(3.0))
    space = {"tile": [1, 2]}
    study = Study(
        "s", space, {"k": evaluator("time")(dressed(3.0))}, minimize="k.time", storage="memory://"
    )
    assert study.evaluate({"tile": 2})[0].metrics["k.time"] == 6.0


def test_what_a_function_holds_stands_in_the_evaluator_too():
    def kernel(tile: int) -> float:
        return float(tile)

    kernel.source = "bench"
    assert evaluator("time")(kernel).source == "bench"
