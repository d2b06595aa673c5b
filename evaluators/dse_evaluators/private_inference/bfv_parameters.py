"""Security, plaintext modulus and noise of BFV, as in SEAL 4."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from dse.core.values import Floats, Ints

RINGS = (2048, 4096, 8192, 16384, 32768)

SECURE_BITS: Mapping[int, Mapping[int, int]] = {
    128: dict(zip(RINGS, (54, 109, 218, 438, 881), strict=True)),
    192: dict(zip(RINGS, (37, 75, 152, 305, 611), strict=True)),
    256: dict(zip(RINGS, (29, 58, 118, 237, 476), strict=True)),
}
"""Most bits of the entire coefficient modulus, by level and ring dimension, ternary secrets.

Source:
    Albrecht et al.: Homomorphic Encryption Security Standard, 2018, table 1 (classical attacks).
"""

ERROR_VARIANCE = 10.5
"""Variance of SEAL's errors: a centred binomial of 42 bits.

Source:
    microsoft/SEAL, native/src/seal/util/rlwe.cpp: sample_poly_cbd.
"""

_NOISE = Path(__file__).with_name("bfv_largest_noise.csv")
_SHARE_STEP = 0.15
"""Step between the columns of the table of largest noise, in shares of a random walk from 0."""

_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def fresh_variance(ring: Floats) -> Floats:
    """Return the noise variance of a coefficient of a freshly encrypted ciphertext.

    SEAL encrypts with the key-switching prime and divides by it. The noise that remains is the
    rounding error of both components, one of which is multiplied by a ternary secret, and the
    rounding error of the scaled plaintext.
    """
    return (2.0 * ring / 3.0 + 2.0) / 12.0


def switch_variance(ring: Floats, data_primes: Floats) -> tuple[Floats, Floats]:
    """Return the variances that a key switch adds: independent coefficients, and a random walk.

    Each digit is uniform below a prime and multiplied by an error; the sum over the digits is
    divided by the key-switching prime and rounded. The mean of the digits times the errors is a
    random walk over the coefficients; the deviations from the mean are independent, and have a
    third of the variance of the walk. All primes have the same width.
    """
    digits = data_primes * ring * ERROR_VARIANCE / 12.0
    return digits + (2.0 * ring / 3.0 + 1.0) / 12.0, 3.0 * digits


def product_factor(ring: Floats, plain_log2: Floats) -> Floats:
    """Return the factor by which a product with a plaintext increases the variance of the noise.

    The plaintext's coefficients are uniform modulo the plaintext modulus.
    """
    return ring * np.exp2(2.0 * plain_log2) / 12.0


def largest_noise(place: Ints, walk_share: Floats, parts: Floats, outputs: Floats) -> Floats:
    """Return the expected largest noise coefficient, as log2 of its multiple of the deviation.

    Args:
        place: index of the ring dimension in :data:`RINGS`, (n,).
        walk_share: share of the variance that is a random walk over the coefficients, (n,).
        parts: number of differently rotated walks that are added, (n,).
        outputs: number of ciphertexts over whose coefficients the maximum is taken, (n,).

    Source:
        Simulated by ``benchmarks/bfv_noise_table.py``; interpolated linearly in the share and in
        the logarithms of ``parts`` and ``outputs``.
    """
    table = _noise_table()
    axes = (np.log2(outputs) / 2.0, np.log2(parts), walk_share / _SHARE_STEP)
    found = np.zeros(len(place))
    sides = [_find_sides(axis, size) for axis, size in zip(axes, table.shape[1:], strict=True)]
    for (one, p), (two, q), (three, r) in product(*sides):
        found += table[place, one, two, three] * (p * q * r)
    return found


def _find_sides(axis: Floats, size: int) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
    """Return the two grid indices around each position on an axis, with interpolation weights."""
    position = np.clip(axis, 0.0, size - 1.0)
    below = np.minimum(position.astype(np.int64), size - 2)
    weight = position - below
    return (below, 1.0 - weight), (below + 1, weight)


@cache
def _noise_table() -> Floats:
    """Return the table of :func:`largest_noise`, (rings, outputs, parts, shares)."""
    with _NOISE.open(encoding="utf-8", newline="") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    outputs, parts = ({row[place] for row in rows} for place in (1, 2))
    values = np.array([row[3:] for row in rows])
    return values.reshape(len(RINGS), len(outputs), len(parts), -1)


@cache
def plain_modulus(ring: int, bits: int) -> int:
    """Return the largest prime of ``bits`` bits that gives a ring slots; 0 if there is none."""
    if bits < 2:
        return 0
    step = 2 * ring
    value = (2**bits - 1) // step * step + 1
    while value > 2 ** (bits - 1):
        if value < 2**bits and _is_prime(value):
            return value
        value -= step
    return 0


def _is_prime(value: int) -> bool:
    """Test a number below 3e24 by the Miller-Rabin test with fixed witnesses."""
    if value < 2 or any(value % prime == 0 for prime in _WITNESSES):
        return value in _WITNESSES
    odd, twos = value - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(value, witness, odd, twos) for witness in _WITNESSES)


def _passes(value: int, witness: int, odd: int, twos: int) -> bool:
    power = pow(witness, odd, value)
    if power in (1, value - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % value
        if power == value - 1:
            return True
    return False
