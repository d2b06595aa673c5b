"""Evaluator `training.performance-profile`: the score of AlgoPerf, of times to a target."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_rows import parse_positive, read_csv_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Reading, Readings, one_of

COLUMNS = ("submission", "workload", "time")
NEVER = ("dnf", "inf")
"""Words in place of a time for a training that did not reach its target."""

_INPUTS: Mapping[str, Reading] = {"submission": one_of(())}  # the words are those of the file
_METRICS = (
    Metric(name="score", goal="maximize"),
    Metric(name="fastest", goal="maximize"),
    Metric(name="reached", goal="maximize"),
)


class PerformanceProfile(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Score of a training algorithm over several workloads, from times to a target.

    The performance profile of a submission is the share of the workloads on which its time is at
    most a factor times that of the fastest submission. ``score`` is the mean of the profile over
    the factors from 1 to ``within``; ``fastest`` and ``reached`` are its values at 1 and at
    ``within``. All are relative to the submissions of the file: another one may change them.

    Args:
        file: a CSV file with the columns ``submission``, ``workload`` and ``time``; ``DNF`` is the
            time of a training that did not reach the target. If a submission has several rows for a
            workload, the median counts; a workload without a row is not reached. A column
            ``held_out_of`` names the workload that a row is a variant of: the variant is no
            workload of its own, and the named one counts as not reached if the variant is not.
        within: largest factor of the profile. Slower times count as not reached.
        points: factors by which the profile is integrated with the trapezoidal rule, as in
            AlgoPerf's own code, which has 100; by default, it is integrated exactly.

    Inputs:
        submission: a submission of the file.

    Limits:
        The variance of the times enters by the median alone.

    Error:
        With ``points: 100``, the scores of the eleven submissions of AlgoPerf v0.5 with external
        tuning are those of its leaderboard to four digits; the exact integral differs by 0.0015.

    Source:
        Dahl et al.: Benchmarking Neural Network Training Algorithms, 2023, section 4.5; Dolan,
        More, 2002 (performance profiles); the rule of variants is that of AlgoPerf v0.5.

    Example:
        options: {file: times.csv}
        parameters: {submission: [adam, shampoo]}
        objectives: {score: maximize}
        files:
          times.csv: |
            submission,workload,time
            adam,speech,100
            adam,images,250
            shampoo,speech,80
            shampoo,images,DNF

    Raises:
        SpecError: the file cannot be read or has invalid rows, or an option is out of its range.
    """

    file: str
    within: float = 4.0
    points: int | None = None
    submission: str | None = None

    def __post_init__(self) -> None:
        if not 1 < self.within < 1e6:
            raise SpecError("within is a factor above 1", hint="4, as in AlgoPerf", part=["within"])
        if self.points is not None and not 2 <= self.points <= 1_000_000:
            hint = "100, as in AlgoPerf; leave it out for the exact integral"
            raise SpecError("points are 2 to a million", hint=hint, part=["points"])
        times = read_times(Path(self.file))
        self._ratios = compare_times(times, self.within)
        digest = hashlib.sha256(Path(self.file).read_bytes()).hexdigest()[:8]
        self.version = f"{self.version}-{digest}-{self.within}-{self.points}"
        self.declare(Readings.of({"submission": one_of(times.submissions)}, self))

    def compute(self, inputs: Mapping[str, Floats], /) -> dict[str, Floats]:
        """Return the metrics of n designs by name, each (n,)."""
        ratios = self._ratios[inputs["submission"].astype(int)]  # (n, w)
        return {
            "score": integrate_profile(ratios, self.within, self.points),
            "fastest": (ratios <= 1).mean(axis=1),
            "reached": (ratios <= self.within).mean(axis=1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesToTarget:
    """Times of s submissions to the targets of w workloads and of v variants; infinite if never."""

    submissions: Sequence[str]
    times: Floats  # (s, w)
    variants: Floats  # (s, v)
    base: Sequence[int]  # (v,), the workload that each is a variant of


def read_times(path: Path) -> TimesToTarget:
    """Return the times of a CSV file; the median of the rows of a submission and a workload.

    Raises:
        SpecError: the file cannot be read, has no row or an invalid one, or a variant of a workload
            that is not in the file.
    """
    rows: dict[tuple[str, str], list[float]] = defaultdict(list)
    base_of: dict[str, tuple[str, str]] = {}  # workload: what it is a variant of, and the place
    for row in read_csv_rows(path, COLUMNS):
        name, workload = row.cells["submission"], row.cells["workload"]
        rows[name, workload].append(parse_positive(row, "time", never=NEVER))
        base = row.cells.get("held_out_of", "")
        if base_of.setdefault(workload, (base, row.place))[0] != base:
            problem = f"{row.place}: {workload} is a variant of {base or 'none'} here, and of "
            raise SpecError(problem + f"{base_of[workload][0] or 'none'} above", hint="one of both")
    workloads = [one for one, (base, _) in base_of.items() if not base]
    variants = [one for one, (base, _) in base_of.items() if base]
    for one in variants:
        base, place = base_of[one]
        if base not in workloads:
            problem = f"{place}: there is no workload {base!r}, which {one} is a variant of"
            raise SpecError(problem, hint=nearest(base, workloads))
    submissions = list(dict.fromkeys(name for name, _ in rows))

    def middle(names: Sequence[str]) -> Floats:
        """Return the medians of the workloads, (s, number of names)."""
        given = [[rows.get((one, name), [np.inf]) for name in names] for one in submissions]
        return np.array([[np.median(each) for each in row] for row in given]).reshape(
            len(submissions), len(names)
        )

    return TimesToTarget(
        submissions=submissions,
        times=middle(workloads),
        variants=middle(variants),
        base=[workloads.index(base_of[one][0]) for one in variants],
    )


def compare_times(times: TimesToTarget, within: float) -> Floats:
    """Return the ratios to the fastest submission, (s, w); infinite above ``within``.

    A workload is not reached if a variant of it takes longer than ``within`` times the fastest that
    reached both.
    """
    found = times.times.copy()
    ratios = _divide_by_least(found, within)
    for column, base in zip(times.variants.T, times.base, strict=True):
        both = np.where(np.isfinite(found[:, base]), column, np.inf)
        late = ~np.isfinite(_divide_by_least(both[:, None], within)[:, 0])
        ratios[late, base] = np.inf
    # the fastest may have failed a variant, which makes another one the fastest
    return _divide_by_least(np.where(np.isfinite(ratios), found, np.inf), within)


def _divide_by_least(times: Floats, within: float) -> Floats:
    least = times.min(axis=0)
    reached = np.isfinite(times)
    ratios = np.full(times.shape, np.inf)
    np.divide(times, least, out=ratios, where=reached)
    return np.where(ratios <= within, ratios, np.inf)


def integrate_profile(
    ratios: Floats,  # (n, w)
    within: float,
    points: int | None = None,
) -> Floats:
    """Return the mean of the performance profiles over the factors from 1 to ``within``, (n,).

    A workload with ratio r adds the part of the factors that are r or more.

    Source:
        Dahl et al., 2023, section 4.5: the integral over the length of its interval.
    """
    if points is None:
        left = np.where(ratios <= within, within - np.minimum(ratios, within), 0.0)
        return np.asarray(left.mean(axis=1) / (within - 1))
    factors = np.linspace(1, within, points)
    shares = (ratios[:, :, None] <= factors).mean(axis=1)  # (n, points)
    return np.asarray(np.trapezoid(shares, factors, axis=1) / (within - 1))
