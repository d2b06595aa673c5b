"""A copy of a served model at work: step after step, until all requests are answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from dse_evaluators.clusters.apex.lane import Begun, Lane
from dse_evaluators.clusters.apex.stage import Fixed, PipelineStage


class Line(NamedTuple):
    """The seconds of a lane's stage in the j-th of equal steps: ``start_s + j * slope_s``."""

    start_s: float
    slope_s: float
    fixed: Fixed
    host_s: float

    def sum_s(self, before: int, steps: int) -> float:
        """Of so many steps that follow ``before`` others."""
        return steps * (self.start_s + self.slope_s * (before + 0.5 * (steps + 1)))


class Costs:
    """The seconds of a stage, worked out once for all copies."""

    __slots__ = ("cached_s", "fixed", "sequence_s", "squared_s", "stages")

    def __init__(self, stage: PipelineStage) -> None:
        self.stages = stage.plan.pp
        self.cached_s = stage.cached_s
        self.squared_s = stage.squared_s
        self.sequence_s = stage.efficiency.sequence_s
        self.fixed = cache(stage.fixed)

    def line(self, lane: Lane, told: Begun, fixed: Fixed) -> Line:
        """Return the time of a lane's next steps, with the part that its micro-batch shares."""
        host_s = self.sequence_s * lane.texts
        slope_s = self.cached_s * told.writing
        read_s = self.cached_s * (lane.cached - told.prompts) - slope_s
        start_s = fixed.total_s + host_s + read_s + self.squared_s * told.squares
        return Line(start_s, slope_s, fixed, host_s)


class Piece(NamedTuple):
    """Steps in which one line is the longest."""

    line: Line
    before: int
    steps: int


@dataclass(slots=True)
class TimeBreakdown:
    """Seconds of a copy, in parts that sum to its clock."""

    products_s: float = 0.0
    attention_s: float = 0.0
    collectives_s: float = 0.0
    host_s: float = 0.0
    idle_s: float = 0.0

    @property
    def busy_s(self) -> float:
        return self.products_s + self.attention_s + self.collectives_s + self.host_s

    def add(self, piece: Piece, rounds: int) -> float:
        """The steps of a piece; what they take."""
        line, steps = piece.line, piece.steps * rounds
        whole_s = rounds * line.sum_s(piece.before, piece.steps)
        fixed = line.fixed
        self.products_s += steps * fixed.products_s
        self.collectives_s += steps * fixed.collectives_s
        self.host_s += steps * (fixed.host_s + line.host_s)
        self.attention_s += whole_s - steps * (fixed.total_s + line.host_s)
        return whole_s


def play(costs: Costs, batches: Sequence[Sequence[Lane]]) -> tuple[float, TimeBreakdown]:
    """The time until all requests of a copy are answered, and its parts.

    Its micro-batches follow one another through the stages, so that every step takes as often the
    longest of them as there are stages. Between two events (a request comes, a text ends or is
    stopped) nobody joins, and the steps are summed in closed form.

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
    """The line of every lane at work, and whether prompts join in any."""
    lines = list[Line]()
    joined = False
    for batch in batches:
        most = total = 0
        busy = list[tuple[Lane, Begun]]()
        for lane in batch:
            told = lane.begin(clock_s)
            tokens = told.writing + told.prompts
            if tokens:
                busy.append((lane, told))
                most, total = max(most, tokens), total + tokens
                joined = joined or told.prompts > 0
        if busy:
            fixed = costs.fixed(most, total)
            lines += [costs.line(lane, told, fixed) for lane, told in busy]
    return lines, joined


def _pieces(lines: Sequence[Line], steps: int) -> list[Piece]:
    """The longest line of every step."""
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
    """The last step in which a steeper line is not yet the longer one."""
    ahead_s = longest.start_s - steeper.start_s
    return math.floor(ahead_s / (steeper.slope_s - longest.slope_s))


def _until(pieces: list[Piece], wait_s: float) -> list[Piece]:
    """As many steps as begin before the wait is over, and one at least."""
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
    """Return the fewest steps of a line that take ``wait_s``: the root of a quadratic."""
    first_s = line.start_s + line.slope_s * (before + 0.5)
    root = first_s * first_s + 2.0 * line.slope_s * wait_s
    found = math.ceil(2.0 * wait_s / (first_s + math.sqrt(root)))
    return min(max(found, 1), steps)
