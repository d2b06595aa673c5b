"""Sequence of the folds of a layer, and sharing of the array by several products."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.knobs import Settings
from dse_evaluators.accelerators.systolic.schedule import Schedule


def at_once(schedule: Schedule, copies: Floats, knobs: Settings) -> Floats:
    """Products that lie on the array together, each on rows and columns of its own."""
    room = np.minimum(np.floor(knobs.rows / schedule.down), np.floor(knobs.cols / schedule.across))
    return np.where(knobs.packed > 0, np.clip(room, 1.0, copies), 1.0)


def layer_cycles(schedule: Schedule, copies: Floats, together: Floats, knobs: Settings) -> Floats:
    """Cycles of ``copies`` products, so many of them ``together``, never waiting.

    With ``overlap`` the array has registers for the operand that comes next: a fold begins when
    the one before has taken in its stream, or as soon as the array is loaded or, where outputs
    stay, drained, which takes a cycle for each row.
    """
    folds = schedule.folds * np.ceil(copies / together)
    if not (knobs.overlap > 0).any():
        return folds * schedule.fold_cycles - 1.0
    step = np.where(
        knobs.overlap > 0, np.maximum(schedule.stream, knobs.rows), schedule.fold_cycles
    )
    return (folds - 1.0) * step + (schedule.fold_cycles - 1.0)
