"""The evaluator ``schedules.core-shares``: tasks that divide the cores of a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, SpecError, nearest
from dse_evaluators.alike import infeasible
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Readings
from dse_evaluators.serving.scaling_table import read_scaling

SUFFIX = "_cores"
"""End of the names of the inputs, after the name of the task."""

_LAWS = ("amdahl", "table")
_METRICS = (
    Metric(name="makespan", unit="s", goal="minimize"),
    Metric(name="in_turn", unit="s", goal="minimize"),
    Metric(name="speedup", goal="maximize"),
    Metric(name="idle_share", goal="minimize"),
    Metric(name="test_error", goal="minimize"),
)


class CoreShares(DeclaredEvaluator, reads={}, provides=_METRICS, version="1"):
    """Makespan of tasks that run at the same time on cores of their own, from measured scaling.

    ``makespan`` is the time of the slowest task. ``in_turn`` is the sum of the times of the tasks,
    each on all cores, one after the other; ``speedup`` is that over the makespan. ``idle_share`` is
    the share of the core-seconds until the makespan in which a core has no task. ``test_error`` is
    the mean relative error of Amdahl's law on the rows of the table with ``split: test``; undefined
    without such rows. Tasks that need more cores than there are, are infeasible.

    Each task of the table has an input for its cores, such as ``solver_cores``.

    Args:
        scaling: your measurements: a CSV or Parquet file with the columns ``task``, ``cores`` and
            ``seconds``, and optionally ``split``; a law is fitted to the rows ``fit`` only.
        law: ``amdahl`` fits a + b/p to each task; ``table`` takes the recorded times, for recorded
            numbers of cores only.
        cores: cores of the machine.

    Limits:
        Tasks do not slow one another: shared caches, memory bandwidth and clocks are as in the
        measurement. Cores that several tasks use are not modelled; ``schedules.pinned-commands``
        measures them.

    Error:
        ``test_error`` states that of the law on the user's own rows.

    Source:
        Amdahl: Validity of the single processor approach, 1967. The question is that of Virtual
        Library Contexts (pecos/Virtual-Library-Context).

    Example:
        options: {scaling: scaling.csv, cores: 8}
        parameters: {solver_cores: [1, 2, 4], network_cores: [1, 2, 4]}
        objectives: {makespan: minimize, idle_share: minimize}
        files:
          scaling.csv: |
            task,cores,seconds
            solver,1,60
            solver,4,18
            network,1,40
            network,4,15

    Raises:
        PluginError: an option is invalid.
        SpecError: the table cannot be read, or a cell of it is invalid.
    """

    user_options: ClassVar[Sequence[str]] = ("scaling",)

    scaling: str
    cores: int
    law: str = "amdahl"

    def __post_init__(self) -> None:
        if self.law not in _LAWS:
            hint = nearest(str(self.law), _LAWS)
            raise PluginError(f"there is no law {self.law!r}", hint=hint, part=["law"])
        check_count("cores", self.cores, least=1)
        try:
            self._tasks, digest = read_scaling(str(self.scaling))
        except SpecError as error:
            raise SpecError(error.problem, hint=error.hint, part=["scaling"]) from error
        self._laws = {task: one.fit() for task, one in self._tasks.items()}
        self.version = f"{type(self).version}-{digest}"
        inputs = {f"{task}{SUFFIX}": NumberInput(1, self.cores, whole=True) for task in self._tasks}
        self.declare(Readings.of(inputs, self))

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        if self.law != "table":
            return
        for task, one in self._tasks.items():
            known = {int(count) for count in one.cores}
            for count in values.get(f"{task}{SUFFIX}", ()):
                if count not in known:
                    raise SpecError(
                        f"{task}{SUFFIX} may be {count}, and {self.scaling} has no such row",
                        hint=f"recorded: {', '.join(map(str, sorted(known)))}; or law: amdahl",
                    )

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics:
        """Return the metrics of n designs, with a fault for each that has too few cores."""
        shares = {task: inputs[f"{task}{SUFFIX}"] for task in self._tasks}
        times = {task: self._seconds(task, cores) for task, cores in shares.items()}
        makespan = np.max(list(times.values()), axis=0)
        alone = [self._seconds(task, np.array([float(self.cores)]))[0] for task in self._tasks]
        in_turn = np.full_like(makespan, sum(alone))
        busy = sum(shares[task] * seconds for task, seconds in times.items())
        used = sum(shares.values(), np.zeros_like(makespan))
        errors = np.concatenate(
            [one.error_of(self._laws[task]) for task, one in self._tasks.items()]
        )
        everywhere = range(len(makespan))
        undefined = {}
        if not len(errors):
            why = "the table has no row with split: test"
            undefined["test_error"] = dict.fromkeys(everywhere, why)
        if np.isnan(in_turn).any():
            why = f"the table has no row of each task on {self.cores} cores"
            undefined |= {name: dict.fromkeys(everywhere, why) for name in ("in_turn", "speedup")}
        return Metrics(
            columns={
                "makespan": makespan,
                "in_turn": in_turn,
                "speedup": in_turn / makespan,
                "idle_share": 1 - busy / (self.cores * makespan),
                "test_error": np.full_like(makespan, errors.mean() if len(errors) else np.nan),
            },
            failures=infeasible(
                used > self.cores,
                lambda row: f"{used[row]:g} cores are given, and there are {self.cores}",
            ),
            undefined=undefined,
        )

    def _seconds(self, task: str, cores: Floats) -> Floats:
        if self.law == "table":
            return self._tasks[task].look_up(cores)
        return self._laws[task].seconds(cores)
