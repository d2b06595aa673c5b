"""The type names that every noun shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = bool | int | float | str
"""What a parameter can be set to."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Array = NDArray[Any]
