"""Evaluator ``kernels.operator-profile``: where a PyTorch network spends its time, measured."""

from __future__ import annotations

import csv
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, SpecError
from dse_evaluators.alike import fix_columns
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.measured.kernel_timing import count_processors
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import number
from dse_evaluators.workloads.own.own_workload import LayeredWorkload, workload_of_option

CLASSES = (
    "matrix",
    "convolution",
    "normalization",
    "reduction",
    "random",
    "movement",
    "elementwise",
    "optimizer",
    "other",
)
"""Classes of operators, those of Fathom with normalization; ``other`` is mostly the framework."""

_NAMES = ("seq2seq", "memnet", "speech", "autoenc", "residual", "vgg", "alexnet", "deepq")
_RUN = "dse run"
_INFERENCE, _TRAINING = _PHASES = ("inference", "training")
_INPUTS: Mapping[str, Reading] = {
    "phase": one_of(_PHASES, _INFERENCE),
    "batch": NumberInput(1, 1 << 20, default=8, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    *(Metric(name=f"{name}_share") for name in CLASSES),
    Metric(name="operators"),
    Metric(name="heavy_operators"),
    Metric(name="calls"),
    Metric(name="dominant", words=CLASSES),
)


class OperatorProfile(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """Time of a PyTorch network on this machine's processor, by class of operator, profiled.

    Shares are of the time that operators take themselves, from PyTorch's profiler: of each
    operator, its least over ``repeats`` runs. ``latency`` is the shortest of as many runs without
    the profiler. A training step runs forward, backward from the mean square of all outputs, and
    one step of SGD. ``operators`` are different operators, ``heavy_operators`` the fewest that
    take 90 % of the time together, ``calls`` the calls of all in a run.

    Args:
        workload: a network of yours as ``{python: net.py:make, input: [3, 32, 32]}``, the shape of
            one example, or a module in Python with the same; without it, ``network`` is an input.
        repeats: runs that are measured, after two that are not.

    Inputs:
        network: a small network of the kind of a workload of Fathom.
        phase: ``inference`` or ``training``.
        batch: examples of a run.
        threads: threads of PyTorch; more than this machine has are infeasible.

    Limits:
        Inputs are drawn at random; a network of yours gets real numbers, or word ids of zero if it
        cannot take these. Loss functions of the task are left out. Which operators a layer is made
        of depends on the version of PyTorch; an operator that is in no class counts as ``other``.

    Error:
        Measured; other load changes the shares little, since it slows down all operators.

    Source:
        Adolf et al.: Fathom, IISWC 2016: the kinds of workloads and of operators.

    Example:
        options: {repeats: 1}
        parameters: {network: [autoenc, memnet], phase: [inference, training], batch: [4]}

    Raises:
        SpecError: the workload is no module or function, or an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = None
    network: str | None = None
    phase: str | None = None
    batch: int | None = None
    threads: int | None = None
    repeats: int = 5

    def __post_init__(self) -> None:
        number(1, 1000, whole=True)("repeats", self.repeats)
        self._own = None
        names: Sequence[str] = _NAMES
        if self.workload is not None:
            self._own = _own_workload(self.workload)
            names = (self._own.label,)
            self.version = f"{self.version}-{self._own.edition}"
            self.starts = self._own.starts
        table = {"network": one_of(names, names[0] if self._own else None), **_INPUTS}
        self.declare(Readings.of(table, self))

    def evaluate(self, batch: Batch) -> Metrics:
        """Profile n designs, one at a time."""
        every = fix_columns(batch, dict(self.readings.settled))
        return one_by_one(every, self.provides, self._profile)

    def _profile(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        chosen = {**self.readings.defaults, **self.readings.settled, **design}
        threads = int(chosen["threads"])
        if threads > count_processors():
            raise InfeasibleError(f"{threads} threads on {count_processors()} processors")
        with _seeded_threads(threads):
            step = self._step(str(chosen["network"]), str(chosen["phase"]), int(chosen["batch"]))
            try:
                for _ in range(2):
                    step()
                latency = min(_time_step(step) for _ in range(self.repeats))
                totals, calls = _profile_network(step, self.repeats)
            except Exception as error:
                if self._own is None:
                    raise
                problem = f"{type(error).__name__}: {error}".splitlines()[0]
                raise EvaluationError(f"{self._own.label} fails: {problem}") from error
        whole = sum(sum(one.values()) for one in totals.values())
        if not whole:
            raise EvaluationError("the profiler recorded no time", hint="a larger batch")
        shares = {name: sum(totals[name].values()) / whole for name in CLASSES}
        return {
            "latency": latency,
            "throughput": int(chosen["batch"]) / latency,
            **{f"{name}_share": share for name, share in shares.items()},
            "operators": float(sum(len(one) for one in totals.values())),
            "heavy_operators": _count_heavy([x for one in totals.values() for x in one.values()]),
            "calls": calls,
            "dominant": float(max(range(len(CLASSES)), key=lambda one: shares[CLASSES[one]])),
        }

    def _step(self, name: str, phase: str, batch: int) -> Callable[[], None]:
        """Return a function that runs the network once, or trains it for one step."""
        import torch

        module, inputs = self._make(name, batch)
        if phase == _INFERENCE:
            module.eval()

            def infer() -> None:
                with torch.inference_mode():
                    module(*inputs)

            return infer
        trained = [one for one in module.parameters() if one.requires_grad]
        if not trained:
            raise InfeasibleError(f"{name} has no parameters to train")
        optimizer = torch.optim.SGD(trained, lr=1e-6, momentum=0.9, fused=True)
        module.train()

        def train() -> None:
            optimizer.zero_grad()
            loss = sum((one.float() ** 2).mean() for one in _tensors(module(*inputs)))
            assert isinstance(loss, torch.Tensor)
            torch.autograd.backward(loss)
            optimizer.step()

        return train

    def _make(self, name: str, batch: int) -> tuple[Any, tuple[Any, ...]]:
        import torch

        if self._own is None:
            from dse_evaluators.kernels.measured.classic_networks import CLASSIC_NETWORKS

            found = CLASSIC_NETWORKS[name]
            return found.make(), (found.inputs(batch),)
        from dse_evaluators.workloads.own.own_readers import module_of

        module = module_of(self._own.origin, self._own.label)
        shapes = [(batch, *shape) for shape in self._own.shapes.values()]
        reals = tuple(torch.randn(shape) for shape in shapes)
        words = tuple(torch.zeros(shape, dtype=torch.int64) for shape in shapes)
        problem = ""
        for inputs in (reals, words):
            try:
                with torch.inference_mode():
                    module(*inputs)
            except Exception as error:  # noqa: BLE001 - code of the user may raise anything
                problem = problem or f"{type(error).__name__}: {error}".splitlines()[0]
            else:
                return module, inputs
        hint = "input is the shape of one example, without the batch"
        raise EvaluationError(f"{name} cannot run on {shapes}: {problem}", hint=hint)


def _own_workload(value: object) -> LayeredWorkload:
    try:
        found = workload_of_option(value)
    except SpecError as error:
        part = error.part or ("workload",)
        raise SpecError(error.problem, hint=error.hint, part=part) from error
    if isinstance(found.origin, str | Path | Mapping):
        hint = "{python: net.py:make, input: [3, 32, 32]}; names are values of network"
        raise SpecError(f"{found.label} is no module of PyTorch", hint=hint, part=["workload"])
    return found


@contextmanager
def _seeded_threads(threads: int) -> Iterator[None]:
    """Run PyTorch with a number of threads and one seed, and restore both."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield
    finally:
        torch.set_num_threads(before)


def _time_step(step: Callable[[], None]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def _profile_network(
    step: Callable[[], None], repeats: int
) -> tuple[Mapping[str, Mapping[str, float]], float]:
    """Return the time [s] of a run by class and name of operators, and the number of calls.

    Of each operator the run with the least time counts, since other load delays only some runs.
    """
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(repeats):
            with record_function(_RUN):
                step()
    events = sorted(profiler.events(), key=lambda one: one.time_range.start)
    begins = [one.time_range.start for one in events if one.name == _RUN]
    runs: list[defaultdict[str, float]] = [defaultdict(float) for _ in begins]
    for one in events:
        place = bisect_right(begins, one.time_range.start) - 1
        if place >= 0 and one.name != _RUN:
            runs[place][one.name] += float(one.self_cpu_time_total) * 1e-6
    totals: dict[str, dict[str, float]] = {name: {} for name in CLASSES}
    for name in {name for run in runs for name in run}:
        totals[class_of(name)][name] = min(run[name] for run in runs)
    calls = sum(one.name.startswith("aten::") for one in events)
    return totals, calls / repeats


def _count_heavy(times: Sequence[float]) -> float:
    """Return the fewest operators that take 90 % of the time together."""
    left = 0.9 * sum(times)
    count = 0
    for one in sorted(times, reverse=True):
        if left <= 0:
            break
        left -= one
        count += 1
    return float(count)


def _tensors(found: Any) -> list[Any]:
    """Return the tensors of real numbers among the outputs of a module."""
    import torch

    if isinstance(found, torch.Tensor):
        return [found] if found.is_floating_point() else []
    if isinstance(found, Mapping):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [tensor for one in found for tensor in _tensors(one)]
    return []


def class_of(operator: str) -> str:
    """Return the class of an operator by its name in the profiler, such as ``aten::mm``."""
    return _classes().get(operator.removeprefix("aten::"), "other")


@cache
def _classes() -> Mapping[str, str]:
    path = Path(__file__).with_name("operator_classes.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: row["class"] for row in rows for name in row["operators"].split()}
