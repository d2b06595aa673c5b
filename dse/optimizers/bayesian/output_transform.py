"""Monotone maps of losses before a Gaussian process is fitted: bounds, then output transforms.

Bounds keep the squares and products of extreme losses finite. Output transforms also give
expectations in the losses' own units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from dse.core.values import Floats

Kind = Literal["plain", "log", "logit"]
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_EDGE = 1e-9

LARGE = 1e60
"""Values above this are mapped before learning; a product of four such values is finite."""

_AS_LARGEST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTransform:
    """Increasing map from losses to the scale on which a Gaussian process is fitted.

    Mapped losses have mean 0 and standard deviation 1. ``plain`` shifts and scales; ``log`` first
    takes ``sign`` times the logarithm of ``sign * loss``; ``logit`` is for losses whose absolute
    values are between 0 and 1.
    """

    kind: Kind
    sign: int
    centre: float
    width: float

    @staticmethod
    def of(losses: Floats, kind: Kind) -> OutputTransform:
        """Return the transform of this kind that standardises the losses, (n,)."""
        sign = -1 if kind != "plain" and losses.max() < 0 else 1
        raw = _map_losses(losses, kind, sign)
        width = float(raw.std())
        return OutputTransform(kind=kind, sign=sign, centre=float(raw.mean()), width=width or 1.0)

    def learnt(self, losses: Floats) -> Floats:
        """Map losses to the standardised scale on which the Gaussian process is fitted."""
        return (_map_losses(losses, self.kind, self.sign) - self.centre) / self.width

    def losses(self, learnt: Floats) -> Floats:
        """Map values on the Gaussian process's scale back to losses."""
        raw = learnt * self.width + self.centre
        if self.kind == "plain":
            return raw
        inner = self.sign * raw
        grown = np.exp(inner) if self.kind == "log" else 1.0 / (1.0 + np.exp(-inner))
        return self.sign * grown

    def slope(self, losses: Floats) -> Floats:
        """Return the derivative of :meth:`learnt`, which scales standard errors of losses."""
        own = np.abs(losses)
        if self.kind == "plain":
            return np.full(len(losses), 1.0 / self.width)
        if self.kind == "log":
            return 1.0 / (self.width * np.maximum(own, _EDGE))
        inside = np.clip(own, _EDGE, 1 - _EDGE)
        return 1.0 / (self.width * inside * (1 - inside))

    def gain(
        self,
        means: Floats,  # (k,), learnt
        deviations: Floats,  # (k,)
        thresholds: Floats,  # (t,), losses
    ) -> Floats:
        """Return the expected improvement E[max(z - u, 0)] of each loss u on each threshold z.

        The result has shape (k, t).

        Source:
            plain: Jones, Schonlau, Welch: Efficient Global Optimization, 1998, eq. 15. log: the
            partial expectation of the log-normal distribution, z F(z) - E[u; u <= z]. logit: by
            Gauss-Hermite quadrature.
        """
        mean = (self.centre + self.width * means)[:, None]
        deviation = np.maximum(self.width * deviations, 1e-12)[:, None]
        if self.kind == "plain":
            return _normal_gain(mean, deviation, thresholds[None, :])
        if self.kind == "log":
            return _lognormal_gain(mean, deviation, thresholds[None, :], self.sign)
        inner = self.sign * (mean + deviation * _NODES)
        losses = self.sign / (1.0 + np.exp(-inner))  # (k, nodes)
        gains = np.maximum(thresholds[None, :, None] - losses[:, None, :], 0.0)
        return np.asarray(gains @ _WEIGHTS)

    def below(self, means: Floats, deviations: Floats, thresholds: Floats) -> Floats:
        """Return the probability that each loss is at most each threshold, (k, t).

        Args:
            means: posterior means on the process's scale, (k,).
            deviations: posterior standard deviations on that scale, (k,).
            thresholds: losses, (t,).
        """
        with np.errstate(all="ignore"):
            mapped = self.learnt(thresholds)
        if self.kind != "plain":
            beyond = self.sign * thresholds <= 0
            mapped = np.where(beyond, -np.inf if self.sign > 0 else np.inf, mapped)
        return np.asarray(ndtr((mapped[None, :] - means[:, None]) / deviations[:, None]))


