"""Stepwise simulation of one data-parallel copy of a model until it has served its requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from dse_evaluators.clusters.apex.lane import Begun, Lane
from dse_evaluators.clusters.apex.stage import Fixed, PipelineStage


class Line(NamedTuple):
    """Step times of one micro-batch on one attention replica (a lane), linear in the step.

    While the lane's sequences stay the same, step j takes ``start_s + j * slope_s`` in one pipeline
    stage.
    """

    start_s: float
    slope_s: float
    fixed: Fixed
    host_s: float

    def sum_s(self, before: int, steps: int) -> float:
        """Return the total seconds of ``steps`` decode steps after the first ``before`` ones."""
        return steps * (self.start_s + self.slope_s * (before + 0.5 * (steps + 1)))


class Costs:
    """Coefficients of a pipeline stage's step time, computed once for all data-parallel copies."""

    __slots__ = ("cached_s", "fixed", "sequence_s", "squared_s", "stages")

    def __init__(self, stage: PipelineStage) -> None:
        self.stages = stage.plan.pp
        self.cached_s = stage.cached_s
        self.squared_s = stage.squared_s
        self.sequence_s = stage.efficiency.sequence_s
        self.fixed = cache(stage.fixed)

    def line(self, lane: Lane, begun: Begun, fixed: Fixed) -> Line:
        """Return the times of the next steps of a lane in one pipeline stage, linear in the step.

        A lane is one micro-batch on one attention replica. ``fixed`` is the time that does not
        depend on the KV cache; it is equal for all lanes of a micro-batch.
        """
        host_s = self.sequence_s * lane.texts
        slope_s = self.cached_s * begun.writing
        read_s = self.cached_s * (lane.cached - begun.prompts) - slope_s
        start_s = fixed.total_s + host_s + read_s + self.squared_s * begun.squares
        return Line(start_s, slope_s, fixed, host_s)


class Piece(NamedTuple):
    """Sequence of ``steps`` steps in which the same lane (one micro-batch) is the slowest.

    ``line`` holds the step times of that lane; ``before`` is the number of steps between the last
    event and this sequence.
    """

    line: Line
    before: int
    steps: int


@dataclass(slots=True)
class TimeBreakdown:
    """Simulated seconds of one data-parallel copy, split by cause (GEMMs, attention, ...)."""

    products_s: float = 0.0
    attention_s: float = 0.0
    collectives_s: float = 0.0
    host_s: float = 0.0
    idle_s: float = 0.0

    @property
    def busy_s(self) -> float:
        return self.products_s + self.attention_s + self.collectives_s + self.host_s

    def add(self, piece: Piece, rounds: int) -> float:
        """Add a run of steps to the time breakdown, ``rounds`` times; return its total seconds."""
        line, steps = piece.line, piece.steps * rounds
        whole_s = rounds * line.sum_s(piece.before, piece.steps)
        fixed = line.fixed
        self.products_s += steps * fixed.products_s
        self.collectives_s += steps * fixed.collectives_s
        self.host_s += steps * (fixed.host_s + line.host_s)
        self.attention_s += whole_s - steps * (fixed.total_s + line.host_s)
        return whole_s


def play(costs: Costs, batches: Sequence[Sequence[Lane]]) -> tuple[float, TimeBreakdown]:
    """Simulate one data-parallel copy; return the time until all its requests are completed.

    The time is also returned split by cause. ``batches`` lists the lanes (one per attention
    replica) of each micro-batch. The micro-batches follow one another through the pipeline stages,
    so a step takes the time of the slowest micro-batch, once per stage. Between two events (a
    request arrives, a sequence ends or is preempted) the running sequences stay the same, and the
    steps are summed in closed form.

    Source:
        Lin et al.: APEX, 2024, section 3 (iteration-level batching; the slowest of the
        micro-batches sets the pace).
    """
    lanes = [lane for batch in batches for lane in batch]
    clock_s, spent = 0.0, TimeBreakdown()
    while True:
        lines, joined = _begin(costs, batches, clock_s)
        if not lines:
            next_s = min([lane.next_s for lane in lanes])
            if math.isinf(next_s):
                return clock_s, spent
            spent.idle_s += next_s - clock_s
            clock_s = next_s
            continue
        most = 1 if joined else min([lane.steps() for lane in lanes if lane.texts])
        coming_s = min([lane.next_s for lane in lanes if lane.next_s > clock_s], default=math.inf)
        steps = 0
        for piece in _until(_pieces(lines, most), (coming_s - clock_s) / costs.stages):
            clock_s += spent.add(piece, costs.stages)
            steps += piece.steps
        for lane in lanes:
            if lane.texts:
                lane.advance(steps, clock_s)


def _begin(
    costs: Costs, batches: Sequence[Sequence[Lane]], clock_s: float
) -> tuple[list[Line], bool]:
    """Begin a step in every lane; return the busy lanes' step times, and whether prompts join."""
    lines = list[Line]()
    joined = False
    for batch in batches:
        most = total = 0
        busy = list[tuple[Lane, Begun]]()
        for lane in batch:
            begun = lane.begin(clock_s)
            tokens = begun.writing + begun.prompts
            if tokens:
                busy.append((lane, begun))
                most, total = max(most, tokens), total + tokens
                joined = joined or begun.prompts > 0
        if busy:
            fixed = costs.fixed(most, total)
            lines += [costs.line(lane, begun, fixed) for lane, begun in busy]
    return lines, joined


def _pieces(lines: Sequence[Line], steps: int) -> list[Piece]:
    """Divide the next ``steps`` steps by which lane is the slowest; return these runs of steps."""
    if len(lines) == 1:
        return [Piece(lines[0], 0, steps)]
    pieces, done = list[Piece](), 0
    while done < steps:
        ends_s = [line.start_s + line.slope_s * (done + 1) for line in lines]
        best = lines[ends_s.index(max(ends_s))]
        steeper = [_crossing(best, line) for line in lines if line.slope_s > best.slope_s]
        end = min([steps, *(max(at, done + 1) for at in steeper)])
        pieces.append(Piece(best, done, end - done))
        done = end
    return pieces


def _crossing(longest: Line, steeper: Line) -> int:
    """Return the last step before the lane whose time grows faster becomes the slower one."""
    ahead_s = longest.start_s - steeper.start_s
    return math.floor(ahead_s / (steeper.slope_s - longest.slope_s))


def _until(pieces: list[Piece], wait_s: float) -> list[Piece]:
    """Return the runs of steps that begin within ``wait_s``, the last one shortened if needed.

    At least one step is returned.
    """
    kept = list[Piece]()
    for line, before, steps in pieces:
        if kept and wait_s <= 0.0:
            break
        whole_s = line.sum_s(before, steps)
        if whole_s > wait_s:
            kept.append(Piece(line, before, _count_steps(line, before, steps, wait_s)))
            break
        kept.append(Piece(line, before, steps))
        wait_s -= whole_s
    return kept


def _count_steps(line: Line, before: int, steps: int, wait_s: float) -> int:
    """Return the smallest number of steps, after ``before`` others, that take ``wait_s`` or more.

    The number is the root of a quadratic equation, clipped to the range 1 to ``steps``.
    """
    first_s = line.start_s + line.slope_s * (before + 0.5)
    root = first_s * first_s + 2.0 * line.slope_s * wait_s
    found = math.ceil(2.0 * wait_s / (first_s + math.sqrt(root)))
    return min(max(found, 1), steps)
