"""The middle half of numbers of which some may be infinite."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats


def quartiles(
    values: Floats,  # (n, ...)
) -> Floats:
    """The lower quartile, the median and the upper quartile along the first axis, (3, ...).

    Between two numbers it is told in proportion, as numpy's quantiles are; between a number and
    infinity it is infinite.
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