IDENTITY = OutputTransform(kind="plain", sign=1, centre=0.0, width=1.0)
"""Transform of losses that are already on the process's scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitude:
    """Non-decreasing map that bounds values: division by ``scale``, then clipping to ``most``.

    It keeps signs, so that a violated limit stays violated and a satisfied limit satisfied.
    """

    scale: float = 1.0
    most: float = np.inf

    @staticmethod
    def of(values: Floats, *, also: float = 0.0) -> Magnitude:
        """Choose a map that bounds the values; the identity if all are within :data:`LARGE`.

        Otherwise, values above that magnitude are assumed to be penalties and clipped to twice the
        largest of the other values. If there are fewer than two other values, all values are
        divided by the largest.

        Args:
            values: (n,); only finite ones are used.
            also: a value that is not to be clipped, such as a reference point.
        """
        values = values[np.isfinite(values)]
        sizes = np.abs(values)
        if not len(sizes) or sizes.max() <= LARGE:
            return Magnitude()
        ordinary = values[sizes <= LARGE]
        if len(np.unique(ordinary)) < 2:
            return Magnitude(scale=float(sizes.max()), most=LARGE)
        room = max(float(np.abs(ordinary).max()), abs(also) if abs(also) <= LARGE else 0.0)
        return Magnitude(most=_AS_LARGEST * room)

    def __call__(self, values: Floats) -> Floats:
        """Map the values to the bounded range; NaN stays NaN."""
        if self.is_identity:
            return values
        return np.asarray(np.clip(values / self.scale, -self.most, self.most))

    @property
    def is_identity(self) -> bool:
        """Whether the map leaves all values unchanged."""
        return self.scale == 1.0 and self.most == np.inf

    @property
    def words(self) -> str:
        """Description of how values are bounded, for a recorded event."""
        if self.scale != 1.0:
            return "are learnt as shares of the largest"
        return "are learnt as twice the largest of the others"


def _map_losses(losses: Floats, kind: Kind, sign: int) -> Floats:
    if kind == "plain":
        return np.asarray(losses, dtype=float)
    inner = sign * losses
    if kind == "log":
        return np.asarray(sign * np.log(inner))
    inside = np.clip(inner, _EDGE, 1 - _EDGE)
    return np.asarray(sign * np.log(inside / (1 - inside)))


def _normal_gain(mean: Floats, deviation: Floats, threshold: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        share = (threshold - mean) / deviation
        gain = deviation * (share * ndtr(share) + np.exp(-0.5 * share**2) / np.sqrt(2 * np.pi))
    return np.where(np.isneginf(threshold), 0.0, gain)


def _lognormal_gain(mean: Floats, deviation: Floats, threshold: Floats, sign: int) -> Floats:
    """Return E[max(z - u, 0)] for u = sign * exp(sign * g), with g normal."""
    bound = np.log(np.maximum(sign * threshold, 1e-300))
    share = (bound - sign * mean) / deviation
    whole = np.exp(np.minimum(sign * mean + 0.5 * deviation**2, 700.0))
    if sign > 0:
        above = np.maximum(threshold, 0.0)
        return np.maximum(above * ndtr(share) - whole * ndtr(share - deviation), 0.0)
    # u = -exp(g): z - u = exp(g) - |z| where exp(g) > |z|; with z >= 0 all of it
    size = np.maximum(-threshold, 0.0)
    reached = ndtr(-share)
    gain = whole * ndtr(deviation - share) - np.where(reached > 0, size, 0.0) * reached
    return np.where(threshold >= 0, threshold + whole, np.maximum(gain, 0.0))
