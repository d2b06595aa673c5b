"""Reliability of cheap fidelities as substitutes for the true metric: ranks and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.markup import escape as plain

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.optimizers.bayesian.fidelity_agreement import kendall
from dse.optimizers.bayesian.fidelity_calibration import (
    FEWEST,
    choose_calibration,
    held_out,
    select_pairs,
)
from dse.report.json.front_json import finite
from dse.report.schemas.front_schema import RungFacts
from dse.report.text.terminal_table import results_console
from dse.report.words import number_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """Reliability of a cheap fidelity as a substitute for the highest fidelity of a metric.

    The numbers are computed over designs that were evaluated at both fidelities. ``raw`` is the
    root mean square error of the cheap metric before calibration, ``error`` its root mean square
    error on held-out designs after calibration, both in the metric's unit; ``tau`` is Kendall's
    rank correlation.
    """

    metric: str
    rung: str
    unit: str
    designs: int
    tau: float | None
    raw: float | None
    error: float | None
    calibration: str

    def words(self) -> str:
        """Return the fidelity's rank correlation and errors as one line of text."""
        start = f"{self.rung} for {self.metric}"
        if self.raw is None:
            return f"{start}: no design has both yet"
        tau = "-" if self.tau is None else f"{self.tau:.2f}"
        text = f"{start}: Kendall tau {tau} over {self.designs} designs, error "
        text += number_text(self.raw, self.unit)
        if self.error is None:
            return text
        return f"{text}; {number_text(self.error, self.unit)} held out ({self.calibration})"


def rungs(problem: Problem, trials: Sequence[Trial]) -> tuple[Rung, ...]:
    """Return the reliability of each lower fidelity; only one trial per design counts."""
    return tuple(_rungs(problem, trials))


def rungs_json(found: Sequence[Rung]) -> list[RungFacts]:
    """Return the reliability of each lower fidelity as a JSON object."""
    return [
        {
            "metric": one.metric,
            "rung": one.rung,
            "designs": one.designs,
            "kendall_tau": one.tau,
            "error": finite(one.raw),
            "held_out_error": finite(one.error),
            "calibration": one.calibration,
        }
        for one in found
    ]


def rungs_table(found: Sequence[Rung], *, console: Console | None = None) -> None:
    """Print one line on the reliability of each lower fidelity."""
    for one in found:
        (console or results_console()).print(plain(one.words()))


def _rungs(problem: Problem, trials: Sequence[Trial]) -> Iterator[Rung]:
    for metric, ladder in problem.ladders.items():
        for rung in ladder[:-1]:
            low, high = select_pairs(problem, rung, metric, trials)
            enough = len(low) > FEWEST
            yield Rung(
                metric=metric,
                rung=rung,
                unit=problem.metrics[metric].unit,
                designs=len(low),
                tau=kendall(low, high),
                raw=_size(low - high) if len(low) else None,
                error=_size(held_out(low, high) - high) if enough else None,
                calibration=choose_calibration(low, high).kind,
            )


def _size(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))
