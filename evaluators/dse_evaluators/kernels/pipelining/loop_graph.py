"""Loop as a graph of operations, and lower bounds of its initiation interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOperation:
    """Operation in the body of a loop, with the functional unit that it occupies.

    Args:
        name: name of the operation.
        unit: the functional unit that it occupies.
        latency: cycles until its result can be used.
        occupancy: cycles for which it occupies its unit.
        blocks: cycles for which its warp can issue no other operation.
        registers: registers that hold its result.
    """

    name: str
    unit: str
    latency: int
    occupancy: int
    blocks: int
    registers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """Use of a result: ``use`` reads what ``source`` computed ``distance`` iterations before.

    Args:
        source: index of the operation that computes the result.
        use: index of the operation that reads it.
        distance: iterations between them.
        latency: cycles until this use can begin; ``None``: the latency of the source.
    """

    source: int
    use: int
    distance: int
    latency: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopGraph:
    """Data-dependence graph of a loop: operations of the body, and dependences between them."""

    operations: tuple[LoopOperation, ...]
    dependences: tuple[Dependence, ...]

    def delay(self, one: Dependence) -> int:
        """Return the cycles from the start of a source until a use of its result can begin."""
        return self.operations[one.source].latency if one.latency is None else one.latency

    @property
    def sequential(self) -> int:
        """Cycles of one iteration if its operations run one after another."""
        return sum(max(one.latency, one.occupancy) for one in self.operations)

    @property
    def resource_bound(self) -> int:
        """Least initiation interval for which each unit has enough cycles."""
        busy: dict[str, int] = {}
        for one in self.operations:
            busy[one.unit] = busy.get(one.unit, 0) + one.occupancy
        return max(*busy.values(), 1)

    @property
    def recurrence_bound(self) -> int:
        """Least initiation interval that the cycles of dependences allow.

        Source:
            Rau: Iterative Modulo Scheduling, 1994, section 2.2 (MinDist).
        """
        low, high = 1, max(sum(self.delay(one) for one in self.dependences), 1)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.allows(middle) else (middle + 1, high)
        return low

    def allows(self, interval: int) -> bool:
        """Return whether no cycle of dependences needs more than the interval."""
        longest = np.full((len(self.operations),) * 2, -np.inf)
        for one in self.dependences:
            needs = self.delay(one) - interval * one.distance
            longest[one.source, one.use] = max(longest[one.source, one.use], needs)
        for over in range(len(self.operations)):
            through = longest[:, over, None] + longest[None, over, :]
            np.maximum(longest, through, out=longest)
        return bool((np.diag(longest) <= 0).all())
