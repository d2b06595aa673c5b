"""Cycles and traffic in closed form against tiles that are counted one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.accelerators.training.split_arrays import ARRAYS, SUMS, Arrays, run
from dse_evaluators.accelerators.training.training_products import TrainingProducts

SIDE = 8
sizes = st.integers(1, 40)
kinds = st.sampled_from(sorted(ARRAYS))
policies = st.sampled_from(sorted(SUMS))


def products(m, n, k, *, sums=False):
    column = np.ones((1, 1))
    return TrainingProducts(
        m=m * column,
        n=n * column,
        k=k * column,
        inputs=column,
        outputs=column,
        weights=column,
        sums_samples=np.array([[sums]]),
        place=np.zeros(1, dtype=np.intp),
    )


def done(kind, m, n, k, *, rows=4, policy="drained", groups=1, sums=False):
    arrays = Arrays(
        kind=np.array([ARRAYS[kind]]),
        side=np.array([float(SIDE)]),
        groups=np.array([float(groups)]),
        block_rows=np.array([float(rows)]),
        sums=np.array([SUMS[policy]]),
    )
    return run(products(m, n, k, sums=sums), arrays)


def lengths(size, side):
    """The lengths of the tiles that a dimension is cut into."""
    return [min(side, size - start) for start in range(0, size, side)]


def counted(kind, m, n, k, rows, policy):
    """Cycles, and words read and written, tile by tile."""
    side = SIDE // 2 if kind == "split" else SIDE
    cycles, read, written = 0.0, 0.0, 0.0
    for across in lengths(n, side):
        for down in lengths(k, side):
            narrow = (across <= SIDE / 2) + (down <= SIDE / 2)
            parts = 2**narrow if kind == "flexible" else 1
            cycles += m / (4 if kind == "split" else parts)
            read += m * down + across * down * math.ceil(m / (rows * parts))
            written += 2 * m * across if policy == "drained" else 0
    return cycles, read, written + (m * n if policy == "kept" else 0)


@given(kinds, sizes, sizes, sizes, st.integers(1, 20), policies)
def test_the_closed_form_is_what_counting_tiles_gives(kind, m, n, k, rows, policy):
    got = done(kind, m, n, k, rows=rows, policy=policy)
    cycles, read, written = counted(kind, m, n, k, rows, policy)
    assert got.cycles[0, 0] == cycles
    assert (got.read_bytes[0, 0] / 2, got.written_bytes[0, 0] / 2) == (read, written)


@given(sizes, sizes, sizes)
def test_parts_that_can_be_one_are_as_fast_as_parts_alone(m, n, k):
    assert done("flexible", m, n, k).cycles == done("split", m, n, k).cycles


@given(sizes, sizes, sizes, policies)
def test_and_never_move_more(m, n, k, policy):
    one, other = done("flexible", m, n, k, policy=policy), done("split", m, n, k, policy=policy)
    assert one.read_bytes + one.written_bytes <= other.read_bytes + other.written_bytes


@given(sizes, sizes, sizes)
def test_they_are_never_slower_than_a_large_array(m, n, k):
    assert done("flexible", m, n, k).cycles <= done("large", m, n, k).cycles


@given(kinds, sizes, sizes, sizes)
def test_no_element_multiplies_twice_in_a_cycle(kind, m, n, k):
    assert done(kind, m, n, k).cycles[0, 0] * SIDE**2 >= m * n * k


@given(sizes, sizes, sizes, st.integers(1, 20), policies)
def test_longer_blocks_of_rows_never_move_more(m, n, k, rows, policy):
    short = done("flexible", m, n, k, rows=rows, policy=policy)
    long = done("flexible", m, n, k, rows=2 * rows, policy=policy)
    assert long.read_bytes <= short.read_bytes


@pytest.mark.parametrize("sums", [False, True])
def test_groups_share_the_rows_or_the_samples_that_are_summed(sums):
    alone = done("large", 64, SIDE, 64, sums=sums).cycles
    assert done("large", 64, SIDE, 64, sums=sums, groups=4).cycles == alone / 4


def test_groups_that_share_samples_add_up_their_sums():
    read = done("large", SIDE, SIDE, 4 * SIDE, sums=True, groups=4).read_bytes[0, 0]
    alone = done("large", SIDE, SIDE, 4 * SIDE, sums=True).read_bytes[0, 0]
    assert read - alone == 4 * 2 * SIDE * SIDE * 2  # four groups, two words, of two bytes


@pytest.mark.parametrize(
    ("n", "k", "share"), [(SIDE, SIDE, 0.0), (4, SIDE, 1.0), (4, 4, 1.0), (12, SIDE, 1 / 3)]
)
def test_parts_work_apart_on_narrow_tiles_alone(n, k, share):
    got = done("flexible", 60, n, k)
    assert got.parted_cycles[0, 0] / got.cycles[0, 0] == pytest.approx(share)
