"""Totals of a batching simulation."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

PARTS = ("memory", "compute", "launch", "prompt", "moving")
"""Parts of the time: memory- and GEMM-bound decoding, launches, prefill, and preemptions."""


@dataclass(slots=True)
class Tally:
    """Running totals of a simulation; ``reserved`` and ``used`` are in tokens times steps."""

    memory_s: float = 0.0
    compute_s: float = 0.0
    launch_s: float = 0.0
    prompt_s: float = 0.0
    moving_s: float = 0.0
    steps: int = 0
    written: int = 0
    reserved: int = 0
    used: int = 0
    finished: int = 0
    preempted: int = 0

    @property
    def total_s(self) -> float:
        return self.memory_s + self.compute_s + self.launch_s + self.prompt_s + self.moving_s

    def copy(self) -> Tally:
        return replace(self)

    def since(self, before: Tally) -> Tally:
        """Return the difference to an earlier copy of the same run's totals."""
        names = [one.name for one in fields(self)]
        return Tally(**{name: getattr(self, name) - getattr(before, name) for name in names})
