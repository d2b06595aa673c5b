"""A space in Python: which designs exist, told by values and rules, or by a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dse.api.shorthand import domain
from dse.core import space as core
from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.values import Value
from dse.schema.designs import design_of
from dse.schema.files import Files, resolved
from dse.schema.plain import source_of
from dse.schema.space import space_from, space_of
from dse.schema.spaces.yaml_text import yaml_text

Values = Mapping[str, Any]


class Space:
    """Which designs exist; immutable, solved when it is first asked about.

    Args:
        parameters: each by name, as :func:`dse.api.shorthand.domain` reads it:
            ``{"tile": [16, 32, 64], "stages": (1, 6), "format": ["int8", "int4"]}``.
        constraints: rules between them: ``"tile * stages <= 256"``.
        name: what it is called.
        more: what else a space file may say: ``include``, ``tables``, ``data``, ``description``.

    Raises:
        SpecErrors: with every mistake, when it is first asked about; places are keys.
    """

    def __init__(
        self,
        parameters: Values,
        constraints: str | Sequence[str] = (),
        *,
        name: str = "space",
        **more: Any,
    ) -> None:
        told = {name: domain(name, one) for name, one in parameters.items()}
        listed = [constraints] if isinstance(constraints, str) else list(constraints)
        document = {"space": name, **more, **({"parameters": told} if told else {})}
        document |= {"constraints": listed} if listed else {}
        self.document: Values = source_of(document).value
        self.file: Path | None = None

    @classmethod
    def read(cls, file: str | Path) -> Space:
        """The space of a file; ``library:spaces/...`` is a shipped one.

        Raises:
            SpecErrors: with every mistake in it, each with its line.
        """
        space = cls.__new__(cls)
        path = resolved(str(file), Path.cwd() / "space.yaml")
        space.file = path
        space.document = Files().source(path).value
        space.solved.count()
        return space

    @classmethod
    def of(cls, document: Values) -> Space:
        """The space of a mapping of the shape of a space file."""
        rest = {key: one for key, one in document.items() if key not in ("space", "parameters")}
        return cls(document.get("parameters", {}), name=document.get("space", "space"), **rest)

    @cached_property
    def solved(self) -> core.Space:
        """The engine's space: parameters as domains, rules as expressions."""
        if self.file is not None:
            return space_of(self.file, Files())
        return space_from(self.document)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters; of a list, those of its members."""
        return tuple(one.name for one in self.solved.parameters)

    def count(self) -> int | None:
        """How many legal designs there are; ``None`` where they cannot be counted."""
        return self.solved.count()

    def check(self, design: Mapping[str, Value]) -> Design:
        """The design, if it is legal; quantities may be texts with a unit.

        Raises:
            DesignError: with the first rule that it breaks.
        """
        return design_of(design, self.solved)

    def __contains__(self, design: Mapping[str, Value]) -> bool:
        return design in self.solved

    def sample(self, count: int = 1, *, seed: int = 0) -> list[Design]:
        """Designs drawn uniformly from the legal set, each on its own."""
        return _designs(self.solved.sample(count, np.random.default_rng(seed)))

    def enumerate(self) -> Iterator[Design]:
        """All legal designs, in a fixed order.

        Raises:
            DesignError: they cannot be counted.
        """
        for batch in self.solved.enumerate():
            yield from _designs(batch)

    def neighbours(self, design: Mapping[str, Value]) -> list[Design]:
        """The legal designs one small move away.

        Raises:
            DesignError: the design is not legal.
        """
        return _designs(self.solved.neighbours(self.check(design)))

    def to_yaml(self) -> str:
        """The text of a space file that says the same."""
        if self.file is not None:
            return self.file.read_text(encoding="utf-8")
        return yaml_text(self.document)

    def __repr__(self) -> str:
        names = self.parameters
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        count = self.count()
        total = "too many to count" if count is None else f"{count:,} legal designs"
        return f"<Space of {shown}: {total}>"


def _designs(batch: Batch) -> list[Design]:
    return [batch.design(row) for row in range(len(batch))]
