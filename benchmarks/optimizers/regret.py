"""Regret by trial of every run: one minus the share of the true hypervolume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import records

from dse.core.values import Floats

CHECKPOINTS = (25, 50, 100, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One run: its regret and the optimizer's processor seconds after each trial."""

    regrets: Floats  # (t,)
    seconds: Floats  # (t,)
    ended: bool
    """True if the optimizer had nothing left to ask: the last regret holds from there on."""

    def at(self, trials: int) -> float | None:
        """The regret after so many trials; none where the run did not come so far."""
        if len(self.regrets) < trials and not self.ended:
            return None
        return float(self.regrets[min(trials, len(self.regrets)) - 1])


@dataclass(frozen=True, slots=True)
class Curves:
    """All runs by problem, optimizer and seed."""

    by_seed: Mapping[tuple[str, str], Mapping[int, Curve]]

    @staticmethod
    def of(files: Iterable[Path]) -> Curves:
        """The runs of these files; a run that is in several is taken from the last."""
        rows: dict[tuple[str, str, int], list[dict[str, str]]] = {}
        ended: set[tuple[str, str, int]] = set()
        for file in files:
            own: dict[tuple[str, str, int], list[dict[str, str]]] = {}
            for row in records.rows_of(file):
                own.setdefault(records.key_of(row), []).append(row)
            rows |= own
            told = records.runs_file(file)
            for row in records.rows_of(told) if told.exists() else ():
                if row.get("ended") == records.NOTHING_LEFT:
                    ended.add(records.key_of(row))
        found: dict[tuple[str, str], dict[int, Curve]] = {}
        for key, mine in rows.items():
            problem, optimizer, seed = key
            found.setdefault((problem, optimizer), {})[seed] = _curve(mine, ended=key in ended)
        return Curves(found)

    def only(self, problems: Sequence[str] | None) -> Curves:
        """The runs on these problems; on all where none is named."""
        kept = {k: runs for k, runs in self.by_seed.items() if not problems or k[0] in problems}
        return Curves(kept)

    @property
    def problems(self) -> list[str]:
        """In the order of the files."""
        return list(dict.fromkeys(problem for problem, _ in self.by_seed))

    @property
    def optimizers(self) -> list[str]:
        """In the order of the files."""
        return list(dict.fromkeys(optimizer for _, optimizer in self.by_seed))

    def regrets(self, problem: str, optimizer: str, trials: int) -> dict[int, float]:
        """By seed, of those runs that came so far."""
        runs = self.by_seed.get((problem, optimizer), {})
        found = {seed: curve.at(trials) for seed, curve in sorted(runs.items())}
        return {seed: regret for seed, regret in found.items() if regret is not None}

    def median(self, problem: str, optimizer: str, trials: int) -> float | None:
        """Over the seeds; none where no run came so far."""
        found = list(self.regrets(problem, optimizer, trials).values())
        return float(np.median(found)) if found else None


def _curve(rows: list[dict[str, str]], *, ended: bool) -> Curve:
    by_trial = {int(row["trial"]): row for row in rows}  # a run that was played again counts once
    told = [by_trial[trial] for trial in sorted(by_trial)]
    return Curve(
        regrets=np.array([1 - float(row["share"]) for row in told]),
        seconds=np.array([float(row["optimizer_s"]) for row in told]),
        ended=ended,
    )
