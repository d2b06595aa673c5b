"""Figures from other tools and papers: carried in ``tests/data``, or read from next to the clone.

``tests/data/README.md`` has the source and the licence of each table, and how to obtain those that
are not carried.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path

import pytest

CARRIED = Path(__file__).with_name("data")
ELSEWHERE = Path(__file__).parents[2] / "shared" / "data"

_BENCHMARK_TABLES = Path(__file__).parents[1] / "benchmarks" / "reference_tables.py"
ORIGINS: Mapping[str, str] = runpy.run_path(str(_BENCHMARK_TABLES))["ORIGINS"]
"""Source and licence of each table, or folder of tables, that the repository does not carry."""


def needs(*names: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where one of these tables is absent."""
    absent = any(not (ELSEWHERE / name).exists() for name in names)
    wanted = " and ".join(f"../shared/data/{name} ({ORIGINS[name]})" for name in names)
    return pytest.mark.skipif(
        absent, reason=f"needs {wanted}, not carried; how to obtain it: tests/data/README.md"
    )
