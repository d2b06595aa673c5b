"""Networks of real size under a budget of bits: CPU-seconds, memory and samples a second.

Run: python benchmarks/spaces/large.py
"""

from __future__ import annotations

import multiprocessing
import resource
import time

import numpy as np

from dse.core.expression import Binary, Call, Compare, Expression, Name, Number
from dse.core.parameter import Ordinal
from dse.core.space import Space

WIDTHS = (2, 3, 4, 5, 6, 8)
AVERAGE = 4.25
DRAWN = 10_000
NETWORKS = {
    "GPT with biases, 96 matrices": (3 * 2**20 + 3072, 2**20 + 1024, 2**22 + 4096, 2**22 + 1024)
    * 24,
    "Llama-2-70B, 560 matrices": (2**26, 2**23, 2**23, 2**26, 7 * 2**25, 7 * 2**25, 7 * 2**25) * 80,
}


def network(sizes: tuple[int, ...]) -> Space:
    """Return the space of a width for each matrix, within the average for each weight."""
    bits = tuple(Ordinal(name=f"bits[{place}]", values=WIDTHS) for place in range(len(sizes)))
    terms = [Binary("*", Name(p.name), Number(size)) for p, size in zip(bits, sizes, strict=True)]
    limit = Number(AVERAGE * sum(sizes))
    rule = Expression("budget", Compare(("<=",), (Call("sum", tuple(terms)), limit)))
    return Space(parameters=bits, constraints=(rule,))


def measure(name: str) -> None:
    """Estimate and draw in this process, and print what it took."""
    space = network(NETWORKS[name])
    start = time.process_time()
    estimate = space.estimate()
    counted = time.process_time()
    drawn = len(space.sample(DRAWN, np.random.default_rng(0)))
    ended = time.process_time()
    assert estimate is not None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    interval = f"{100 * (estimate.high - estimate.low) / estimate.count:.2g} % wide"
    print(
        f"{name}: a number of {len(str(estimate.count))} digits, interval {interval}, "
        f"in {counted - start:.2f} CPU-s; {drawn:,} drawn in {ended - counted:.2f} CPU-s "
        f"({drawn / (ended - counted):,.0f} a second); {memory:.0f} MB"
    )


def main() -> None:
    """Measure each network in a process of its own."""
    for name in NETWORKS:
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(name,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
