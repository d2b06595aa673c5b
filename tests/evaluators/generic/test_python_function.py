"""A function of Python is an evaluator: what it reads, what it returns, how it fails."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse.core.metric import Metrics
from dse.errors import InfeasibleError, PluginError
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import EVERYTHING
from dse_evaluators.generic.python import Python


def area(rows: int, cols: int, spare: int = 4) -> dict[str, float]:
    return {"area": rows * cols + spare}


def told(function: Callable[..., Any], *designs: dict[str, Any], **options: Any) -> Metrics:
    evaluator = Python(function=function, metrics={"area": "mm2"}, **options)
    batch = Batch.of(designs or [{"rows": 2}])
    return Bound(name="own", evaluator=evaluator, names={n: n for n in batch.names}).evaluate(batch)


def test_it_reads_what_the_function_takes() -> None:
    evaluator = Python(function=area, metrics={"area": "mm2"})
    assert (evaluator.reads, evaluator.optional) == ({"rows", "cols"}, {"spare"})


def test_a_function_of_anything_reads_everything() -> None:
    evaluator = Python(function=lambda **design: design, metrics={"rows": ""})
    got = evaluator.evaluate(Batch.of([{"rows": 2, "cols": 3}]))
    assert (evaluator.reads, got.columns["rows"].tolist()) == ({EVERYTHING}, [2])


def test_a_list_of_readings_wins_over_the_signature() -> None:
    evaluator = Python(function=area, metrics={"area": "mm2"}, reads=["rows", "cols"])
    assert (evaluator.reads, evaluator.optional) == ({"rows", "cols"}, frozenset())


def test_each_design_gets_its_own_answer() -> None:
    got = told(area, {"rows": 2, "cols": 3}, {"rows": 4, "cols": 4, "spare": 0})
    assert got.columns["area"].tolist() == [10, 16]


def test_an_answer_comes_with_its_spread() -> None:
    got = told(lambda rows: {"area": (rows, 0.5)})
    assert (got.columns["area"].tolist(), got.spread["area"].tolist()) == ([2], [0.5])


def test_scalars_of_numpy_are_numbers() -> None:
    got = told(lambda rows: {"area": np.array(rows) * np.float32(1.5)})
    assert got.columns["area"].tolist() == [3]


def fails(rows: int) -> dict[str, float]:
    raise OSError(f"no board for {rows} rows")


def refuses(rows: int) -> dict[str, float]:
    raise InfeasibleError(f"{rows} rows do not fit")


@pytest.mark.parametrize(
    ("function", "kind", "named"),
    [
        (fails, "raised", "OSError: no board for 2 rows"),
        (refuses, "infeasible", "2 rows do not fit"),
        (lambda rows: None, "invalid", "got None"),
        (lambda rows: 3.0, "invalid", "got 3.0"),
        (lambda rows: {"aera": 3.0}, "invalid", "'area' is missing; there is aera"),
        (lambda rows: {"area": "3"}, "invalid", "area is '3'"),
        (lambda rows: {"area": float("nan")}, "invalid", "area is nan"),
        (lambda rows: {"area": True}, "invalid", "area is True"),
        (lambda rows: {"area": np.bool_(True)}, "invalid", "area is True"),
        (lambda rows: {"area": [1.0]}, "invalid", "area is [1.0]"),
        (lambda rows: {"area": (1.0, 2.0, 3.0)}, "invalid", "area is (1.0, 2.0, 3.0)"),
        (lambda rows, cols: {"area": 1.0}, "raised", "missing 1 required positional argument"),
    ],
)
def test_what_is_wrong_is_told_as_what_it_is(
    function: Callable[..., Any], kind: str, named: str
) -> None:
    seen = told(function).failures[0]
    assert (seen.kind, named in seen.reason) == (kind, True), seen.reason


def test_a_fault_in_one_row_leaves_the_others_alone() -> None:
    got = told(lambda rows: {"area": 1 / rows}, {"rows": 2}, {"rows": 0}, {"rows": 4})
    assert (got.columns["area"][[0, 2]].tolist(), list(got.failures)) == ([0.5, 0.25], [1])


# -- columns ------------------------------------------------------------------------------------


def areas(rows: np.ndarray, cols: Any = 7) -> dict[str, Any]:
    return {"area": rows * cols}


def test_columns_go_in_and_come_out() -> None:
    got = told(areas, {"rows": 2, "cols": 3}, {"rows": 4, "cols": 5}, batch=True)
    assert got.columns["area"].tolist() == [6, 20]


def test_an_inactive_parameter_falls_back_on_the_default_in_columns_too() -> None:
    got = told(areas, {"rows": 2, "cols": 3}, {"rows": 4}, {"rows": 1, "cols": 5}, batch=True)
    assert got.columns["area"].tolist() == [6, 28, 5]


def test_a_spread_may_be_a_column_or_one_number() -> None:
    got = told(lambda rows: {"area": (rows, 0.5)}, {"rows": 2}, {"rows": 3}, batch=True)
    assert got.spread["area"].tolist() == [0.5, 0.5]


def test_what_is_not_finite_is_a_fault_of_its_row() -> None:
    def inverse(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {"area": np.divide(1.0, rows, out=np.full(len(rows), np.inf), where=rows != 0)}

    got = told(inverse, {"rows": 2}, {"rows": 0}, batch=True)
    assert (list(got.failures), got.failures[1].kind) == ([1], "invalid")


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda rows: {"area": np.ones(3)}, "shape (3,) for 2 designs"),
        (lambda rows: {"area": ["a", "b"]}, "no numbers"),
        (lambda rows: {"areas": rows}, "'area' is missing"),
        (lambda rows: rows, "expected a mapping"),
    ],
)
def test_columns_that_do_not_fit_are_the_fault_of_every_row(
    function: Callable[..., Any], named: str
) -> None:
    evaluator = Python(function=function, metrics={"area": "mm2"}, batch=True)
    bound = Bound(name="chip", evaluator=evaluator, names={"rows": "rows"})
    got = bound.evaluate(Batch({"rows": Column(np.array([2, 3]))}, 2))
    assert [got.failures[row].kind for row in (0, 1)] == ["raised", "raised"]


def test_a_function_without_parameters_is_called_once_for_all_rows() -> None:
    evaluator = Python(function=lambda: {"area": 3.0}, metrics={"area": "mm2"}, batch=True)
    got = evaluator.evaluate(Batch.of([{"rows": 2}, {"rows": 3}]))
    assert got.columns["area"].tolist() == [3, 3]


# -- names and options --------------------------------------------------------------------------


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with one good function and one that cannot be imported."""
    facts = tmp_path / "bench_functions-2.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-functions\nVersion: 2.5\n")
    (facts / "entry_points.txt").write_text(
        "[dse.functions]\nbench = bench_functions:bench\nbroken = bench_functions:gone\n"
        "number = bench_functions:NUMBER\n"
    )
    (tmp_path / "bench_functions.py").write_text(
        "NUMBER = 3\ndef bench(rows):\n    return {'area': 10.0 * rows}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("registered")
def test_a_registered_function_is_found_by_name() -> None:
    evaluator = Python(function="bench", metrics={"area": "mm2"})
    again = pickle.loads(pickle.dumps(evaluator))
    assert (evaluator.reads, evaluator.version) == ({"rows"}, "2.5")
    assert again.evaluate(Batch.of([{"rows": 2}])).columns["area"].tolist() == [20]


@pytest.mark.usefixtures("registered")
def test_a_registered_function_is_pure_only_if_it_says_so(tmp_path: Path) -> None:
    said = "\nbench.pure = True\n"
    (name,) = Python(function="bench", metrics={"area": "mm2"}).starts
    assert "'bench'" in name
    assert "bench_functions:bench" in name
    assert not Python(function="bench", metrics={"area": "mm2"}, kind="modelled").pure
    module = tmp_path / "bench_functions.py"
    module.write_text(module.read_text() + said)
    sys.modules.pop("bench_functions")
    assert Python(function="bench", metrics={"area": "mm2"}, kind="modelled").pure


@pytest.mark.usefixtures("registered")
def test_a_function_that_cannot_be_imported_is_not_pure() -> None:
    late = Python(function="broken", metrics={"area": "mm2"}, reads=["rows"], kind="modelled")
    assert not late.pure


def test_a_function_that_the_program_gives_is_pure_and_one_that_is_not_here_is_not() -> None:
    assert Python(function=area, metrics={"area": "mm2"}).pure
    assert not Python(function=area, metrics={"area": "mm2"}).starts
    assert not Python(function="given:area", metrics={"area": "mm2"}, reads=["rows"]).pure


@pytest.mark.usefixtures("registered")
def test_a_name_that_is_a_little_off_gets_the_right_one() -> None:
    with pytest.raises(PluginError, match="did you mean 'bench'"):
        Python(function="bensh", metrics={"area": "mm2"})


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("path", ["bench_functions:bench", "bench_functions.py"])
def test_a_path_to_a_function_is_told_how_functions_are_named(path: str) -> None:
    with pytest.raises(PluginError, match="there is no function") as caught:
        Python(function=path, metrics={"area": "mm2"})
    assert "'dse.functions'" in caught.value.hint
    assert "use: command" in caught.value.hint


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("name", "named"), [("broken", "bench_functions:gone"), ("number", "3")])
def test_what_cannot_be_called_is_told(name: str, named: str) -> None:
    with pytest.raises(PluginError, match=named):
        Python(function=name, metrics={"area": "mm2"})


def test_a_number_is_no_function() -> None:
    with pytest.raises(PluginError, match="3 cannot be called"):
        Python(function=3, metrics={"area": "mm2"}, reads=["rows"])


def test_a_function_by_place_only_is_refused() -> None:
    with pytest.raises(PluginError, match="positional-only"):
        Python(function=lambda rows, /: {"area": rows}, metrics={"area": "mm2"})


def test_a_function_of_the_module_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(Python(function=area, metrics={"area": "mm2"})))
    got = again.evaluate(Batch.of([{"rows": 2, "cols": 3}]))
    assert got.columns["area"].tolist() == [10]
