"""Notebook view of a running study: its progress, results and current front."""

from __future__ import annotations

import numpy as np

from dse.api.notebook.parts import bar, figure, framed, side_by_side, steady
from dse.api.notebook.points import Points, descent, plane
from dse.api.notebook.study_plot import picture
from dse.api.notebook.svg_scatter import blank
from dse.services.progress.panel import StudyPanel
from dse.services.progress.progress_bar import QuantityProgressBar
from dse.services.progress.watch import ProgressTracker


def running_html(panel: StudyPanel, remark: str) -> str:
    """Return the current state of a run's progress panel as HTML, with a remark below it."""
    objectives = panel.watch.problem.objectives
    drawn = picture(_points(panel.watch), objectives, panel.name)
    ways = [panel.way, *([] if panel.search is None else [panel.search])]
    words = [", ".join(panel.counts()), panel.quality()]
    return framed(
        panel.name,
        side_by_side(steady([_bar(way) for way in ways], words), drawn or _draw_nothing()),
        beside=remark,
    )


def _draw_nothing() -> str:
    """Return a placeholder as high as a plot with its legend, so that the layout stays fixed."""
    return figure(blank("no design to draw yet"), marks=[], remarks=["\u00a0"])


def _bar(way: QuantityProgressBar) -> str:
    return bar(way.done / way.total if way.total else None, way.line)


def _points(watch: ProgressTracker) -> Points | None:
    objectives = watch.problem.objectives
    nothing = np.zeros((0, 2))
    if len(objectives) == 1:
        return descent(objectives[0], watch.steps, watch.cloud, nothing)
    front = watch.front[np.lexsort(watch.front.T[::-1])]  # sorted by the first objective
    return plane(objectives, front, watch.cloud, nothing)
