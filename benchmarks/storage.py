"""How fast a storage takes trials and gives them back: ``python benchmarks/storage.py [URL]``.

Prints CSV. Without a URL a new SQLite file is used in the folder for temporary files, so the
figures are those of its disk.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.protocols import Storage
from dse.registry import make

TRIALS = 100_000
BATCH = 1000
ALONE = 500


def main() -> None:
    """Measure the storage at the URL of the command line, or SQLite."""
    print("what,trials,seconds,trials_per_s")
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(f"sqlite:///{folder}/study.db")


def measure(url: str) -> None:
    """Print one row per way of using the storage."""
    storage: Storage = make("storages", url.partition(":")[0].partition("+")[0], url)
    study = f"benchmark-{time.time_ns()}"
    storage.create(study, {})
    designs = [design(number) for number in range(TRIALS)]
    timed("add one by one", ALONE, lambda: [storage.add(study, [d], 0) for d in designs[:ALONE]])
    timed(
        "finish one by one",
        ALONE,
        lambda: [storage.finish(study, {number: outcome(number)}) for number in range(ALONE)],
    )
    rest = range(ALONE, TRIALS, BATCH)
    timed(
        f"add by {BATCH}",
        TRIALS - ALONE,
        lambda: [storage.add(study, designs[at : at + BATCH], 0) for at in rest],
    )
    timed(
        f"finish by {BATCH}",
        TRIALS - ALONE,
        lambda: [
            storage.finish(study, {n: outcome(n) for n in range(at, min(at + BATCH, TRIALS))})
            for at in rest
        ],
    )
    timed("load", TRIALS, lambda: storage.trials(study))
    storage.delete(study)
    storage.close()


def design(number: int) -> Design:
    """A design of five parameters."""
    return Design(
        {"tp": number, "pp": 8, "clock": 1e6 * number, "format": "int8", "sparse": number % 2 == 0}
    )


def outcome(number: int) -> Outcome:
    """An outcome of four metrics."""
    metrics = {"q.accuracy": 1 / (1 + number), "c.energy": 1e-3, "c.latency": 0.1, "c.area": 3.3}
    return Outcome(state=State.DONE, metrics=metrics, cost_s=0.25, measured=1)


def timed(what: str, trials: int, act: Callable[[], object]) -> None:
    """Do it once and print how long it took."""
    started = time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    print(f"{what},{trials},{seconds:.3f},{trials / seconds:.0f}", flush=True)


if __name__ == "__main__":
    main()
