"""Totals of a run of batches."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

PARTS = ("memory", "compute", "launch", "prompt", "moving")
"""What the time goes to: waiting for memory or for products, launching steps, reading prompts, and
bringing back what was put out."""


@dataclass(slots=True)
class Tally:
    """Sums so far; of reservations and tokens in use, tokens times steps."""

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
        """Return what was added after another moment of the same run."""
        names = [one.name for one in fields(self)]
        return Tally(**{name: getattr(self, name) - getattr(before, name) for name in names})
