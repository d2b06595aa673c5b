"""Traces of embedding look-ups, and the share that a limited number of queries retrieves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import parse_whole, read_csv_rows

MOVIELENS = "movielens"
_Ids = NDArray[np.int64]
_MOST_NEIGHBOURS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupTrace:
    """Trace of table look-ups: half for statistics, half to evaluate designs.

    Attributes:
        entries: number of entries of the table.
        order: entries by falling number of look-ups in the first half.
        judged: entries that each inference of the second half looks up.
        neighbours: for each entry the entries most often looked up with it in the first half, the
            most frequent first.
    """

    entries: int
    order: _Ids
    judged: tuple[tuple[int, ...], ...]
    neighbours: tuple[tuple[int, ...], ...]

    def top_share(self, share: float) -> float:
        """Return the share of the second half's look-ups that go to a share of top entries.

        The top entries are those with the most look-ups in the first half.
        """
        top = set(self.order[: max(round(share * self.entries), 1)].tolist())
        asked = [one for session in self.judged for one in session]
        return sum(one in top for one in asked) / len(asked)


@lru_cache(maxsize=8)
def read_trace(source: str, lookups: int, most: int) -> LookupTrace:
    """Return the trace of a CSV file with the columns user and item, or of MovieLens-100k.

    Users are divided into two halves. Each inference looks up ``lookups`` items of one user.

    Args:
        source: path of the file, or ``movielens``.
        lookups: look-ups of an inference.
        most: largest number of inferences that are kept of the second half.

    Raises:
        SpecError: the file cannot be read, or has too few rows.
        PluginError: the asset of MovieLens is not installed.
    """
    users, items = _movielens() if source == MOVIELENS else _rows(Path(source))
    known, item = np.unique(items, return_inverse=True)
    sessions: list[list[tuple[int, ...]]] = [[], []]
    rng = np.random.default_rng(0)
    for place, user in enumerate(rng.permutation(np.unique(users)).tolist()):
        own = rng.permutation(item[users == user])
        whole = len(own) // lookups * lookups
        sessions[place % 2] += [tuple(row) for row in own[:whole].reshape(-1, lookups).tolist()]
    if not all(sessions):
        hint = f"two users with {lookups} rows or more"
        raise SpecError(f"{source} has too few rows for an inference", hint=hint, part=["trace"])
    counts = np.bincount([one for row in sessions[0] for one in row], minlength=len(known))
    return LookupTrace(
        entries=len(known),
        order=np.argsort(-counts, kind="stable"),
        judged=tuple(sessions[1][:most]),
        neighbours=_neighbours(sessions[0], len(known)),
    )


def recovered_share(
    trace: LookupTrace, tables: Sequence[tuple[_Ids, int, int]], near: int
) -> float:
    """Return the share of the second half's look-ups that are retrieved.

    Args:
        trace: the trace.
        tables: for each table its entries, its number of bins, and the queries to each bin. An
            entry is in the bin of its place modulo the number of bins.
        near: number of neighbours that are stored and returned with each entry.
    """
    bins = {
        entry: (table, place % count)
        for table, (entries, count, _) in reversed(list(enumerate(tables)))
        for place, entry in enumerate(entries.tolist())
    }
    found = asked = 0
    for session in trace.judged:
        left = Counter({(t, b): q for t, (_, count, q) in enumerate(tables) for b in range(count)})
        have: set[int] = set()
        for entry in session:
            if entry not in have and left[bins[entry]] > 0:
                left[bins[entry]] -= 1
                have |= {entry, *trace.neighbours[entry][:near]}
        found += sum(entry in have for entry in session)
        asked += len(session)
    return found / asked


def _neighbours(sessions: Sequence[tuple[int, ...]], entries: int) -> tuple[tuple[int, ...], ...]:
    together = np.zeros((entries, entries), dtype=np.int32)
    for session in sessions:
        own = np.array(session)
        together[own[:, None], own] += 1
    np.fill_diagonal(together, 0)
    best = np.argsort(-together, axis=1, kind="stable")[:, :_MOST_NEIGHBOURS]
    return tuple(
        tuple(one for one in row.tolist() if together[entry, one]) for entry, row in enumerate(best)
    )


def _movielens() -> tuple[_Ids, _Ids]:
    from dse_evaluators.workloads.movielens import movielens

    ids = np.concatenate([part.ids for part in (movielens().train, movielens().search)])
    return ids[:, 0], ids[:, 1]


def _rows(path: Path) -> tuple[_Ids, _Ids]:
    example = f"user,item, or trace: {MOVIELENS}"
    rows = read_csv_rows(path, ("user", "item"), example=example, part=["trace"])
    found = [[parse_whole(row, name, 0) for name in ("user", "item")] for row in rows]
    table = np.array(found, dtype=np.int64)
    return table[:, 0], table[:, 1]
