"""A function's identity, and its way into other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys

from dse import Metric, evaluator
from dse.api.fingerprint import fingerprint

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
