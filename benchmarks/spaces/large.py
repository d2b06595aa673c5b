"""Networks of real size under a budget of bits: CPU-seconds, memory and samples a second.

Run: python benchmarks/spaces/large.py
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np

from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files

DRAWN = 10_000
FOLDER = Path(__file__).parents[2] / "spaces/compression"
FILES = ("gpt_bits.yaml", "llama2_70b_bits.yaml")
FIXED: dict[str, dict[str, int]] = {
    "": {},
    ", one width fixed": {"bits[0]": 8},
    ", three fixed": {"bits[0]": 8, "bits[5]": 2, "bits[10]": 4},
}


def measure(name: str, values: dict[str, int], words: str) -> None:
    """Estimate and draw in this process, and print what it took."""
    space = space_of(FOLDER / name, Files()).fixed(values)
    start = time.process_time()
    estimate = space.estimate()
    counted = time.process_time()
    drawn = len(space.sample(DRAWN, np.random.default_rng(0)))
    ended = time.process_time()
    assert estimate is not None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    interval = f"{100 * (estimate.high - estimate.low) / estimate.count:.2g} % wide"
    print(
        f"{name}{words}: a number of {len(str(estimate.count))} digits, interval {interval}, "
        f"in {counted - start:.2f} CPU-s; {drawn:,} drawn in {ended - counted:.2f} CPU-s "
        f"({drawn / (ended - counted):,.0f} a second); {memory:.0f} MB"
    )


def main() -> None:
    """Measure each network in a process of its own."""
    for name in FILES:
        for words, values in FIXED.items():
            process = multiprocessing.get_context("spawn").Process(
                target=measure, args=(name, values, words)
            )
            process.start()
            process.join()


if __name__ == "__main__":
    main()
