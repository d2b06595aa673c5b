"""The spaces of the comparison, by name."""

from __future__ import annotations

from kernels import KERNELS
from layers import LAYERS
from plans import PLANS

CASES = {statement.name: statement for statement in (*PLANS, *LAYERS, *KERNELS)}
QUICK = ("training-64", "gemm-portable", "sobel", "dedispersion")
"""Those that most tools answer in seconds."""
