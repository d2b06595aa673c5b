"""How well many drivers share one study, measured with processes and simulated for a thousand.

Prints CSV. ``processes`` forks so many drivers (one, then all) that evaluate by sleeping, on SQLite
or on the PostgreSQL of ``--storage``; ``simulated`` lets the same loops run on a clock that jumps,
with ``--race`` also without the queue, where drivers race for each ask as they did before.

``share`` is the part of the drivers' time in which they evaluate: of the possible throughput.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from simulated_drivers import Fleet, simulate

from dse.core.trial import Outcome
from dse.errors import Overtaken
from dse.executors.serial import Serial
from dse.protocols import Storage
from dse.storage.sql.database_storage import SqlStorage
from dse.study.replay import Replay
from dse.study.study_engine import StudyEngine

SPACE = """
space: many
parameters:
  a: {integer: [1, 100]}
  b: {integer: [1, 100]}
  c: {integer: [1, 100]}
"""
STUDY = """
study: many
space: space.yaml
evaluators:
  chip:
    use: expression
    metrics: {time: {formula: 1000 / (a * b) + c}, area: {formula: a * b + 3 * c}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
reference: {chip.time: 2000, chip.area: 50000}
optimizer: OPTIMIZER
budget: {trials: TRIALS}
seed: 5
"""


class Counted:
    """A storage that counts the calls of its methods: each is one transaction."""

    def __init__(self, storage: Storage) -> None:
        self.calls: Counter[str] = Counter()
        self.overtaken = 0
        self._storage = storage

    def __getattr__(self, name: str) -> Any:  # whatever the storage has
        method = getattr(self._storage, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            try:
                return method(*arguments, **named)
            except Overtaken:
                self.overtaken += 1
                raise

        return counted


class Sleeper(Serial):
    """Takes its time for each design."""

    def __init__(self, work: Any, seconds: float) -> None:
        super().__init__(work)
        self._seconds = seconds

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        time.sleep(self._seconds * len(self._tasks))
        return super().collect(timeout_s)


def main() -> None:
    """Measure or simulate, and print the table."""
    arguments = parse_arguments()
    rows = simulate_fleets(arguments) if arguments.what == "simulated" else measure(arguments)
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, row)
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()


def simulate_fleets(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Simulate drivers that evaluate for half to one and a half of the seconds."""
    for queue in (True, False)[: 2 if arguments.race else 1]:
        fleet = Fleet(
            drivers=arguments.drivers,
            evaluate_s=lambda _, number: (
                arguments.seconds * random.Random(number).uniform(0.5, 1.5)
            ),
            ask_s=lambda _: arguments.ask,
            time_s=arguments.rounds * arguments.seconds,
            queue=queue,
        )
        account = simulate(fleet)
        counts = [account.trials[place] for place in range(fleet.drivers)]
        yield {
            "storage": "with a queue" if queue else "without",
            "drivers": fleet.drivers,
            "evaluation_s": arguments.seconds,
            "ask_s": arguments.ask,
            "trials": sum(counts),
            "share": f"{account.share:.3f}",
            "calls_per_trial": f"{account.transactions_per_trial:.1f}",
            "asks_lost_per_trial": f"{account.asks_lost / max(1, sum(counts)):.2f}",
            "least": min(counts),
            "most": max(counts),
        }


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure one driver and then all of them, with as many trials for each."""
    alone_per_s = 0.0
    for drivers in (1, arguments.drivers):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            url = arguments.storage or f"sqlite:///{folder}/many.db"
            trials = drivers * arguments.rounds
            (folder / "space.yaml").write_text(SPACE)
            text = STUDY.replace("OPTIMIZER", arguments.optimizer)
            (folder / "many.yaml").write_text(text.replace("TRIALS", str(trials)))
            with begun(folder, url):
                seconds, accounts = drive(url, drivers, arguments.seconds)
                proof, shares = proved(url)
        alone_per_s = alone_per_s or trials / seconds
        calls = sum((one["calls"] for one in accounts), Counter[str]())
        yield {
            "storage": url.partition(":")[0],
            "drivers": drivers,
            "evaluation_s": arguments.seconds,
            "trials": trials,
            "seconds": f"{seconds:.2f}",
            "speedup": f"{trials / seconds / alone_per_s:.2f}",
            "share": f"{trials * arguments.seconds / seconds / drivers:.3f}",
            "calls_per_trial": f"{calls.total() / trials:.1f}",
            "asks": calls["add"],
            "asks_lost": sum(one["overtaken"] for one in accounts),
            "cpu_ms_per_trial": f"{1000 * sum(one['cpu_s'] for one in accounts) / trials:.0f}",
            "least": min(shares),
            "most": max(shares),
            "proof": proof,
        }


@contextmanager
def begun(folder: Path, url: str) -> Iterator[None]:
    """The study, until the block is left."""
    with closing(SqlStorage(url)) as storage:
        if "many" in storage.studies():
            storage.delete("many")
        StudyEngine.open(folder / "many.yaml", storage=storage)
    yield
    with closing(SqlStorage(url)) as storage:
        storage.delete("many")


def drive(url: str, drivers: int, seconds: float) -> tuple[float, list[dict[str, Any]]]:
    """Let forked drivers work on the study; how long it took, and what each of them did."""
    context = multiprocessing.get_context("fork")
    ready, answers = context.Barrier(drivers + 1), context.SimpleQueue()
    processes = [
        context.Process(target=work, args=(url, seconds, ready, answers)) for _ in range(drivers)
    ]
    for process in processes:
        process.start()
    ready.wait()
    started = time.perf_counter()
    accounts = [answers.get() for _ in processes]
    spent_s = time.perf_counter() - started
    for process in processes:
        process.join()
    return spent_s, accounts


def work(url: str, seconds: float, ready: Any, answers: Any) -> None:
    """Be one driver."""
    with closing(SqlStorage(url)) as storage:
        counted = Counted(storage)
        study = StudyEngine.load("many", cast(Storage, counted))
        ready.wait()
        before, calls_before = time.process_time(), Counter(counted.calls)
        study.run_by(Sleeper(study.plan.pipeline, seconds))
        answers.put(
            {
                "calls": counted.calls - calls_before,
                "overtaken": counted.overtaken,
                "cpu_s": time.process_time() - before,
                "memory_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            }
        )


def proved(url: str) -> tuple[str, list[int]]:
    """What a replay of the record comes to, and the trials of each driver."""
    with closing(SqlStorage(url)) as storage:
        study = StudyEngine.load("many", storage)
        counts = Counter(trial.worker for trial in study.trials)
        proof = Replay(study).proof()
        return ("whole" if proof.whole else "not whole"), list(counts.values())


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    kinds = parser.add_subparsers(dest="what", required=True)
    processes = kinds.add_parser("processes")
    processes.add_argument("--drivers", type=int, default=8)
    processes.add_argument("--seconds", type=float, default=1.0, help="of an evaluation")
    processes.add_argument("--rounds", type=int, default=20, help="trials for each driver")
    processes.add_argument("--optimizer", default="random")
    processes.add_argument("--storage", help="a URL; SQLite in a folder of its own without one")
    simulated = kinds.add_parser("simulated")
    simulated.add_argument("--drivers", type=int, default=1000)
    simulated.add_argument("--seconds", type=float, default=600.0, help="of an evaluation")
    simulated.add_argument("--ask", type=float, default=5.0, help="seconds of an ask")
    simulated.add_argument("--rounds", type=float, default=3.0, help="evaluations long")
    simulated.add_argument("--race", action="store_true", help="also without the queue: slow")
    return parser.parse_args()


if __name__ == "__main__":
    main()
