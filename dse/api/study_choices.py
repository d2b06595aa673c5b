"""Choice of one design of a study in Python: further limits, and the user's preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.api.front import Front
    from dse.study.study import StudyEngine


class StudyChoices:
    """Methods of :class:`~dse.api.study.Study` that help to choose one design of many."""

    engine: StudyEngine

    def front_at(self, *limits: str, best: str | None = None) -> Front:
        """Return the front of the designs that satisfy further limits, or the best by one metric.

        All finished trials are searched, also those that are not on the study's front.

        Example:
            ``study.front_at("chip.latency <= 20 ms", best="chip.area")[0].design``

        Args:
            limits: limits on metrics and parameters, as under ``constraints`` of a study file.
            best: return only the best designs by this objective, metric with a goal, or formula
                after ``minimize:`` or ``maximize:``; of equal ones, the non-dominated ones.

        Returns:
            The designs; empty if none satisfies every limit.

        Raises:
            SpecError: a limit or the formula is invalid, or has an unknown name.
            StudyError: no design that satisfies every limit has a value of ``best``.
        """
        from dse.api.front import Front
        from dse.services.studies.best_designs import find_best_designs

        chosen = find_best_designs(self.engine, limits, best)
        return Front(self.engine.name, chosen.found, proof=chosen.proof, among=chosen.trials)
