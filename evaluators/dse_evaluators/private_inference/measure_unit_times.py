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
_ROUNDS = 7
_LEAST_S = 0.02
_PLAINTEXTS = 64
_CIPHERTEXTS = 16
_KEYS = 16
"""As many as a window of 3 x 3 and eight diagonals need."""
_MOST_KEY_BYTES = 1 << 28


def settings() -> Iterator[tuple[int, int]]:
    """Yield the ring dimensions and numbers of data primes, of widths from 27 bits."""
    for ring in RINGS:
        for primes in range(1, min(SECURE_BITS[128][ring] // 27 - 1, _MOST_PRIMES) + 1):
            yield ring, primes


def measure_setting(ring: int, primes: int) -> tuple[float, ...]:
    """Return the CPU seconds of each operation, medians of rounds.

    Operands and rotation keys change from call to call, as in a layer, so that they come from
    memory and not from the cache.
    """
    width = min(SECURE_BITS[128][ring] // (primes + 1), 54)
    parameters = BfvParameters(
        ring=ring, data_primes=primes, prime_bits=width, plain_bits=_PLAIN_BITS
    )
    key_bytes = 16 * ring * primes * (primes + 1)
    turns = range(1, 1 + max(min(_KEYS, _MOST_KEY_BYTES // key_bytes), 2))
    session = SealSession(parameters, turns, swap=False)
    turn = cycle(turns)
    rng = np.random.default_rng(0)
    slots = rng.integers(0, 2**18, ring).tolist()
    ciphertexts = cycle([session.encrypt(slots) for _ in range(_CIPHERTEXTS)])
    plains = cycle([session.encode(slots) for _ in range(_PLAINTEXTS)])
    encoded = cycle([session.encode(slots, in_ntt=True) for _ in range(_PLAINTEXTS)])
    turned = cycle([session.to_ntt(next(ciphertexts)) for _ in range(_CIPHERTEXTS)])
    total = session.encrypt(slots)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: session.rotate(next(ciphertexts), next(turn)),
        lambda: session.add(total, next(ciphertexts)),
        lambda: session.multiply(next(ciphertexts), next(plains)),
        lambda: session.multiply(next(turned), next(encoded)),
        lambda: session.to_ntt(next(ciphertexts)),
        lambda: session.from_ntt(next(turned)),
    )
    return tuple(_median_s(call) for call in calls)


def _median_s(call: Callable[[], object]) -> float:
    call()
    begun, count = process_time(), 0
    while process_time() - begun < _LEAST_S:
        call()
        count += 1
    found = []
    for _ in range(_ROUNDS):
        begun = process_time()
        for _ in range(count):
            call()
        found.append((process_time() - begun) / count)
    return float(np.median(found))


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
