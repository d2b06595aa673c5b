"""What the runs say, as Markdown: regret by trials, and one optimizer against the others.

Run: python benchmarks/optimizers summary cells.csv [more.csv ...] [--of auto]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import catalogue
import numpy as np
from regret import CHECKPOINTS, Curves
from verdicts import TIE, Verdict, best_peer, ratio, verdicts


def main(arguments: Sequence[str]) -> None:
    """Print the tables of the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--of", default="auto", help="the optimizer that is compared (auto)")
    parser.add_argument("--problem", action="append", help="only this problem")
    chosen = parser.parse_args(arguments)
    curves = Curves.of(chosen.files).only(chosen.problem)
    peers = [n for n in curves.optimizers if n in catalogue.PEERS and n != chosen.of]
    for line in (*tables(curves), *against(curves, chosen.of, peers), *seconds(curves)):
        print(line)


def tables(curves: Curves) -> Iterator[str]:
    """Median regret and interquartile range of every problem and optimizer."""
    for problem in curves.problems:
        yield f"\n{problem}: median regret (quartiles) after so many trials\n"
        yield from _table(
            ["optimizer", "seeds", *map(str, CHECKPOINTS)],
            (
                [name, str(len(curves.by_seed[problem, name])), *_cells(curves, problem, name)]
                for name in curves.optimizers
                if (problem, name) in curves.by_seed
            ),
        )


def against(curves: Curves, mine: str, peers: Sequence[str]) -> Iterator[str]:
    """The verdicts on one optimizer at every checkpoint, and its place among the best peers."""
    cells: list[tuple[float, float]] = []
    for trials in CHECKPOINTS:
        found = verdicts(curves, mine, peers, trials)
        if not found:
            continue
        yield f"\n{mine} after {trials} trials\n"
        yield from _table(
            ["against", "pairs", "median difference", "p (Holm)", "win/tie/loss", "clear", "ratio"],
            map(_row, found),
        )
        yield ""
        pairs = _with_best(curves, mine, peers, trials)
        yield from _summed(mine, found, pairs)
        cells += pairs
    if cells:
        first = sum(ours <= best + TIE for ours, best in cells)
        yield f"\nno peer better: {first} of {len(cells)} cells ({first / len(cells):.0%})"


def seconds(curves: Curves) -> Iterator[str]:
    """Median processor seconds that each optimizer had taken, over all problems."""
    yield "\nprocessor seconds of the optimizer, median over all runs, up to so many trials\n"
    yield from _table(
        ["optimizer", *map(str, CHECKPOINTS)],
        (
            [name, *(_seconds(curves, name, trials) for trials in CHECKPOINTS)]
            for name in curves.optimizers
        ),
    )


def _cells(curves: Curves, problem: str, optimizer: str) -> Iterator[str]:
    for trials in CHECKPOINTS:
        found = list(curves.regrets(problem, optimizer, trials).values())
        if not found:
            yield ""
            continue
        low, middle, high = np.percentile(found, [25, 50, 75])
        yield f"{middle:.4f} ({low:.4f}-{high:.4f})"


def _row(verdict: Verdict) -> list[str]:
    return [
        verdict.peer,
        str(verdict.pairs),
        f"{verdict.difference:+.4f}",
        f"{verdict.p:.2g}",
        f"{verdict.wins}/{verdict.ties}/{verdict.losses}",
        f"+{verdict.clear_wins} -{verdict.clear_losses}",
        f"{verdict.ratio:.2f}",
    ]


def _summed(
    mine: str, found: Sequence[Verdict], pairs: Sequence[tuple[float, float]]
) -> Iterator[str]:
    """On how many problems no peer is better, and the quotients with the best ones."""
    first = sum(ours <= best + TIE for ours, best in pairs)
    mean = float(np.mean([ratio(ours, best) for ours, best in pairs]))
    whole = [v for v in found if v.wins + v.ties + v.losses == len(pairs)]
    yield f"no peer better: {first} of {len(pairs)} problems"
    yield f"mean of {mine} / best peer of each problem: {mean:.2f}"
    if whole:
        single = max(whole, key=lambda verdict: verdict.ratio)
        yield f"best single peer: {single.peer}, mean of {mine} / {single.peer}: {single.ratio:.2f}"


def _with_best(
    curves: Curves, mine: str, peers: Sequence[str], trials: int
) -> list[tuple[float, float]]:
    """The median regret of mine and of the best peer, for each problem that both played."""
    return [
        (ours, best[0])
        for problem in curves.problems
        if (ours := curves.median(problem, mine, trials)) is not None
        and (best := best_peer(curves, problem, peers, trials)) is not None
    ]


def _seconds(curves: Curves, optimizer: str, trials: int) -> str:
    found = [
        curve.seconds[trials - 1]
        for (_, name), runs in curves.by_seed.items()
        for curve in runs.values()
        if name == optimizer and len(curve.seconds) >= trials
    ]
    return f"{np.median(found):.2f}" if found else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
