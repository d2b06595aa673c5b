"""Reference tables that the repository does not carry, and what a benchmark does without one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Folder of the tables, unless ``--data`` names another one."""

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
    "openbench.py": "measurements of seven publishers, each with a licence of its own",
    "gpu_fc.json": "Emma926/paradnn, scripts/data, Apache-2.0",
    "tpu_fc.json": "Emma926/paradnn, scripts/data, Apache-2.0",
}
"""Source and licence of each file or folder that the repository does not carry."""


def find_table(folder: Path, name: str) -> Path:
    """Return the path of a table in a folder; without it, end the program with status 2."""
    path = folder / name
    if not path.exists():
        print(
            f"error: there is no {path}, which this repository does not carry "
            f"(source: {ORIGINS[name]}): obtain it as described in tests/data/README.md, and name "
            "its folder on the command line",
            file=sys.stderr,
        )
        raise SystemExit(2)
    return path
