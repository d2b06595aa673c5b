"""Figures from other tools and papers: carried in ``tests/data``, or read from next to the clone.

``tests/data/README.md`` has the source and the licence of each table, and how to obtain those that
are not carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

CARRIED = Path(__file__).with_name("data")
ELSEWHERE = Path(__file__).parents[2] / "shared" / "data"

ORIGINS: Mapping[str, str] = {
    "aiconfigurator_vs_silicon.csv": "ai-dynamo/aiconfigurator, Apache-2.0",
    "collective_measured_apex.csv": "microsoft/apex_plus@8769096, MIT",
    "collective_measured_vidur.csv": "microsoft/vidur@7d47513, MIT",
    "gemm_kernels_measured_vidur.csv": "microsoft/vidur@7d47513, MIT",
    "gemm_measured.csv": "ai-dynamo/aiconfigurator@095f58a, Apache-2.0",
    "gemm_weight_only_measured.csv": "ai-dynamo/aiconfigurator@095f58a, Apache-2.0",
    "llm_serving_silicon.csv": "ai-dynamo/aiconfigurator, Apache-2.0",
    "madmax_reference.csv": "facebookresearch/ScaleExplorer@562db98, CC-BY-NC-4.0",
    "open": "measurements of seven publishers, each with a licence of its own",
}
"""Source and licence of each table, or folder of tables, that the repository does not carry."""


def needs(*names: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where one of these tables is absent."""
    absent = any(not (ELSEWHERE / name).exists() for name in names)
    wanted = " and ".join(f"../shared/data/{name} ({ORIGINS[name]})" for name in names)
    return pytest.mark.skipif(
        absent, reason=f"needs {wanted}, not carried; how to obtain it: tests/data/README.md"
    )
