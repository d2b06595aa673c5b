"""Constants of collectives, fitted to measured ones and judged on sizes that were held out.

    python benchmarks/collectives.py                                    # fit, and print the errors
    python benchmarks/collectives.py --write evaluators/dse_evaluators/clusters/collectives.csv

Of each series of sizes every second is fitted, from the first on, and the others are judged; the
plain latency and bandwidth, fitted to the same half, stands beside it. The measurements (Vidur and
APEX+, both MIT) are read from a folder, ``../shared/data`` unless another is named;
``tests/data/README.md`` describes them.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from reference_tables import DATA, find_table

from dse_evaluators.clusters.collective_fit import fit_constants, split_sizes
from dse_evaluators.clusters.collectives import Collective, CollectiveConstants, seconds

COLUMNS = (
    "fabric",
    "collective",
    "ranks",
    "latency_s",
    "bytes_per_s",
    "pipelining",
    "judged_mape",
    "plain_mape",
    "fitted_bytes",
    "judged_bytes",
    "source",
)
SOURCES = {
    "vidur": "microsoft/vidur@7d47513 (MIT), measured",
    "apex": "microsoft/apex_plus@8769096 (MIT), measured",
}
WORDS: Mapping[str, Collective] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send_recv",
    "send_recv": "send_recv",
}
SERIES = {
    "vidur": {
        "a100_dgx": "a100-dgx",
        "h100_dgx": "h100-dgx",
        "a100_pairwise_nvlink": "a100-pairs",
        "h100_pairwise_nvlink": "h100-pairs",
        "a40_pairwise_nvlink": "a40-pairs",
    },
    "apex": {"H100-SXM-80GB": "h100-nccl", "H200": "h200-nccl", "V100-PCIE-16GB": "v100-pcie"},
}
Key = tuple[str, str, Collective, int]


def main() -> None:
    """Fit every series that lies within one node."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", type=Path, help="the table that the evaluators read")
    options = parser.parse_args()
    rows = [fitted(key, series) for key, series in sorted(measured(options.data).items())]
    short = [name for name in COLUMNS if not name.endswith("_bytes") and name != "source"]
    printed = csv.DictWriter(sys.stdout, short, extrasaction="ignore", lineterminator="\n")
    printed.writeheader()
    printed.writerows(rows)
    for name in ("judged_mape", "plain_mape"):
        print(f"{name}: mean {np.mean([row[name] for row in rows]):.3f}", file=sys.stderr)
    if options.write:
        with options.write.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def measured(folder: Path) -> dict[Key, dict[int, list[float]]]:
    """Seconds by size in bytes, by source, fabric, collective and ranks."""
    found: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, size, took_s in [*vidur(folder), *apex(folder)]:
        found[key][size].append(took_s)
    return found


def vidur(folder: Path) -> Iterator[tuple[Key, int, float]]:
    """All-reduce and send-receive as an inference framework calls them."""
    for row in read(find_table(folder, "collective_measured_vidur.csv")):
        ranks, each = int(row["num_workers"]), int(row["devices_per_node"])
        if ranks <= each:
            key = ("vidur", SERIES["vidur"][row["system"]], WORDS[row["collective"]], ranks)
            yield key, int(row["size_bytes_or_elems"]), float(row["median_ms"]) * 1e-3


def apex(folder: Path) -> Iterator[tuple[Key, int, float]]:
    """Half precision alone: what is said in single precision was measured with long outliers."""
    for row in read(find_table(folder, "collective_measured_apex.csv")):
        size = int(row["size(kb)"]) * 1024
        if row["num_nodes"] == "1" and row["dtype"] == "half" and size:
            ranks = int(row["num_gpus_per_node"])
            key = ("apex", SERIES["apex"][row["gpu"]], WORDS[row["collective"]], ranks)
            yield key, size, float(row["time(us)"]) * 1e-6


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fitted(key: Key, series: Mapping[int, list[float]]) -> dict[str, object]:
    """One row of the table."""
    source, fabric, collective, ranks = key
    sizes = np.array(sorted(series), dtype=np.float64)
    took_s = np.array([np.median(series[int(size)]) for size in sizes])
    half = split_sizes(len(sizes))
    best, plain = (
        fit_constants(collective, ranks, sizes[half], took_s[half], piped=piped)
        for piped in (True, False)
    )

    def error(constants: CollectiveConstants) -> float:
        told = seconds(collective, sizes[~half], ranks, constants)
        return float(np.abs(told / took_s[~half] - 1.0).mean())

    return {
        "fabric": fabric,
        "collective": collective,
        "ranks": ranks,
        "latency_s": f"{best.latency_s:.4g}",
        "bytes_per_s": f"{best.bytes_per_s:.4g}",
        "pipelining": f"{best.pipelining:.4g}",
        "judged_mape": round(error(best), 4),
        "plain_mape": round(error(plain), 4),
        "fitted_bytes": " ".join(str(int(size)) for size in sizes[half]),
        "judged_bytes": " ".join(str(int(size)) for size in sizes[~half]),
        "source": SOURCES[source],
    }


if __name__ == "__main__":
    main()
