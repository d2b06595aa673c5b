"""Maps that scale or clip extreme losses, so that their squares and products stay finite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

LARGE = 1e60
"""Values above this are mapped before learning; a product of four such values is finite."""

_AS_LARGEST = 2.0


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


def shares(
    losses: Floats,  # (n, m)
    ideal: Floats,  # (m,)
    span: Floats,  # (m,), above 0
) -> Floats:
    """Return each loss's distance from the ideal point, as a multiple of the front's span, (n, m).

    The distance is at most :data:`LARGE`.
    """
    with np.errstate(over="ignore"):  # halved, since the difference of large numbers may overflow
        return np.asarray(np.minimum((0.5 * losses - 0.5 * ideal) / (0.5 * span), LARGE))
