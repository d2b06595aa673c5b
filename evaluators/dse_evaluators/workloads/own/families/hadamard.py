"""Hadamard matrices, and random rotations that are made of them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError

_PAIR = np.array([[1.0, 1.0], [1.0, -1.0]])


def hadamard_matrix(size: int) -> Floats:
    """Return a matrix of 1 and -1 with orthogonal rows, (size, size).

    Sizes are powers of two, q + 1 and 2 (q + 1) for some primes q, and these doubled any number of
    times: 1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48 and so on.

    Source:
        Sylvester, 1867 (doubling); Paley, On Orthogonal Matrices, 1933, lemmas 2 and 3.

    Raises:
        SpecError: no matrix of this size is known here.
    """
    if not has_hadamard_matrix(size):
        raise SpecError(f"no Hadamard matrix of size {size} is known here", hint="a multiple of 4")
    if size == 1:
        return np.ones((1, 1))
    if has_hadamard_matrix(size // 2) and size % 2 == 0:
        return np.kron(_PAIR, hadamard_matrix(size // 2))
    if _is_prime(size - 1) and size % 4 == 0:
        return np.eye(size) + _border(size - 1, sign=-1.0)
    conference = _border(size // 2 - 1, sign=1.0)
    return np.kron(conference, _PAIR) + np.kron(np.eye(size // 2), _PAIR[::-1] * [[1], [-1]])


def has_hadamard_matrix(size: int) -> bool:
    """Return whether a Hadamard matrix of this size can be constructed."""
    if size in (1, 2):
        return True
    if size < 1 or size % 4:
        return False
    half = size // 2
    of_paley = _is_prime(size - 1) or (half % 4 == 2 and _is_prime(half - 1))
    return of_paley or has_hadamard_matrix(half)


def hadamard_block(size: int) -> int:
    """Return the size of the largest Hadamard matrix that divides a size.

    Raises:
        SpecError: the size is odd, so that only single numbers could be rotated.
    """
    found = next(one for one in range(size, 0, -1) if not size % one and has_hadamard_matrix(one))
    if found == 1 and size > 1:
        raise SpecError(
            f"vectors of {size} numbers have no Hadamard rotation", hint="an even width has one"
        )
    return found


@lru_cache(maxsize=4)
def random_rotation(size: int, seed: int) -> Floats:
    """Return a random orthogonal matrix: signs times Hadamard matrices, (size, size).

    Without a Hadamard matrix of the full size, the matrix is block-diagonal.

    Args:
        size: length of the vectors, which are multiplied from the left.
        seed: seed of the signs.

    Source:
        Ashkboos et al., QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs, 2024, section 3
        (randomized Hadamard transformation).

    Raises:
        SpecError: the size is odd.
    """
    block = hadamard_block(size)
    signs = np.random.default_rng([seed, size]).choice([-1.0, 1.0], size)
    matrix = hadamard_matrix(block) / np.sqrt(block)
    rotation = signs[:, None] * np.kron(np.eye(size // block), matrix)
    rotation.flags.writeable = False
    return rotation


def _border(prime: int, sign: float) -> Floats:
    """Return the quadratic characters of differences modulo a prime, with a border of ones.

    The lower border has the sign ``sign``, and the corner is zero.
    """
    squares = {place * place % prime for place in range(1, prime)}
    character = np.array([0.0] + [1.0 if p in squares else -1.0 for p in range(1, prime)])
    places = np.arange(prime)
    table = np.zeros((prime + 1, prime + 1))
    table[0, 1:] = 1
    table[1:, 0] = sign
    table[1:, 1:] = character[(places[:, None] - places[None, :]) % prime]
    return table


def _is_prime(number: int) -> bool:
    return number > 2 and all(number % one for one in range(2, int(number**0.5) + 1))
