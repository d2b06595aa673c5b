"""What is known in each of many states, as codes into few distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.values import Array, Ints, Value


@dataclass(slots=True)
class Known:
    """A value that rules still need, in every state: a code into its distinct values."""

    codes: Ints  # (s,), -1 where it is absent
    values: Array  # (v,)
    domain: tuple[Value, ...] = ()

    def column(self) -> Column:
        """The value in each state."""
        if self.domain:
            return Column.coded(self.domain, self.codes)
        gone = self.codes < 0
        filler = self.values if len(self.values) else np.zeros(1)
        return Column(filler[np.where(gone, 0, self.codes)], gone if gone.any() else None)


def taken(known: Known, rows: Ints) -> Known:
    """The value in these states."""
    return Known(known.codes[rows], known.values, known.domain)


def coded(column: Column) -> Known:
    """The column as codes into its distinct values; absent and NaN are told apart."""
    values, codes = np.unique(column.values, return_inverse=True)
    codes = codes.astype(np.int64).reshape(-1)
    if column.absent is not None:
        codes = np.where(column.absent, -1, codes)
    return Known(codes, values)


def keys(known: Sequence[Known], size: int) -> Ints:
    """One number per state, equal for states that agree in all of these, (size,)."""
    key, scale = np.zeros(size, dtype=np.int64), 1
    for one in known:
        span = len(one.values) + 1
        if scale * span >= 2**62:
            _, key = np.unique(key, return_inverse=True)
            scale = int(key.max(initial=0)) + 1
        key, scale = key * span + (one.codes + 1), scale * span
    return key
