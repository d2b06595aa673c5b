"""Values on which number formats go wrong: ties, subnormals, signs of zero, the edges of binades."""

from __future__ import annotations

import numpy as np
import pytest

COUNT = 200_000
POWERS = np.float32(2) ** np.arange(-149, 128, dtype=np.float32)


def _hard_values():
    """A million float32: normal, heavy-tailed, any bits, on and next to powers of two."""
    rng = np.random.default_rng(11)
    scattered = rng.standard_normal(2 * COUNT) * np.exp2(rng.integers(-14, 15, 2 * COUNT))
    heavy = rng.standard_t(1.5, 2 * COUNT)
    drawn = rng.integers(0, 2**32, COUNT, dtype=np.uint64).astype(np.uint32).view(np.float32)
    bits = np.where(np.isnan(drawn), np.float32(np.nan), drawn)  # a signalling NaN would warn
    edges = np.concatenate([POWERS, np.nextafter(POWERS, np.float32(0)), POWERS * np.float32(1.5)])
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38]
    parts = [scattered, heavy, bits, edges, -edges, special]
    return np.concatenate([np.asarray(part, dtype=np.float32) for part in parts])


def _around(numbers):
    """A grid's numbers, the middles between them, and the floats next to both."""
    finite = np.unique(numbers[np.isfinite(numbers)]).astype(np.float64)
    middles = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    points = np.concatenate([finite.astype(np.float32), middles])
    up, down = (np.nextafter(points, np.float32(end)) for end in (np.inf, -np.inf))
    return np.concatenate([points, up, down])


@pytest.fixture(scope="session")
def values():
    return _hard_values()


@pytest.fixture(scope="session")
def blocks():
    """A million values in blocks of 32, of all sizes; some just under a power of two, some zero."""
    rng = np.random.default_rng(12)
    many = 6_000
    scattered = rng.standard_normal((many, 32)) * np.exp2(rng.integers(-100, 100, (many, 1)))
    heavy = rng.standard_t(1.2, (many, 32))
    under = rng.standard_normal((many, 32))
    under /= np.abs(under).max(axis=1, keepdims=True)
    tops = np.nextafter(np.exp2(rng.integers(-90, 100, many)).astype(np.float32), np.float32(0))
    under = under * tops[:, None] * 0.99
    under[:, 3] = tops * rng.choice([-1, 1], many)
    ties = rng.integers(-12, 13, (many, 32)) * np.exp2(rng.integers(-4, 4, (many, 1)))
    sparse = rng.standard_normal((many, 32)) * (rng.random((many, 32)) < 0.3)
    sparse[: many // 8] = 0
    tiny = rng.standard_normal((many, 32)) * np.exp2(rng.integers(-149, -120, (many, 32)))
    tiny[:, 0] = 1e-30
    signed = np.where(sparse == 0, -0.0, sparse)
    tables = [scattered, heavy, under, ties, sparse, signed, tiny]
    return np.concatenate(tables).astype(np.float32)


@pytest.fixture(scope="session")
def near():
    """What gives the values around the numbers of a grid."""
    return _around
