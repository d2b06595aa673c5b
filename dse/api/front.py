"""Pareto front of a study for Python and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

from dse.core.trial import Trial
from dse.system.terminal_text import visible

if TYPE_CHECKING:
    from dse.analysis.judged_front import JudgedFront
    from dse.core.judged_trials import JudgedTrial
    from dse.core.pareto import ParetoSet
    from dse.core.problem import Problem
    from dse.core.proof import Proof
    from dse.study.study_engine import StudyEngine


def front_of(study: StudyEngine) -> Front:
    """Return the current Pareto front of a study from its record."""
    from dse.core.judged_trials import read_judged
    from dse.core.pareto import ParetoSet

    among = study.finished
    found = ParetoSet.of(study.problem, among)
    judged = read_judged(study.events)
    return Front(study.name, found, proof=study.proof, among=among, judged=judged)


class Front(Sequence[Trial]):
    """Pareto front: non-dominated feasible trials, ordered by the first objective.

    Args:
        name: the study's name.
        found: the trials with their losses.
        proof: for how many designs the front is proved exact, and how many have no metric values.
        among: all finished trials of the study, which notebooks draw behind the front.
        judged: results on the test split, by number of the trial.
    """

    def __init__(
        self,
        name: str,
        found: ParetoSet,
        *,
        proof: Proof | None = None,
        among: Sequence[Trial] = (),
        judged: Mapping[int, JudgedTrial] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.found = found
        if proof is None:
            from dse.core.proof import Proof

            proof = Proof()
        self.proof = proof
        self._among = among
        self._judged = judged

    @property
    def problem(self) -> Problem:
        """Problem that the study solves."""
        return self.found.problem

    @property
    def exact(self) -> bool:
        """Whether the front is proved exact: all legal designs were searched, and none failed."""
        return self.proof.exact

    @property
    def failed(self) -> int:
        """Number of designs without metric values; ``proof.failed_words`` names an example."""
        return self.proof.valueless

    @property
    def trials(self) -> Sequence[Trial]:
        """Trials of the front, ordered by the first objective."""
        return self.found.trials

    @property
    def hypervolume(self) -> float | None:
        """Hypervolume up to the reference point; ``None`` until that point has been fixed."""
        return self.found.hypervolume

    @property
    def hypervolume_share(self) -> float | None:
        """Share of the volume between reference point and ideal point that the front dominates.

        It is from 0 to 1; ``None`` until the reference point is fixed, and with one objective.
        """
        return self.found.hypervolume_share

    @property
    def reference_point(self) -> tuple[float, ...] | None:
        """Reference point of the hypervolume, in the objectives' units and signs."""
        return self.found.reference_point

    @property
    def judged(self) -> JudgedFront | None:
        """Front re-measured on the test split, with standard errors; ``None`` if not measured.

        Example:
            ``study.front.judged.by_trial[3].values``
        """
        from dse.analysis.judged_front import judge_front

        return judge_front(self.problem, self.trials, self._judged)

    @property
    def knee(self) -> Trial | None:
        """Trial of the front nearest to the ideal point; ``None`` if the front is empty."""
        return self.found.knee

    def to_pandas(self) -> Any:  # pandas is an extra
        """Return a data frame with the number, parameters, metrics and spread of each design.

        The spread of a metric is its standard error.

        Raises:
            PluginError: pandas is not installed.
        """
        from dse.interop.data_frames import to_pandas

        return to_pandas(self)

    def to_polars(self) -> Any:  # polars is an extra
        """Return a data frame with the number, parameters, metrics and spread of each design.

        The spread of a metric is its standard error.

        Raises:
            PluginError: polars is not installed.
        """
        from dse.interop.data_frames import to_polars

        return to_polars(self)

    def __len__(self) -> int:
        return len(self.trials)

    @overload
    def __getitem__(self, place: int) -> Trial: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Trial]: ...

    def __getitem__(self, place: int | slice) -> Trial | Sequence[Trial]:
        return self.trials[place]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def _repr_html_(self) -> str:
        from dse.api.notebook.front_view import front_html
        from dse.api.notebook.parts import or_message

        return or_message(
            f"Front of {self.name}",
            lambda: front_html(
                self.name, self.found, self._among, proof=self.proof, judged=self._judged
            ),
        )

    def __repr__(self) -> str:
        from dse.report.text.space_words import format_count
        from dse.report.words import volume_text

        objectives = ", ".join(f"{one.goal} {one.text}" for one in self.problem.objectives)
        share = self.hypervolume_share
        known = "" if share is None else f", hypervolume {volume_text(self.found)}"
        exact = "exact front" if self.exact else "front"
        failed = f"; {self.proof.search_words}: {self.proof.failed_words}" if self.failed else ""
        size = format_count(len(self), "design")
        return visible(f"<{exact} of {self.name!r}: {size}{known}; {objectives}{failed}>")
