"""A study's figures by plotly, drawn as SVG; only the cloud of three objectives needs WebGL."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.report.figures.cloud import space_figure
from dse.report.figures.growth import growth_figures
from dse.report.figures.pairs import trade_off_figures
from dse.report.figures.parallel import parallel_figure
from dse.report.figures.stages import stages_figure
from dse.report.figures.style import Drawing
from dse.report.figures.timeline import timeline_figure


def drawings(
    front: ParetoSet, trials: Sequence[Trial], weighty: Sequence[str] = (), *, exact: bool = False
) -> list[Drawing]:
    """All figures of a study: trade-offs, parallel coordinates, how the front grew, who evaluated.

    Args:
        front: the study's front.
        trials: all trials, in the order in which they were finished.
        weighty: parameters by what they matter, the weightiest first, where that is known.
        exact: the front was computed at once, and did not grow.
    """
    return [
        *trade_off_figures(front, trials, weighty),
        *space_figure(front, trials, weighty),
        *parallel_figure(front, trials, weighty),
        *([] if exact else [*growth_figures(front, trials), *stages_figure(front, trials)]),
        *timeline_figure(trials, measured=bool(front.problem.measured)),
    ]
