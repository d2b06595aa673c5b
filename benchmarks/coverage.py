"""Held-out error of ``reasoning.allocation``'s coverage on published curves of pass@k.

    python benchmarks/coverage.py [FILE] [--distribution auto|beta|mixture]

For each class and model, the distribution of difficulty is fitted to some k; the error at each k
that was not fitted is printed in points, and at the end the largest. Without a file, the curves are
those of ``coverage_curves.csv``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dse_evaluators.reasoning.difficulty import DISTRIBUTIONS, fit_difficulty
from dse_evaluators.reasoning.pass_counts import read_pass_file

CURVES = Path(__file__).with_name("coverage_curves.csv")


def main() -> None:
    """Print a line for each curve, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=CURVES)
    parser.add_argument("--distribution", choices=DISTRIBUTIONS, default="auto")
    asked = parser.parse_args()
    errors: list[float] = []
    for curve in read_pass_file(asked.file):
        fit = fit_difficulty(curve, asked.distribution)
        held_out = {count: 100 * error for count, error in fit.errors.items()}
        errors += held_out.values()
        listed = ", ".join(f"k={count} {error:+.1f}" for count, error in held_out.items())
        fitted = ", ".join(map(str, fit.fitted))
        print(f"{curve.group}, {curve.model}: fitted to k = {fitted}; held out {listed or 'none'}")
    if errors:
        mean = sum(map(abs, errors)) / len(errors)
        print(
            f"{len(errors)} k held out: {mean:.2f} points on the mean, "
            f"{max(errors, key=abs):+.2f} at most, {sum(abs(one) > 3 for one in errors)} above 3"
        )


if __name__ == "__main__":
    main()
