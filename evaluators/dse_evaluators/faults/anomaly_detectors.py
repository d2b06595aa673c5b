"""Detectors of anomalous states, fitted to states without faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats
from dse_evaluators.faults.missions import REFRESH, STEP_S

DETECTORS = ("none", "gaussian", "autoencoder")
"""Kinds of detectors."""

_LEAST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDetector:
    """Detector of anomalous states of a robot's perception, planning or control stage.

    Attributes:
        mean: mean of each word, (words,).
        scale: standard deviation of each word, (words,).
        components: principal components of standardized words, (width, words); ``None`` for a
            detector that checks each word separately.
        limit: greatest magnitude of a standardized word, or greatest reconstruction error.
    """

    mean: Floats
    scale: Floats
    components: Floats | None
    limit: float

    def find(self, states: Floats) -> NDArray[np.bool_]:
        """Return which of n states, (n, words), are anomalous, (n,)."""
        parts = (states - self.mean) / self.scale
        if self.components is None:
            return ~(np.abs(parts).max(axis=1) <= self.limit)  # not a number is an anomaly
        errors = _reconstruction_errors(parts, self.components)
        return ~(errors <= self.limit)

    @property
    def operations(self) -> int:
        """Operations on one state, including the products with the principal components."""
        words = len(self.mean)
        return 3 * words + (0 if self.components is None else 4 * self.components.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMonitor:
    """Set of anomaly detectors, one for each monitored stage of the robot."""

    detectors: Mapping[str, StageDetector]

    def __call__(self, stage: str, states: Floats) -> NDArray[np.bool_]:
        if stage not in self.detectors:
            return np.zeros(len(states), dtype=np.bool_)
        return self.detectors[stage].find(states)

    def operations_per_s(self) -> float:
        """Return the operations per second of all detectors."""
        steps = {stage: 1 if stage == "control" else REFRESH for stage in self.detectors}
        return sum(one.operations / (steps[name] * STEP_S) for name, one in self.detectors.items())


def fit_monitor(
    kind: str, seen: Mapping[str, Floats], stages: Sequence[str], threshold: float, width: int
) -> StateMonitor | None:
    """Return detectors of some stages, fitted to states without faults; None for ``none``.

    Args:
        kind: one of :data:`DETECTORS`.
        seen: states without faults by stage, each (n, words).
        stages: the stages to monitor.
        threshold: multiple of the standard deviation, or of the root mean square of the
            reconstruction errors.
        width: number of components of the autoencoder.
    """
    if kind == "none":
        return None
    return StateMonitor(
        detectors={stage: _fit(kind, seen[stage], threshold, width) for stage in stages}
    )


def _fit(kind: str, states: Floats, threshold: float, width: int) -> StageDetector:
    mean, scale = states.mean(axis=0), np.maximum(states.std(axis=0), _LEAST)
    if kind == "gaussian":
        return StageDetector(mean=mean, scale=scale, components=None, limit=threshold)
    parts = (states - mean) / scale
    _, vectors = np.linalg.eigh(parts.T @ parts)
    components = vectors[:, ::-1][:, :width].T
    usual = float(np.sqrt((_reconstruction_errors(parts, components) ** 2).mean()))
    return StageDetector(mean=mean, scale=scale, components=components, limit=threshold * usual)


def _reconstruction_errors(parts: Floats, components: Floats) -> Floats:
    """Return the distance of each standardized state from its reconstruction, (n,)."""
    rest = parts - parts @ components.T @ components
    return np.asarray(np.sqrt((rest**2).sum(axis=1)))
