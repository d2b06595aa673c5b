"""``dse calibrate serving`` on measured services of one device, software and format, as CSV.

    python benchmarks/calibrate_rows.py [--data ../shared/data]

The services are those of ``benchmarks/serving.py`` that are not saturated, dense models. Each group
is fitted by itself; the errors are on rows of other shapes, and of other models where a group has
several, next to those of the shipped constants on the same rows.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import defaultdict
from pathlib import Path

import serving
from reference_tables import DATA

from dse.errors import SpecError
from dse_evaluators.clusters.serving.serving import Serving

HEADER = ("model", "tp", "batch", "isl", "osl", "weight_format", "kv_format", "tpot_s")


def main() -> None:
    """Print a line for each group and split, and the reason where a group is not fitted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    groups = defaultdict[tuple[str, str, str], list[serving.Point]](list)
    for one in serving.points(options.data):
        if not one.saturated:
            groups[one.device, one.framework, one.format].append(one)
    print("device,framework,format,split,points,mean,median,shipped mean")
    for key, points in sorted(groups.items()):
        name = ",".join(key)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            write(path, points)
            try:
                found = Serving.calibrate(path, key[0])
            except SpecError as error:
                print(f"{name},refused,{len(points)},,,{error.problem}")
                continue
        for one in found.errors:
            figures = f"{one.mean:.3f},{one.median:.3f},{one.naive_mean:.3f}"
            print(f"{name},{one.split},{one.points},{figures}")


def write(path: Path, points: list[serving.Point]) -> None:
    """Write services as the rows of ``dse calibrate serving``."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for one in points:
            cached = "bf16" if one.format == "bf16" else "fp8"
            shape = (one.model, one.tp, one.batch, one.isl, one.osl, one.format)
            writer.writerow([*shape, cached, one.token_s])


if __name__ == "__main__":
    main()
