"""Sequence of the folds of a layer, and packing of several GEMMs into the array."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.knobs import Settings
from dse_evaluators.accelerators.systolic.schedule import Schedule


def at_once(schedule: Schedule, copies: Floats, knobs: Settings) -> Floats:
    """Return how many GEMMs of a layer share the array at a time, each on its own part of it."""
    room = np.minimum(np.floor(knobs.rows / schedule.down), np.floor(knobs.cols / schedule.across))
    return np.where(knobs.packed > 0, np.clip(room, 1.0, copies), 1.0)


def layer_cycles(schedule: Schedule, copies: Floats, together: Floats, knobs: Settings) -> Floats:
    """Compute the cycles of ``copies`` GEMMs, ``together`` at a time, without stalls.

    With ``overlap``, registers hold the next stationary operand. A fold then begins once the
    previous one has taken in its stream and the array has been loaded (or drained, if outputs are
    stationary), which takes one cycle per row.
    """
    folds = schedule.folds * np.ceil(copies / together)
    if not (knobs.overlap > 0).any():
        return folds * schedule.fold_cycles - 1.0
    step = np.where(
        knobs.overlap > 0, np.maximum(schedule.stream, knobs.rows), schedule.fold_cycles
    )
    return (folds - 1.0) * step + (schedule.fold_cycles - 1.0)
