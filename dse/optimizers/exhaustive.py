"""Exhaustive search: the exact front if all metrics are modelled, else each design in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.proof import Coverage
from dse.core.trial import Event, Trial
from dse.errors import PluginError, StudyError
from dse.optimizers.exact.exact_front import OnProgress, exact_front
from dse.protocols import OptimizerTraits

_AHEAD = 1_024


class Exhaustive:
    """Optimizer that suggests the exact front, or every legal design if a metric is measured.

    Once all suggested designs are finished, an event of kind ``exact`` states how many designs were
    searched; if some failed, it is ``exact over``, with their count and an example. ``on_progress``
    is called with the number of searched designs and their total number.

    Args:
        problem: problem to optimise.
        workers: processes that search for the exact front; by default one for each core, and none
            if a single process is as fast.
        checkpoint: file that stores the progress of a long search; by default in ``$DSE_CACHE``,
            else in ``dse-engine`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        StudyError: the legal designs cannot be counted.
        PluginError: ``workers`` is below 1.
    """

    traits = OptimizerTraits(batch=1_024, enumerates=True, exhaustive=True)
    on_progress: OnProgress

    def __init__(
        self, problem: Problem, *, workers: int | None = None, checkpoint: str | None = None
    ) -> None:
        if workers is not None and workers < 1:
            raise PluginError(f"the optimizer 'exhaustive' cannot have {workers} workers")
        if problem.space.count() is None:
            raise StudyError(
                "the legal designs cannot be listed: there is a real parameter, or too many",
                hint="use optimizer nsga2, qlognehvi or ax, or give the real parameters steps",
            )
        self._problem = problem
        self._workers = workers
        self._checkpoint = checkpoint
        self.on_progress = lambda *_: None
        self._finished_designs: set[Design] = set()
        self._ahead: list[Design] = []
        self._coverage: Coverage | None = None
        self._reported = False
        self._outcomes: list[Trial] = []
        self._wanted: set[Design] | None = None
        self._source = self._designs()

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        taken = self._finished_designs.union(pending)
        self._ahead = [design for design in self._ahead if design not in self._finished_designs]
        found = [design for design in self._ahead if design not in taken]
        while len(found) < count:
            design = next(self._source, None)
            if design is None:
                break
            self._ahead.append(design)
            found += [] if design in taken else [design]
        return found[:count]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished_designs.update(trial.design for trial in finished)
        if self._problem.measured:
            self._outcomes += finished

    def events(self) -> list[Event]:
        if self._reported or not self._complete():
            return []
        self._reported = True
        return [self._compute_coverage().event(len(self._finished_designs))]

    @property
    def ended(self) -> str:
        """Reason to end the study, with the designs covered; empty until all are finished."""
        return self._compute_coverage().text if self._complete() else ""

    def _compute_coverage(self) -> Coverage:
        if self._coverage is None:
            legal = self._problem.space.count() or 0
            return Coverage.of(self._problem, self._outcomes, legal)
        return self._coverage

    def _complete(self) -> bool:
        if self._wanted is None:
            measured = bool(self._problem.measured)
            return measured and len(self._finished_designs) >= (self._problem.space.count() or 0)
        return self._wanted <= self._finished_designs

    def _designs(self) -> Iterator[Design]:
        if self._problem.measured:
            for batch in self._problem.space.enumerate(_AHEAD):
                yield from batch
            return
        front = exact_front(
            self._problem,
            workers=self._workers,
            checkpoint=self._checkpoint,
            on_progress=self.on_progress,
        )
        self._coverage = front.coverage
        self._wanted = set(front.designs)
        yield from front.designs
