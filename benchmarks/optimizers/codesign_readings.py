"""What every measured setting of a co-design problem reads, measured once and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from codesign_parts import Parts

from dse.core.design import Design
from dse.protocols import Task
from dse.schema.study.plan import Plan

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dse-engine-bench"
Reading = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A co-design study, and the folder that keeps what was measured for it.

    ``direct`` measures as the study's program does, without a process for each design.
    """

    plan: Plan
    cache: Path = CACHE
    direct: Callable[[Design], Reading] | None = None

    @cached_property
    def parts(self) -> Parts:
        """The space in two parts."""
        return Parts(self.plan.problem)

    @cached_property
    def readings(self) -> dict[str, Reading]:
        """The readings in the cache, by measured setting."""
        if not self._file.exists():
            return {}
        rows = (json.loads(line) for line in self._file.read_text().splitlines())
        return {self.parts.key(row["part"]): row["metrics"] for row in rows}

    def complete(self, *, tell: bool = False) -> None:
        """Measure every part that the cache lacks; what was measured is kept if this is stopped.

        Raises:
            RuntimeError: one of them cannot be measured.
        """
        self.cache.mkdir(parents=True, exist_ok=True)
        total = len(self.parts.measured)
        with self._file.open("a") as stream:
            for design in self._missing():
                reading = self.measured(design)
                self.readings[self.parts.key(design)] = reading
                part = {name: x for name, x in design.items() if name in self.parts.names}
                stream.write(json.dumps({"part": part, "metrics": reading}) + "\n")
                stream.flush()
                if tell and len(self.readings) % 100 == 0:
                    print(f"{self.plan.name}: {len(self.readings)} of {total}", flush=True)

    def measured(self, design: Design) -> Reading:
        """What the measured evaluator says of a design.

        Raises:
            RuntimeError: it cannot be measured.
        """
        if self.direct is not None:
            return {f"{self._evaluator}.{name}": x for name, x in self.direct(design).items()}
        (outcome,) = self.plan.pipeline([Task(number=0, design=design)])
        if outcome.failure is not None:
            raise RuntimeError(f"{dict(design)}: {outcome.failure.reason}")
        sources = self.plan.problem.sources
        return {name: x for name, x in outcome.metrics.items() if sources[name].kind == "measured"}

    def _missing(self) -> Iterator[Design]:
        """For each part without a reading a design that models find sound, where there is one."""
        for rows, batch in self.parts.groups():
            parts = [self.parts.measured.row(row) for row in rows.tolist()]
            wanted = [part for part in parts if self.parts.key(part) not in self.readings]
            failures = self.plan.problem.known(batch).failures if wanted else {}
            sound = next((row for row in range(len(batch)) if row not in failures), None)
            if sound is not None:
                whole = batch.design(sound)
                yield from (self.parts.design(part, whole) for part in wanted)

    @property
    def _evaluator(self) -> str:
        (name,) = {metric.partition(".")[0] for metric in self.plan.problem.measured}
        return name

    @property
    def _file(self) -> Path:
        """Named by who measures, so that the rest of a study may change."""
        measuring = {self._evaluator: self.plan.identity["evaluators"][self._evaluator]}
        return self.cache / f"{self.plan.name}-{digest(measuring)}.jsonl"


def digest(facts: Mapping[str, Any]) -> str:
    """Changes with the facts."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
