"""Type aliases for parameter values and numpy arrays, shared by all modules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = bool | int | float | str
"""Value of a parameter."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Array = NDArray[Any]
