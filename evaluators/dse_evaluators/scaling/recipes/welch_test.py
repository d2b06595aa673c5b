"""Evaluator `training.welch-test`: whether measured energies differ, from a table of runs."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import InfeasibleError, SpecError
from dse.units.units import factor
from dse_evaluators.csv_files.csv_rows import parse_positive, read_csv_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import Reading, Readings, one_of

_FEWEST_RUNS = 2
_POWER = 0.8
"""Probability with which a difference of ``detectable`` is found; Cohen, 1988."""

_INPUTS: Mapping[str, Reading] = {"setting": one_of(()), "against": one_of(())}
_PLAIN = (
    Metric(name="share", goal="minimize"),
    Metric(name="p_value", goal="minimize"),
    Metric(name="significant"),
)


def _measured(unit: str) -> tuple[Metric, ...]:
    return (
        Metric(name="mean", unit=unit, goal="minimize"),
        Metric(name="difference", unit=unit, goal="minimize"),
        Metric(name="low", unit=unit),
        Metric(name="high", unit=unit),
        Metric(name="stderr", unit=unit, goal="minimize"),
        Metric(name="detectable", unit=unit, goal="minimize"),
    )


class WelchTest(DeclaredEvaluator, reads=_INPUTS, provides=(*_measured("J"), *_PLAIN), version="1"):
    """Difference of the means of two settings in a table of runs, with its error.

    ``difference`` is the mean of the setting minus that of the one it is compared with; ``low`` and
    ``high`` are its confidence interval, ``share`` its ratio to the latter mean. ``significant`` is
    1 if the test finds a difference, and 0 for no difference. ``detectable`` is the difference that
    as many runs would find with a probability of 80 %: an effect below it may be missed.

    Args:
        file: a CSV file with a row for each run: measurements of yours.
        group: the column of the setting, such as a precision.
        value: the column of the measured value, such as an energy, a power or a time.
        unit: unit of the value.
        level: significance level of the two-sided test.

    Inputs:
        setting: a setting of the file.
        against: the setting that it is compared with.

    Limits:
        Runs are independent; means of few runs are near normal. Several settings compared with one
        need a smaller ``level``.

    Error:
        With equal means and unequal deviations (1 and 3, five runs and eight), the test finds a
        difference in 5 % of the tables, to a point, in 2,000 drawn ones.

    Source:
        Welch: The Generalization of "Student's" Problem when Several Different Population Variances
        are Involved, 1947; Satterthwaite, 1946 (degrees of freedom); Bloom: Minimum Detectable
        Effects, 1995.

    Example:
        options: {file: energies.csv, against: fp32}
        parameters: {setting: [bf16, fp16]}
        objectives: {difference: minimize}
        files:
          energies.csv: |
            setting,energy
            fp32,1210
            fp32,1198
            fp32,1225
            bf16,1190
            bf16,1215
            bf16,1181
            fp16,990
            fp16,1010
            fp16,1002

    Raises:
        SpecError: the file cannot be read or has invalid rows or too few, or an option is
            invalid.
    """

    file: str
    group: str = "setting"
    value: str = "energy"
    unit: str = "J"
    level: float = 0.05
    setting: str | None = None
    against: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise SpecError("level is between 0 and 1", hint="0.05", part=["level"])
        try:
            factor(self.unit)
        except SpecError as error:
            raise SpecError(error.problem, hint=error.hint, part=["unit"]) from error
        self._runs = read_runs(Path(self.file), self.group, self.value)
        self.provides = {one.name: one for one in (*_measured(self.unit), *_PLAIN)}
        digest = hashlib.sha256(Path(self.file).read_bytes()).hexdigest()[:8]
        self.version = f"{self.version}-{digest}-{self.group}-{self.value}-{self.level}"
        words = one_of(self._runs)
        self.declare(Readings.of({"setting": words, "against": words}, self))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; a setting against itself is infeasible."""
        return one_by_one(batch, self.provides, self._compare)

    def _compare(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        (row,) = self._readings.rows(Batch.of([design]))
        names = list(self._runs)
        setting, against = names[int(row["setting"])], names[int(row["against"])]
        if setting == against:
            raise InfeasibleError(f"{setting} is compared with itself")
        first, second = self._runs[setting], self._runs[against]
        found = compare_means(first, second)
        low, high = found.interval(self.level)
        chance = found.p_value
        return {
            "mean": float(first.mean()),
            "difference": found.mean,
            "low": low,
            "high": high,
            "stderr": found.error,
            "detectable": found.detectable(self.level),
            "share": found.mean / float(second.mean()),
            "p_value": chance,
            "significant": float(chance < self.level),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifference:
    """Difference of two means, its standard error and the degrees of freedom of the error."""

    mean: float
    error: float
    freedom: float

    @property
    def p_value(self) -> float:
        """Probability of a difference as large if the means were equal, two-sided."""
        from scipy import stats  # slow to import, and checking a study does not need it

        if self.error == 0:
            return float(self.mean == 0)
        return float(2 * stats.t.sf(abs(self.mean) / self.error, self.freedom))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval of 1 - ``level``."""
        reach = self._quantile(1 - level / 2) * self.error
        return self.mean - reach, self.mean + reach

    def detectable(self, level: float) -> float:
        """Return the difference that the test finds with a probability of 80 %."""
        return (self._quantile(1 - level / 2) + self._quantile(_POWER)) * self.error

    def _quantile(self, probability: float) -> float:
        from scipy import stats  # as above

        return float(stats.t.ppf(probability, self.freedom))


def compare_means(
    first: Floats,  # (n,)
    second: Floats,  # (k,)
) -> MeanDifference:
    """Return the difference of two means whose variances may differ.

    Source:
        Welch, 1947; Satterthwaite, 1946.
    """
    shares = [float(one.var(ddof=1)) / len(one) for one in (first, second)]
    total = sum(shares)
    sizes = (len(first), len(second))
    below = sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))
    return MeanDifference(
        mean=float(first.mean() - second.mean()),
        error=math.sqrt(total),
        freedom=total**2 / below if below else float(sum(sizes) - 2),
    )


def read_runs(path: Path, group: str, value: str) -> Mapping[str, Floats]:
    """Return the values of each setting in a CSV file, in the order of the file.

    Raises:
        SpecError: the file cannot be read or has an invalid row, one setting or one run of a
            setting.
    """
    runs: dict[str, list[float]] = defaultdict(list)
    for row in read_csv_rows(path, (group, value)):
        runs[row.cells[group]].append(parse_positive(row, value))
    if len(runs) < _FEWEST_RUNS:
        given = ", ".join(runs) or "none"
        raise SpecError(f"{path}: settings are {given}", hint="two settings or more to compare")
    for name, values in runs.items():
        if len(values) < _FEWEST_RUNS:
            raise SpecError(
                f"{path}: {name} has one run, which has no deviation", hint="repeat the measurement"
            )
    return {name: np.array(values) for name, values in runs.items()}
