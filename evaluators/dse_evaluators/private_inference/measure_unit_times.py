"""Command that measures single BFV operations on this machine and writes a CSV file of them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from dse_evaluators.private_inference.bfv_parameters import RINGS, SECURE_BITS
from dse_evaluators.private_inference.seal_session import BfvParameters, SealSession
from dse_evaluators.private_inference.unit_times import COLUMNS

_MOST_PRIMES = 8
_PLAIN_BITS = 20
_ROUNDS = 9
_LEAST_CPU_S = 0.02
_PLAINTEXTS = 64
_CIPHERTEXTS = 16
_KEYS = 16
"""Number of rotation keys: as many as a window of 3 x 3 and eight diagonals need."""
_MOST_KEY_BYTES = 1 << 28


def settings() -> Iterator[tuple[int, int]]:
    """Yield the settings to time: ring dimensions with numbers of data primes."""
    for ring in RINGS:
        for primes in range(1, min(SECURE_BITS[128][ring] // 27 - 1, _MOST_PRIMES) + 1):
            yield ring, primes


class UnitMeter:
    """Homomorphic operations under one set of encryption parameters, ready to be timed.

    Operands and rotation keys change from call to call, as in a layer, so that they come from
    memory and not from the cache.
    """

    def __init__(self, ring: int, primes: int) -> None:
        width = min(SECURE_BITS[128][ring] // (primes + 1), 54)
        parameters = BfvParameters(
            ring=ring, data_primes=primes, prime_bits=width, plain_bits=_PLAIN_BITS
        )
        key_bytes = 16 * ring * primes * (primes + 1)
        turns = range(1, 1 + max(min(_KEYS, _MOST_KEY_BYTES // key_bytes), 2))
        session = SealSession(parameters, turns, swap=False)
        turn = cycle(turns)
        slots = np.random.default_rng(0).integers(0, 2**18, ring).tolist()
        ciphertexts = cycle([session.encrypt(slots) for _ in range(_CIPHERTEXTS)])
        plains = cycle([session.encode(slots) for _ in range(_PLAINTEXTS)])
        encoded = cycle([session.encode(slots, in_ntt=True) for _ in range(_PLAINTEXTS)])
        turned = cycle([session.to_ntt(next(ciphertexts)) for _ in range(_CIPHERTEXTS)])
        total = session.encrypt(slots)
        self._calls: tuple[Callable[[], Any], ...] = (
            lambda: session.rotate(next(ciphertexts), next(turn)),
            lambda: session.add(total, next(ciphertexts)),
            lambda: session.multiply(next(ciphertexts), next(plains)),
            lambda: session.multiply(next(turned), next(encoded)),
            lambda: session.to_ntt(next(ciphertexts)),
            lambda: session.from_ntt(next(turned)),
        )

    def measure(self, least_s: float) -> tuple[float, ...]:
        """Return the CPU seconds of each operation, as means over at least ``least_s`` seconds."""
        return tuple(_mean_s(call, least_s) for call in self._calls)


def measure_setting(ring: int, primes: int) -> tuple[float, ...]:
    """Return the CPU seconds of each operation: the least of several rounds."""
    meter = UnitMeter(ring, primes)
    rounds = [meter.measure(_LEAST_CPU_S) for _ in range(_ROUNDS)]
    return tuple(np.min(rounds, axis=0).tolist())


def _mean_s(call: Callable[[], object], least_s: float) -> float:
    begun, count = process_time(), 0
    while process_time() - begun < least_s:
        call()
        count += 1
    return (process_time() - begun) / count


def main(path: str) -> None:
    """Measure all settings and write them to a file."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for ring, primes in settings():
            seconds = measure_setting(ring, primes)
            rows.writerow([ring, primes, *(f"{value:.4g}" for value in seconds)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m dse_evaluators.private_inference.measure_unit_times FILE")
    main(sys.argv[1])
