"""The contract of evaluators finds each way of breaking a law."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.testing.evaluator_contract import EvaluatorContract

Columns = Callable[[Batch], Metrics]
LAWS = EvaluatorContract()
BATCH = Batch.of([{"rows": 8, "colour": 1.0}, {"rows": 16, "colour": 2.0}])
QUIET: frozenset[str] = frozenset()


class Bench:
    """An evaluator of one metric that does whatever it is told to."""

    reads = frozenset({"rows"})
    optional = frozenset({"cols"})
    kind = "modelled"
    version = "1"
    pure = False
    starts: tuple[str, ...] = ()

    def __init__(self, columns: Columns, unit: str = "W") -> None:
        self.evaluate = columns
        self.units: Mapping[str, str] = {}
        self.provides = {"power": Metric(name="power", unit=unit)}


def power(values: object) -> Metrics:
    return Metrics(columns={"power": np.asarray(values)})


def same_row(bench: Bench, noisy: frozenset[str]) -> None:
    law = LAWS.test_it_gives_the_same_row_whatever_the_batch_around_it
    law(bench, BATCH, bench.evaluate(BATCH), noisy)


def test_a_row_that_depends_on_its_batch_is_found() -> None:
    centred = Bench(lambda batch: power(batch["rows"] - batch["rows"].mean()))
    with pytest.raises(AssertionError):
        same_row(centred, QUIET)


def test_a_row_that_depends_on_its_place_is_found() -> None:
    counted = Bench(lambda batch: power(np.arange(len(batch), dtype=float)))
    with pytest.raises(AssertionError):
        same_row(counted, QUIET)


def test_a_program_that_one_starts_which_says_that_it_is_pure_is_found() -> None:
    law = LAWS.test_one_that_is_pure_starts_no_program_and_opens_no_connection

    def started(batch: Batch) -> Metrics:
        subprocess.run(["true"], check=True)
        return power(batch["rows"])

    bench = Bench(started)
    law(bench, BATCH)  # it says nothing of the kind
    bench.pure = True
    with pytest.raises(AssertionError):
        law(bench, BATCH)


def test_a_program_that_a_pure_one_says_it_starts_is_found() -> None:
    bench = Bench(lambda batch: power(batch["rows"]))
    bench.pure, bench.starts = True, ("bench.py",)
    with pytest.raises(AssertionError):
        LAWS.test_one_that_is_pure_starts_no_program_and_opens_no_connection(bench, BATCH)


def test_noise_is_forgiven_where_it_is_named() -> None:
    noise = np.random.default_rng(0)
    noisy = Bench(lambda batch: power(noise.random(len(batch))))
    same_row(noisy, frozenset({"power"}))


@pytest.mark.parametrize(
    "columns",
    [
        lambda batch: Metrics(columns={}),
        lambda batch: power(np.full(len(batch), np.nan)),
        lambda batch: power(np.ones(3)),
        lambda batch: power(["a", "b"]),
        lambda batch: Metrics(
            columns={"power": np.ones(2)},
            failures=dict.fromkeys(range(2), Failure(kind="raised", reason="always")),
        ),
    ],
    ids=["missing", "nan", "shape", "text", "faults"],
)
def test_a_metric_that_is_not_provided_is_found(columns: Columns) -> None:
    law = LAWS.test_it_provides_every_metric_that_it_declares_for_every_row_without_a_fault
    with pytest.raises((AssertionError, KeyError)):
        law(Bench(columns), BATCH, columns(BATCH))


def test_a_unit_that_is_none_is_found() -> None:
    with pytest.raises(Exception, match="no unit 'parsec'"):
        LAWS.test_its_units_are_units(Bench(power, unit="parsec"))


@pytest.mark.parametrize(
    "columns",
    [
        lambda batch: power(batch["rows"] * batch["colour"]),
        lambda batch: power(batch["rows"] * batch.get("colour", 7.0)),
        lambda batch: power(np.full(len(batch), float(len(batch.names)))),
    ],
    ids=["undeclared", "undeclared with a default", "counting columns"],
)
def test_a_reading_that_is_not_declared_is_found(columns: Columns) -> None:
    with pytest.raises((AssertionError, KeyError)):
        LAWS.test_it_reads_nothing_but_what_it_declares(Bench(columns), BATCH, QUIET)


def test_an_optional_reading_that_it_needs_is_found() -> None:
    needy = Bench(lambda batch: power(batch["rows"] * batch["cols"]))
    with pytest.raises(KeyError):
        LAWS.test_it_can_do_without_what_is_optional(needy, BATCH)


@pytest.mark.parametrize(
    "failures", [{2: Failure(kind="raised", reason="x")}, {0: Failure(kind="raised", reason="")}]
)
def test_a_fault_without_a_row_or_a_reason_is_found(failures: Mapping[int, Failure]) -> None:
    odd = Bench(lambda batch: Metrics(columns={"power": np.ones(2)}, failures=failures))
    with pytest.raises(AssertionError):
        LAWS.test_a_rows_fault_is_in_faults(BATCH, odd.evaluate(BATCH))


def test_what_cannot_be_pickled_is_found() -> None:
    two = power([1.0, 2.0])
    with pytest.raises((AttributeError, TypeError)):
        LAWS.test_it_survives_pickling(Bench(lambda batch: two), BATCH, two, QUIET)


def test_a_heavy_import_at_the_door_is_found() -> None:
    with pytest.raises(AssertionError, match="import it in evaluate"):
        LAWS.test_it_is_cheap_to_make(partial(__import__, "sqlalchemy"))
