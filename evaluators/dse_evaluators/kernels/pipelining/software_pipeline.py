"""Evaluator `schedules.software-pipeline`: the least initiation interval of a loop."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.pipelining.loop_files import load_loop
from dse_evaluators.kernels.pipelining.modulo_scheduling import (
    Machine,
    find_least_interval,
)
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import NumberInput, Reading

_INPUTS: Mapping[str, Reading] = {
    "warps": NumberInput(0, 64, default=0, whole=True),
    "registers": NumberInput(0, 1e9, default=0, whole=True),
    "spill": NumberInput(0, 10_000, default=0, whole=True),
}
_METRICS = (
    Metric(name="interval", unit="cycle", goal="minimize"),
    Metric(name="bound", unit="cycle"),
    Metric(name="proven", goal="maximize"),
    Metric(name="speedup", goal="maximize"),
    Metric(name="resource_bound", unit="cycle"),
    Metric(name="recurrence_bound", unit="cycle"),
)
_INSTALL = "pip install 'dse-engine[solver]'"


class SoftwarePipeline(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="2", kind="measured"
):
    """Least initiation interval of a loop on functional units, warps and registers, by CP-SAT.

    The solver proves that a schedule is optimal (``proven`` is 1), or that none exists, so that the
    design is infeasible. At the time limit ``bound`` is the proven lower bound of ``interval``, and
    ``proven`` is 0; without any schedule by then the trial fails, with the bound in its reason.
    ``speedup`` is the cycles of an iteration without overlap, divided by the interval.
    ``resource_bound`` and ``recurrence_bound`` are the least intervals that the busiest unit and
    the cycles of dependences allow.

    Args:
        loop: ``attention``, ``flash-attention``, ``flash-attention-blackwell``,
            ``flash-attention-blackwell-waiting``, or a file of yours. A CSV file has a row for each
            operation: ``operation``, ``unit``, ``latency``, ``occupancy`` of the unit (1),
            ``blocks`` of the warp (the latency), ``registers`` (0), and ``after``, the operations
            whose results it uses: ``load sum/1`` uses ``sum`` of the iteration before, and
            ``sum/1:4`` can begin 4 cycles after it, whatever its latency. A JSON file is the
            dependence graph that Triton's modulo scheduler dumps (``TRITON_MODULO_DUMP_DDG``).
        limit: time limit of the solver for a design, in seconds.

    Inputs:
        warps: number of warps, each of which issues one operation at a time; 0: not modelled.
        registers: registers of a warp, or of all operations without warps; 0: no limit. spill:
        cycles to pass a result to another warp.

    Limits:
        Loops of some tens of operations. One unit of each name. ``flash-attention`` is an example
        with made-up latencies. The latencies of ``flash-attention-blackwell`` are those of the
        compiler's cost model; with ``-waiting``, operations of the units CUDA and SFU block their
        warp until their result is there.

    Error:
        None for a loop as it is given: schedules are checked by their constraints. The bounds of
        the inner loops of nine kernels equal those that Triton's modulo scheduler computed. How a
        GPU runs the schedules is not measured.

    Source:
        Soi et al.: Optimal Software Pipelining and Warp Specialization for Tensor Core GPUs, 2025
        (Twill); Rau: Iterative Modulo Scheduling, 1994.

    Example:
        options: {loop: attention}
        parameters: {warps: [0, 1, 2]}

    Raises:
        PluginError: the limit is not above zero.
        SpecError: there is no such loop, or its file is not valid.
    """

    user_options: ClassVar[Sequence[str]] = ("loop",)

    loop: str
    limit: float = 30.0
    warps: int | None = None
    registers: int | None = None
    spill: int | None = None

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise PluginError(f"limit is {self.limit}", hint="seconds, above 0", part=["limit"])
        self._graph = load_loop(self.loop)
        super().__post_init__()
        digest = hashlib.sha256(repr(self._graph).encode()).hexdigest()[:8]
        self.version = f"2-{digest}"

    @property
    def missing(self) -> str:
        """Reason why no schedule can be computed on this machine; empty if one can."""
        found = find_spec("ortools") is not None
        return "" if found else f"ortools is not installed: {_INSTALL}"

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is solved separately."""
        return one_by_one(batch, self.provides, self._solve)

    def _solve(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        (row,) = self._readings.rows(Batch.of([design]))
        machine = Machine(**{name: int(value) for name, value in row.items()})
        found = find_least_interval(self._graph, machine, float(self.limit))
        made = found.schedule
        if made is None and found.ended == "infeasible":
            raise InfeasibleError(
                f"the solver refutes each interval of less than {found.bound} cycles, and longer "
                "ones need as many registers"
            )
        if made is None:
            raise EvaluationError(
                f"no schedule in {self.limit:g} s; its interval is at least {found.bound} cycles"
            )
        return {
            "interval": float(made.interval),
            "bound": float(found.bound),
            "proven": float(found.ended == "optimal"),
            "speedup": self._graph.sequential / made.interval,
            "resource_bound": float(self._graph.resource_bound),
            "recurrence_bound": float(self._graph.recurrence_bound),
        }
