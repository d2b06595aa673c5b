"""Plotly figures of a study, drawn as SVG; only the 3-D plot of three objectives needs WebGL."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.pareto import ParetoSet
from dse.core.recorded_gap import RecordedGap
from dse.core.trial import Trial
from dse.report.figures.cloud import space_figure
from dse.report.figures.growth import growth_figures
from dse.report.figures.pairs import trade_off_figures
from dse.report.figures.parallel import parallel_figure
from dse.report.figures.stages import stages_figure
from dse.report.figures.style import Drawing
from dse.report.figures.timeline_figure import timeline_figure


def drawings(
    front: ParetoSet,
    trials: Sequence[Trial],
    weighty: Sequence[str] = (),
    *,
    exact: bool = False,
    gap: RecordedGap | None = None,
) -> list[Drawing]:
    """Return all figures of a study: trade-offs, parallel coordinates, hypervolume, timeline.

    Args:
        front: the study's front.
        trials: all trials, in the order in which they were finished.
        weighty: the parameters by importance, the most important first, if known.
        exact: whether the front was computed in one step, so that it has no growth to show.
        gap: the last recorded gap; ``None`` while it is unknown.
    """
    return [
        *trade_off_figures(front, trials, weighty, gap=gap),
        *space_figure(front, trials, weighty),
        *parallel_figure(front, trials, weighty),
        *([] if exact else [*growth_figures(front, trials), *stages_figure(front, trials)]),
        *timeline_figure(trials, measured=bool(front.problem.measured)),
    ]
