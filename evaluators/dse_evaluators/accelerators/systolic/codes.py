"""Integer codes of number formats: the index of each format in every table over formats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.values import Floats, Value
from dse_evaluators.formats.words import FORMATS

FORMAT_CODES: Mapping[Value, float] = {name: float(place) for place, name in enumerate(FORMATS)}

_BITS = np.array([row.bits for row in FORMATS.values()], dtype=np.float64)


def word_bits(format_codes: Floats) -> Floats:
    """Return the bits per number of the formats with these codes."""
    return _BITS[format_codes.astype(np.intp)]
