"""Modulo schedules by a constraint solver: for one initiation interval, and the least one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from dse_evaluators.kernels.pipelining.loop_graph import LoopGraph

Answer = Literal["feasible", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Resource limits of a loop schedule; 0 warps or 0 registers stand for no limit.

    Args:
        warps: number of warps, each of which issues one operation at a time.
        registers: registers per warp, or in total if ``warps`` is 0.
        spill: cycles to pass a result to another warp.
    """

    warps: int = 0
    registers: int = 0
    spill: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloSchedule:
    """Cycle at which each operation of an iteration starts, and its warp."""

    interval: int
    starts: tuple[int, ...]
    warps: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastInterval:
    """Result of a schedule search: a schedule, if found, and a proven bound of its interval.

    The schedule is optimal if its interval is the bound. Without a schedule, ``ended`` states
    whether all intervals were proven impossible, or whether the time limit was reached.
    """

    schedule: ModuloSchedule | None
    bound: int
    ended: Literal["optimal", "infeasible", "time-out"]


def find_least_interval(graph: LoopGraph, machine: Machine, limit_s: float) -> LeastInterval:
    """Return the least initiation interval of a loop, within a time limit.

    Intervals are tried in ascending order from the lower bound. If the solver times out for one,
    larger intervals are tried in the remaining time, so that a schedule is found even if it is not
    proven to be optimal.

    Args:
        graph: the loop.
        machine: the limits.
        limit_s: time limit of all solver calls.
    """
    first = bound = least_bound(graph, machine)
    until, proven = time.monotonic() + limit_s, True
    for interval in range(first, max(first, _last_interval(graph, machine)) + 1):
        left_s = until - time.monotonic()
        if left_s <= 0:
            return LeastInterval(schedule=None, bound=bound, ended="time-out")
        share_s = left_s / 2 if proven else left_s
        answer, schedule = solve_interval(graph, machine, interval, share_s)
        if schedule is not None:
            is_optimal = interval == bound
            return LeastInterval(
                schedule=schedule, bound=bound, ended="optimal" if is_optimal else "time-out"
            )
        proven = proven and answer == "infeasible"
        bound = interval + 1 if proven else bound
    return LeastInterval(schedule=None, bound=bound, ended="infeasible" if proven else "time-out")


