"""Figures of a study in plotly's JSON form."""

from __future__ import annotations

import json

from dse.report.figures.style import Drawing
from dse.serve import models
from dse.serve.snapshot import Snapshot
from dse.system.terminal_text import visible, visible_json


def figures(snapshot: Snapshot) -> models.Figures:
    """Return the figures of the study in its present state: fronts, hypervolume, timeline."""
    return models.Figures(mark=snapshot.mark, figures=[_figure(one) for one in snapshot.drawings])


def _figure(drawing: Drawing) -> models.Figure:
    plain = json.loads(visible_json(drawing.figure.to_json()))
    return models.Figure(
        key=drawing.key,
        title=visible(drawing.title),
        caption=visible(drawing.caption),
        height_px=int(drawing.figure.layout.height),
        data=plain["data"],
        layout=plain["layout"],
    )
