"""Held-out error of ``reasoning.allocation``'s coverage on published curves of pass@k.

    python benchmarks/coverage.py [FILE] [--distribution auto|beta|mixture]

For each class, model and temperature, the distribution of difficulty is fitted to some k; the error
at each k that was not fitted is printed in points, and at the end the largest, also of the same
curves with no more than three k: 1, 8 and the largest. Where a model was
sampled at several temperatures, the best of them for each k is compared with one fit to these best
shares, and with the best of the fits. Without a file, the curves are those of three:
``coverage_curves.csv``, with which the k to fit were chosen; ``coverage_unseen.csv``, gathered
after that; and ``coverage_best_temperature.csv``, of shares at the best temperature for each k.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dse_evaluators.reasoning.difficulty import DISTRIBUTIONS, fit_difficulty
from dse_evaluators.reasoning.pass_counts import PassCurve, read_pass_file

HERE = Path(__file__).parent
FILES = {
    "coverage_curves.csv": "curves with which the rule of the k to fit was chosen",
    "coverage_unseen.csv": "curves gathered after the rule was chosen",
    "coverage_best_temperature.csv": "shares at the best temperature for each k, fitted as one",
}


def main() -> None:
    """Print the errors of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--distribution", choices=DISTRIBUTIONS, default="auto")
    asked = parser.parse_args()
    for file in [asked.file] if asked.file else [HERE / name for name in FILES]:
        print(f"{file.name}: {FILES.get(file.name, 'curves of the file')}")
        curves = read_pass_file(file)
        print_curves(curves, asked.distribution)
        print_envelopes(curves, asked.distribution)


def print_curves(curves: Sequence[PassCurve], distribution: str) -> None:
    """Print a line for each curve, and the summary."""
    errors: list[float] = []
    thinned: list[float] = []
    for curve in curves:
        fit = fit_difficulty(curve, distribution)
        held_out = {count: 100 * error for count, error in fit.errors.items()}
        errors += held_out.values()
        thinned += thin(curve, distribution)
        listed = ", ".join(f"k={count} {error:+.1f}" for count, error in held_out.items())
        fitted = ", ".join(map(str, fit.fitted))
        print(f"{curve.name}: fitted to k = {fitted}; held out {listed or 'none'}")
    summarize(f"{len(curves)} curves", errors)
    summarize("of these, with k = 1, 8 and the largest alone", thinned)


def thin(curve: PassCurve, distribution: str) -> list[float]:
    """Return the error at k = 8, in points, of a fit to k = 1 and the largest k of at least 64."""
    largest = max(count for count, share in curve.solved.items() if share < 1)
    if 8 not in curve.solved or largest < 64:
        return []
    few = {count: curve.solved[count] for count in (1, 8, largest)}
    return [100 * fit_difficulty(replace(curve, solved=few), distribution).errors[8]]


def summarize(what: str, errors: Sequence[float]) -> None:
    """Print the mean and the largest of some errors in points."""
    if errors:
        mean = sum(map(abs, errors)) / len(errors)
        print(
            f"{what}: {len(errors)} k held out, {mean:.2f} points on the mean, "
            f"{max(errors, key=abs):+.2f} at most, {sum(abs(one) > 3 for one in errors)} above 3"
        )


def print_envelopes(curves: Sequence[PassCurve], distribution: str) -> None:
    """Print how far one fit, and the best of the fits, are from the best shares of temperatures."""
    grouped: dict[tuple[str, str, float], list[PassCurve]] = {}
    for curve in curves:
        grouped.setdefault((curve.group, curve.model, curve.tokens), []).append(curve)
    for some in grouped.values():
        if len(some) == 1:
            continue
        counts = sorted(set.intersection(*(set(one.solved) for one in some)))
        best = {count: max(one.solved[count] for one in some) for count in counts}
        single = fit_difficulty(replace(some[0], solved=best, temperature=None), distribution)
        fits = [fit_difficulty(one, distribution) for one in some]
        listed = ", ".join(
            f"k={count} {100 * error:+.1f} and "
            f"{100 * (max(fit.solve(count) for fit in fits) - best[count]):+.1f}"
            for count, error in single.errors.items()
        )
        print(f"best temperature of {some[0].group} of {some[0].model}: one fit, best of {listed}")


if __name__ == "__main__":
    main()
