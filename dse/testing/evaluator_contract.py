"""Contract tests of an evaluator: subclass, override two fixtures, run pytest.

.. code-block:: python

    class TestRoofline(EvaluatorContract):
        @pytest.fixture
        def make(self):
            return functools.partial(Roofline, peak="10 TFLOP/s")

        @pytest.fixture
        def batch(self):
            return Batch.of([{"intensity": 0.5}, {"intensity": 64.0}])
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, FailureKind, Kind, Metrics
from dse.protocols import COHERENT, EVERYTHING, Evaluator, is_pure, started_programs
from dse.units.units import unit

_HEAVY = frozenset({"ax", "botorch", "gpytorch", "pymoo", "ray", "sklearn", "sqlalchemy", "torch"})

_MAKER = """
import os, pickle, sys
import numpy, dse.protocols, dse.units.units
while True:
    try:
        path, made = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    if os.fork():
        os.wait()
        continue
    sys.path[:] = path
    try:
        pickle.loads(made)()
        print(*sorted(sys.modules), flush=True)
    except BaseException as error:
        print("error:", repr(error).replace(chr(10), " "), flush=True)
    os._exit(0)
"""

STARTING = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "pty.spawn",
    }
)

CONNECTING = frozenset(
    {
        "socket.connect",
        "socket.sendto",
        "socket.bind",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
    }
)


class EvaluatorContract:
    """Contract tests of :class:`~dse.protocols.Evaluator`; repeated results agree to 12 digits."""

    @pytest.fixture
    def make(self) -> Callable[[], Evaluator]:
        """Return the factory of the evaluator: its class, or a ``functools.partial``.

        A ``functools.partial`` carries the evaluator's options.
        """
        raise NotImplementedError("the contract needs the fixture 'make'")

    @pytest.fixture
    def batch(self) -> Batch:
        """Return at least two designs, one of which can be evaluated; extra columns are allowed."""
        raise NotImplementedError("the contract needs the fixture 'batch'")

    @pytest.fixture
    def noisy(self) -> frozenset[str]:
        """Return the names of metrics that vary from call to call, such as a measured time."""
        return frozenset()

    @pytest.fixture
    def evaluator(self, make: Callable[[], Evaluator]) -> Evaluator:
        """Return the evaluator under test."""
        return make()

    @pytest.fixture
    def metrics(self, evaluator: Evaluator, batch: Batch) -> Metrics:
        """Return the metrics of the designs in ``batch``; override with a wider scope if slow."""
        return evaluator.evaluate(batch)

    def test_it_says_what_it_is(self, evaluator: Evaluator, batch: Batch) -> None:
        assert evaluator.kind in get_args(Kind)
        assert isinstance(evaluator.version, str)
        assert evaluator.version
        assert not evaluator.reads & evaluator.optional
        assert evaluator.reads - {EVERYTHING} <= batch.names
        assert len(batch) >= 2

    def test_it_gives_the_same_row_whatever_the_batch_around_it(
        self, evaluator: Evaluator, batch: Batch, metrics: Metrics, noisy: frozenset[str]
    ) -> None:
        backwards = evaluator.evaluate(batch.take(np.arange(len(batch))[::-1]))
        for row in range(len(batch)):
            alone = evaluator.evaluate(batch.take(np.array([row])))
            wanted = pytest.approx(_row(alone, 0, noisy), rel=1e-12, nan_ok=True)
            assert _row(metrics, row, noisy) == wanted
            assert _row(backwards, len(batch) - 1 - row, noisy) == wanted

    def test_it_provides_every_metric_that_it_declares_for_every_row_without_a_fault(
        self, evaluator: Evaluator, batch: Batch, metrics: Metrics
    ) -> None:
        good = np.array([row for row in range(len(batch)) if row not in metrics.failures])
        assert len(good)
        assert evaluator.provides
        for name in evaluator.provides:
            values = np.asarray(metrics.columns[name])
            assert values.shape == (len(batch),)
            assert values.dtype == np.float64
            unsaid = [row for row in good.tolist() if row not in metrics.undefined.get(name, {})]
            assert np.isfinite(values[unsaid]).all()

    def test_what_is_declared_a_part_sums_to_the_total(
        self, evaluator: Evaluator, batch: Batch, metrics: Metrics
    ) -> None:
        good = np.array([row for row in range(len(batch)) if row not in metrics.failures])
        for whole in {m.part_of for m in evaluator.provides.values()} - {""}:
            parts = [m for m in evaluator.provides.values() if m.part_of == whole]
            assert {part.unit for part in parts} == {evaluator.provides[whole].unit}
            total = np.sum([metrics.columns[part.name][good] for part in parts], axis=0)
            assert total == pytest.approx(metrics.columns[whole][good], rel=1e-9)

    def test_a_metric_with_words_is_the_index_of_one(
        self, evaluator: Evaluator, batch: Batch, metrics: Metrics
    ) -> None:
        good = np.array([row for row in range(len(batch)) if row not in metrics.failures])
        for name, metric in evaluator.provides.items():
            if metric.words:
                assert set(metrics.columns[name][good]) <= set(range(len(metric.words)))

    def test_its_units_are_units(self, evaluator: Evaluator) -> None:
        for name, metric in evaluator.provides.items():
            assert metric.name == name
            unit(metric.unit)
        for wanted in evaluator.units.values():
            unit("" if wanted == COHERENT else wanted)
        if EVERYTHING not in evaluator.reads:
            assert evaluator.units.keys() <= evaluator.reads | evaluator.optional

    def test_it_reads_nothing_but_what_it_declares(
        self, evaluator: Evaluator, batch: Batch, noisy: frozenset[str]
    ) -> None:
        declared = evaluator.reads | evaluator.optional
        if EVERYTHING in declared:
            declared = batch.names
        narrow = evaluator.evaluate(batch.renamed({name: name for name in declared}))
        unread = {f"unread_{n}": Column(np.full(len(batch), float(n))) for n in range(3)}
        more = {} if EVERYTHING in evaluator.reads else unread
        _same(narrow, evaluator.evaluate(batch.with_columns(more)), len(batch), noisy)

    def test_it_can_do_without_what_is_optional(self, evaluator: Evaluator, batch: Batch) -> None:
        needed = batch.names if EVERYTHING in evaluator.reads else evaluator.reads
        got = evaluator.evaluate(batch.renamed({name: name for name in needed}))
        assert set(got.columns) >= set(evaluator.provides)

    def test_a_rows_fault_is_in_faults(self, batch: Batch, metrics: Metrics) -> None:
        for row, failure in metrics.failures.items():
            assert 0 <= row < len(batch)
            assert isinstance(failure, Failure)
            assert failure.kind in get_args(FailureKind)
            assert failure.reason

    def test_one_that_is_pure_starts_no_program_and_opens_no_connection(
        self, evaluator: Evaluator, batch: Batch
    ) -> None:
        pure = is_pure(evaluator)
        with traced() as started:
            if pure:
                evaluator.evaluate(batch)
        assert started == []
        assert not (pure and started_programs(evaluator))

    def test_it_survives_pickling(
        self, evaluator: Evaluator, batch: Batch, metrics: Metrics, noisy: frozenset[str]
    ) -> None:
        again: Evaluator = pickle.loads(pickle.dumps(evaluator))  # noqa: S301 - our own bytes
        assert again.provides == evaluator.provides
        assert (again.reads, again.optional) == (evaluator.reads, evaluator.optional)
        assert (again.kind, again.version) == (evaluator.kind, evaluator.version)
        _same(again.evaluate(batch), metrics, len(batch), noisy)

    def test_it_is_cheap_to_make(self, make: Callable[[], Evaluator]) -> None:
        modules = _modules_after(make)
        assert modules[0] != "error:", " ".join(modules)
        assert not _HEAVY & set(modules), "import it in evaluate"


def _modules_after(make: Callable[[], Evaluator]) -> list[str]:
    """Return the modules loaded in a process that imported only numpy and made an evaluator."""
    maker = _maker()
    assert maker.stdin is not None
    assert maker.stdout is not None
    pickle.dump((sys.path, pickle.dumps(make)), maker.stdin)
    maker.stdin.flush()
    return maker.stdout.readline().decode().split()


@cache
def _maker() -> subprocess.Popen[bytes]:
    """Start a process that forks for each new evaluator, so that numpy is imported only once."""
    words = [sys.executable, "-c", _MAKER]
    maker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - a constant program
    atexit.register(maker.communicate)  # closes its standard input, which ends it
    return maker


def _same(got: Metrics, other: Metrics, size: int, noisy: frozenset[str]) -> None:
    for row in range(size):
        left, right = _row(got, row, noisy), _row(other, row, noisy)
        assert left == pytest.approx(right, rel=1e-12, nan_ok=True), (
            f"row {row}: {left} is not {right}"
        )


def _row(got: Metrics, row: int, noisy: frozenset[str]) -> dict[str, float]:
    """Return a design's metrics except the noisy ones or, if it has a failure, its kind."""
    if row in got.failures:
        return {got.failures[row].kind: 0.0}
    return {name: float(values[row]) for name, values in got.columns.items() if name not in noisy}


@dataclass
class _Ear:
    """Audit hook that records program starts and connections while it is ``on``."""

    on: bool = False
    files: Collection[str] = ()
    found: list[str] = field(default_factory=list)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        reads = event == "open" and str(arguments[0]) in self.files
        if reads or event in STARTING or event in CONNECTING:
            self.found.append(f"{event} {arguments!r:.300}")


@contextmanager
def traced(files: Collection[str] = ()) -> Iterator[list[str]]:
    """Yield a list to which each program start and connection inside the block is appended.

    All threads of this process are traced, but not its child processes.

    Args:
        files: paths, as passed to ``open``, whose opening is recorded as well.
    """
    ear = _ear()
    ear.on, ear.files, ear.found = True, files, []
    try:
        yield ear.found
    finally:
        ear.on = False


@cache
def _ear() -> _Ear:
    ear = _Ear()
    sys.addaudithook(ear.hear)  # audit hooks cannot be removed, so it is added only once
    return ear
