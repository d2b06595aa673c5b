"""Quartiles of values of which some may be infinite."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats


def quartiles(
    values: Floats,  # (n, ...)
) -> Floats:
    """Return the lower quartile, median and upper quartile along the first axis, (3, ...).

    Values are interpolated linearly, as by ``numpy.quantile``; between a finite value and infinity
    the result is infinite.
    """
    ordered = np.sort(values, axis=0)
    rows = []
    for share in (0.25, 0.5, 0.75):
        place = share * (len(ordered) - 1)
        low, rest = int(place), place % 1
        below, above = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
        finite = np.isfinite(above)
        between = (1 - rest) * below + rest * np.where(finite, above, 0.0)
        rows.append(np.where(finite | (rest == 0), between, above))
    return np.asarray(np.stack(rows))