def least_bound(graph: LoopGraph, machine: Machine) -> int:
    """Return the least interval that units, recurrences and the issue cycles of warps allow."""
    blocked = sum(one.blocks for one in graph.operations)
    of_warps = -(-blocked // machine.warps) if machine.warps else 1
    return max(graph.resource_bound, graph.recurrence_bound, of_warps)


def _last_interval(graph: LoopGraph, machine: Machine) -> int:
    """Return an interval in which any order of the operations fits: larger ones allow no more."""
    longest = [max(one.latency, one.occupancy, one.blocks, 1) for one in graph.operations]
    for one in graph.dependences:
        longest[one.source] = max(longest[one.source], graph.delay(one))
    return sum(each + machine.spill for each in longest)


def solve_interval(
    graph: LoopGraph, machine: Machine, interval: int, limit_s: float
) -> tuple[Answer, ModuloSchedule | None]:
    """Return whether the loop has a schedule with this initiation interval, and the schedule.

    A functional unit serves one operation in each cycle of the interval. A warp issues no other
    operation while one blocks it, and a result reaches another warp ``spill`` cycles later. A
    result that is live for longer than an interval occupies several copies of its registers.

    Source:
        Soi et al.: Optimal Software Pipelining and Warp Specialization for Tensor Core GPUs, 2025
        (Twill): the constraints; Rau, 1994: modulo reservation.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    built = _Model(model=model, graph=graph, machine=machine, interval=interval)
    built.add_times()
    built.add_units()
    if machine.warps:
        built.add_warps()
    built.add_dependences()
    if machine.registers:
        built.add_registers()
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    status = solver.status_name(solver.solve(model))
    if status == "INFEASIBLE":
        return "infeasible", None
    if status not in ("OPTIMAL", "FEASIBLE"):
        return "unknown", None
    return "feasible", built.read(solver)


class _Model:
    """Constraints of a schedule; the solver's classes have no types that could be named here."""

    def __init__(self, *, model: Any, graph: LoopGraph, machine: Machine, interval: int) -> None:
        self._model, self._graph, self._machine = model, graph, machine
        self._interval = interval
        # A gap between starts of more than an interval and a latency can be closed by an interval.
        wait = max((graph.delay(one) for one in graph.dependences), default=0) + machine.spill
        self._stages = len(graph.operations) * (1 + -(-wait // interval)) + 1
        self._offsets: list[Any] = []
        self._times: list[Any] = []
        self._warps: list[list[Any]] = []

    def add_times(self) -> None:
        """Add the cycle of each operation: an offset in the interval, and a stage."""
        for one in self._graph.operations:
            offset = self._model.new_int_var(0, self._interval - 1, f"offset {one.name}")
            stage = self._model.new_int_var(0, self._stages - 1, f"stage {one.name}")
            self._offsets.append(offset)
            self._times.append(offset + self._interval * stage)

    def add_units(self) -> None:
        """Let operations of one unit not overlap, in this interval or into the next one."""
        units: dict[str, list[Any]] = {}
        for place, one in enumerate(self._graph.operations):
            if one.occupancy:
                units.setdefault(one.unit, []).extend(
                    self._model.new_fixed_size_interval_var(
                        self._offsets[place] + turn * self._interval, one.occupancy, ""
                    )
                    for turn in (0, 1)
                )
        for intervals in units.values():
            self._model.add_no_overlap(intervals)

    def add_warps(self) -> None:
        """Assign each operation to a warp, which it blocks."""
        count = self._machine.warps
        lanes: list[list[Any]] = [[] for _ in range(count)]
        for place, one in enumerate(self._graph.operations):
            chosen = [self._model.new_bool_var("") for _ in range(count)]
            self._model.add_exactly_one(chosen)
            self._warps.append(chosen)
            for lane, literal in zip(lanes, chosen, strict=True):
                for turn in (0, 1) if one.blocks else ():
                    start = self._offsets[place] + turn * self._interval
                    lane.append(
                        self._model.new_optional_fixed_size_interval_var(
                            start, one.blocks, literal, ""
                        )
                    )
        for lane in lanes:
            self._model.add_no_overlap(lane)
        self._model.add(self._warps[0][0] == 1)  # the numbers of warps have no meaning

    def add_dependences(self) -> None:
        """Let each operation begin only when the results that it uses have arrived."""
        for one in self._graph.dependences:
            ready = self._times[one.source] + self._graph.delay(one)
            if self._machine.warps and self._machine.spill and one.source != one.use:
                ready += self._machine.spill * self._crosses(one.source, one.use)
            self._model.add(ready <= self._times[one.use] + self._interval * one.distance)

    def _crosses(self, source: int, use: int) -> Any:
        """Return a variable that is 1 if two operations are in different warps."""
        crosses = self._model.new_bool_var("")
        for mine, theirs in zip(self._warps[source], self._warps[use], strict=True):
            self._model.add_bool_or([mine.negated(), theirs, crosses])
        return crosses

    def add_registers(self) -> None:
        """Limit the registers of each warp, with a copy for each interval that a result lives."""
        groups = max(self._machine.warps, 1)
        used: list[list[Any]] = [[] for _ in range(groups)]
        for place, one in enumerate(self._graph.operations):
            uses = [d for d in self._graph.dependences if d.source == place]
            if not one.registers or not uses:
                continue
            most = self._stages + max(d.distance for d in uses)
            copies = self._model.new_int_var(1, most, f"copies {one.name}")
            for d in uses:
                life = self._times[d.use] + self._interval * d.distance - self._times[place]
                self._model.add(copies * self._interval >= life)
            for group in range(groups):
                share = self._model.new_int_var(0, most, "")
                literal = self._warps[place][group] if self._machine.warps else None
                rule = self._model.add(share >= copies)
                if literal is not None:
                    rule.only_enforce_if(literal)
                used[group].append(one.registers * share)
        for each in used:
            self._model.add(sum(each) <= self._machine.registers)

    def read(self, solver: Any) -> ModuloSchedule:
        """Return the solver's schedule."""
        return ModuloSchedule(
            interval=self._interval,
            starts=tuple(int(solver.value(one)) for one in self._times),
            warps=tuple(
                next(place for place, literal in enumerate(chosen) if solver.value(literal))
                for chosen in self._warps
            ),
        )
