"""Expected largest coefficient of the noise of a BFV layer, drawn: ``bfv_largest_noise.csv``.

    python benchmarks/bfv_noise_table.py [--draws 300] [--write]

A key switch multiplies digits, uniform below a prime, by the errors of its key. The mean of the
digits times the errors is a random walk over the coefficients, three quarters of the variance, and
products with plaintexts keep its spectrum: neighbouring coefficients are alike, and the largest one
is less far out than of independent ones. A rotation permutes the coefficients, so that a sum of
differently rotated products is nearer to independence. This draws Gaussian polynomials that are
sums of such walks and of an independent part. It prints the expected logarithm of the largest
coefficient over the standard deviation, by ring, by the number of polynomials of which it is the
largest, by the number of differently rotated parts and by the walks' share of the variance.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.private_inference import bfv_parameters
from dse_evaluators.private_inference.bfv_parameters import RINGS

SHARES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75)
OUTPUTS = (1, 4, 16, 64)
PARTS = (1, 2, 4, 8, 16)
FILE = Path(bfv_parameters.__file__).with_name("bfv_largest_noise.csv")


def draw_largest(ring: int, parts: int, draws: int, rng: np.random.Generator) -> Floats:
    """Return log2 of the largest coefficient of drawn polynomials, (draws, shares)."""
    places = np.arange(ring)
    # The polynomial whose coefficients are all 1, at the roots of x^n + 1, over its mean square.
    spectrum = 1.0 / np.sin(np.pi * (2.0 * places + 1.0) / ring / 2.0) / np.sqrt(ring)
    turn = np.exp(1j * np.pi * places / ring)
    found = np.empty((draws, len(SHARES)))
    for draw in range(draws):
        walks = np.zeros(ring)
        for _ in range(parts):
            steps = rng.standard_normal(ring)
            walk = (np.fft.ifft(np.fft.fft(steps * turn) * spectrum) / turn).real
            moved = places * (2 * int(rng.integers(ring)) + 1) % (2 * ring)  # x to an odd power
            walks[moved % ring] += np.where(moved < ring, walk, -walk)
        white = rng.standard_normal(ring)
        for place, share in enumerate(SHARES):
            noise = np.sqrt(share / parts) * walks + np.sqrt(1.0 - share) * white
            found[draw, place] = np.log2(np.abs(noise).max())
    return found


def expect_largest(drawn: Floats, outputs: int) -> Floats:
    """Return the expected largest of some values, each one of those drawn, (shares,)."""
    ranks = np.arange(len(drawn) + 1) / len(drawn)
    return np.diff(ranks**outputs) @ np.sort(drawn, axis=0)


def main() -> None:
    """Print the table as CSV, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    rows: list[list[object]] = [
        ["ring", "outputs", "parts", *(f"share_{share}" for share in SHARES)]
    ]
    for ring in RINGS:
        drawn = [draw_largest(ring, parts, asked.draws, rng) for parts in PARTS]
        for outputs in OUTPUTS:
            for parts, some in zip(PARTS, drawn, strict=True):
                largest = [f"{value:.3f}" for value in expect_largest(some, outputs)]
                rows.append([ring, outputs, parts, *largest])
    if asked.write:
        with FILE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    else:
        csv.writer(sys.stdout).writerows(rows)


if __name__ == "__main__":
    main()
