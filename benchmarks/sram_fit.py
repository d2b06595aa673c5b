"""The SRAM laws of the technology tables, fitted again.

    python benchmarks/sram_fit.py [RUNS.csv]

``RUNS.csv``, by default that of ``tests/data``, has a row for each run of CACTI 7 with the columns
``node_nm size_kB bus_bits read_pJ write_pJ access_ns area_mm2 leak_mW``. Each law is
a power law with the least sum of absolute deviations in the logarithm; that of writes has the
node's power of reads, so that the energy of a mixture of both goes with the node by one factor.
Prints CSV: constants, the median and the largest error over all runs, and both over runs whose
size was left out of the fit.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]

RUNS = Path(__file__).resolve().parents[1] / "tests" / "data" / "cacti_sram.csv"
REFERENCE_NM, REFERENCE_BITS = 45.0, 64.0
QUANTITIES = {"read": "read_pJ", "write": "write_pJ", "access": "access_ns", "area": "area_mm2"}


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=Path, default=RUNS)
    runs = _columns(parser.parse_args().runs)
    table = csv.writer(sys.stdout)
    table.writerow(
        ["law", "scale", "size", "bus", "node", "median", "largest", "held_median", "held_largest"]
    )
    for name, column in QUANTITIES.items():
        wanted = np.log(runs[column])
        law = _law(runs, name, wanted)
        seen, held = _errors(runs, law, wanted), _held_out(runs, name, wanted)
        figures = [np.exp(law[0]), *law[1:], np.median(seen), seen.max()]
        table.writerow([name, *(f"{x:.5g}" for x in (*figures, np.median(held), held.max()))])
    print()
    table.writerow(["leakage_nm", "w_per_mm2", "median_off", "largest_off", "off_if_left_out"])
    for row in _leakage(runs):
        table.writerow([f"{x:.4f}" for x in row])


def _columns(path: Path) -> dict[str, Floats]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("node_nm", "size_kB", "bus_bits", "leak_mW", *QUANTITIES.values())
    return {name: np.array([float(row[name]) for row in rows]) for name in names}


def _matrix(runs: dict[str, Floats]) -> Floats:
    """One, and the logarithms of size, bus and node."""
    logs = [
        np.log(runs["size_kB"]),
        np.log(runs["bus_bits"] / REFERENCE_BITS),
        np.log(runs["node_nm"] / REFERENCE_NM),
    ]
    return np.column_stack([np.ones(len(logs[0])), *logs])


def _law(runs: dict[str, Floats], name: str, wanted: Floats) -> Floats:
    matrix = _matrix(runs)
    if name != "write":
        return _least(matrix, wanted)
    node = _least(matrix, np.log(runs["read_pJ"]))[3]
    return np.append(_least(matrix[:, :3], wanted - node * matrix[:, 3]), node)


def _least(matrix: Floats, wanted: Floats) -> Floats:
    """The constants with the least sum of absolute deviations, as a linear program."""
    count, unknowns = matrix.shape
    cost = np.append(np.zeros(2 * unknowns), np.ones(2 * count))
    equal = np.hstack([matrix, -matrix, np.eye(count), -np.eye(count)])
    found = linprog(cost, A_eq=equal, b_eq=wanted, method="highs").x
    return np.asarray(found[:unknowns] - found[unknowns : 2 * unknowns])


def _errors(runs: dict[str, Floats], law: Floats, wanted: Floats) -> Floats:
    return np.abs(np.exp(_matrix(runs) @ law - wanted) - 1.0)


def _held_out(runs: dict[str, Floats], name: str, wanted: Floats) -> Floats:
    """The errors of each size under the law of all others."""
    found = []
    for size in np.unique(runs["size_kB"]):
        own = runs["size_kB"] == size
        others = {key: values[~own] for key, values in runs.items()}
        its = {key: values[own] for key, values in runs.items()}
        found.append(_errors(its, _law(others, name, wanted[~own]), wanted[own]))
    return np.concatenate(found)


def _leakage(runs: dict[str, Floats]) -> list[list[float]]:
    """Node, its median, how far runs are off, and the median between its neighbours alone."""
    density = runs["leak_mW"] * 1e-3 / runs["area_mm2"]
    nodes = np.unique(runs["node_nm"])
    medians = np.array([np.median(density[runs["node_nm"] == node]) for node in nodes])
    rows = []
    for place, node in enumerate(nodes):
        off = np.abs(medians[place] / density[runs["node_nm"] == node] - 1.0)
        left = np.delete(np.arange(len(nodes)), place)
        between = np.exp(np.interp(np.log(node), np.log(nodes[left]), np.log(medians[left])))
        inner = 0 < place < len(nodes) - 1
        told = between / medians[place] - 1.0 if inner else np.nan
        rows.append([node, medians[place], np.median(off), off.max(), told])
    return rows


if __name__ == "__main__":
    main()
