"""Exact front of a modelled problem, by enumeration of all legal designs."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.proof import Coverage, design_failure_text
from dse.core.values import Floats
from dse.optimizers.exact.checkpoint import Checkpoint, EnumerationProgress, checkpoint_of
from dse.optimizers.exact.chunks import BATCH, search_stretch
from dse.optimizers.exact.running_front import RunningFront, spread
from dse.optimizers.exact.worker_pool import WorkerPool, portable

CHUNK = 4 * BATCH

_BEATERS = 512

_WORTH_S = 2.0
"""Seconds of remaining work below which starting workers takes longer than it saves."""

_KEEP_S = 5.0
"""Seconds between checkpoints; a search that takes less leaves no file."""

OnProgress = Callable[[int, int], None]
"""Progress callback, with the number of searched designs and the total number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactFront:
    """Exact front found by enumeration, with counts of the designs searched.

    Of designs with equal objectives the first is kept. If no design is feasible, ``designs`` holds
    the one with the least constraint violation, if any design has metrics.
    """

    designs: list[Design]
    feasible: int
    coverage: Coverage

    @property
    def total(self) -> int:
        """Number of legal designs of the space."""
        return self.coverage.legal


def exact_front(
    problem: Problem,
    *,
    workers: int | None = None,
    checkpoint: str | None = None,
    on_progress: OnProgress = lambda *_: None,
    chunk: int = CHUNK,
) -> ExactFront:
    """Return the exact front of a problem whose objectives and limits are all modelled.

    Args:
        problem: problem whose legal designs can be counted.
        workers: processes that search; by default one for each core, if that is faster.
        checkpoint: file that stores the progress; see
            :func:`~dse.optimizers.exact.checkpoint.checkpoint_of`.
        on_progress: called with the numbers of searched and of all designs, repeatedly.
        chunk: number of designs that one process searches before it returns a result.
    """
    search = _Search(problem, chunk, checkpoint, on_progress)
    found = search.run(workers)
    places = found.places
    if not found.feasible and found.least >= 0:
        places = np.array([found.least])
    designs = problem.space.legal.at_indices(places).designs() if len(places) else []
    return ExactFront(
        designs=designs, feasible=found.feasible, coverage=_coverage(problem, found, designs)
    )


def _coverage(problem: Problem, found: RunningFront, designs: list[Design]) -> Coverage:
    example = ""
    if found.lost >= 0:
        (lost,) = problem.space.legal.at_indices(np.array([found.lost])).designs()
        example = design_failure_text(problem, lost)
    return Coverage(
        legal=found.total,
        impossible=found.impossible,
        failed=found.failed,
        example=example,
        note=feasible_words(problem, found.feasible, designs),
    )


def feasible_words(problem: Problem, feasible: int, designs: Sequence[Design]) -> str:
    """Return a sentence on how many of the searched designs are feasible.

    The sentence is empty if there are no limits or no designs.

    Args:
        problem: problem that was searched.
        feasible: number of feasible designs.
        designs: designs of the front, which will be suggested.
    """
    if not problem.limits or not designs:
        return ""
    if feasible:
        return f"{feasible:,} keep every limit"
    return "no design is feasible, and the one that breaks the limits least is asked"


class _Search:
    """Enumeration of the designs that a checkpoint does not record as searched.

    The search writes checkpoints as it proceeds.
    """

    def __init__(
        self, problem: Problem, chunk: int, checkpoint: str | None, on_progress: OnProgress
    ) -> None:
        self._problem = problem
        self._chunk = chunk
        self._on_progress = on_progress
        self._total = problem.space.count() or 0
        self._starts = range(0, self._total, chunk)
        self._progress = EnumerationProgress(found=RunningFront.nothing(len(problem.objectives)))
        self._kept: Checkpoint | None = None
        if len(self._starts) > 1:
            self._kept = checkpoint_of(problem, checkpoint, chunk)
        if self._kept is not None:
            self._progress = self._kept.read(len(problem.objectives)) or self._progress
        self._begun_s = self._written_s = time.monotonic()

    def run(self, workers: int | None) -> RunningFront:
        """Search the remaining designs; return the result for all designs searched so far."""
        left = deque(start for start in self._starts if start not in self._progress.done)
        idle = not left
        try:
            with closing(self._results(left, workers)) as results:
                for start, found in results:
                    self._progress = self._progress.after(start, found)
                    self._on_progress(self._progress.found.total, self._total)
                    self._keep(_KEEP_S)
        except BaseException:  # including Ctrl-C
            self._keep(0.0)
            raise
        if not idle and time.monotonic() - self._begun_s > _KEEP_S:
            self._keep(0.0)
        return self._progress.found

    def _results(
        self, left: deque[int], workers: int | None
    ) -> Generator[tuple[int, RunningFront], None, None]:
        """Yield each searched range's start and result, with workers once these are faster.

        Until then the ranges of designs are searched in this process.
        """
        crew_size = min(workers or _cores(), len(left))
        pickled = portable(self._problem) if crew_size > 1 else None
        began_s, alone = time.monotonic(), 0
        while left:
            spent_s = time.monotonic() - began_s
            pays = workers is not None or (alone and spent_s / alone * len(left) > _WORTH_S)
            if pickled is not None and pays:
                break
            start = left.popleft()
            yield (
                start,
                search_stretch(self._problem, start, self._stop(start), self._before(start)),
            )
            alone += 1
        if left and pickled is not None:
            with closing(WorkerPool(pickled, min(crew_size, len(left)))) as crew:
                yield from crew.searched(((s, self._stop(s)) for s in left), self._before)

    def _stop(self, start: int) -> int:
        return min(start + self._chunk, self._total)

    def _before(self, start: int) -> Floats:
        """Return losses of some front members that precede this index in the enumeration.

        They are used to prune dominated designs.
        """
        found = self._progress.found
        losses = found.losses[: np.searchsorted(found.places, start)]
        return losses[spread(len(losses), _BEATERS)]

    def _keep(self, after_s: float) -> None:
        """Write a checkpoint, unless the last one was written less than ``after_s`` seconds ago."""
        if self._kept is not None and time.monotonic() - self._written_s >= after_s:
            self._kept.write(self._progress)
            self._written_s = time.monotonic()


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
