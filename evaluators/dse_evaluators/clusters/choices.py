"""Options of an evaluator that are inputs: a list of models or systems to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.alike import gather_parts, groups
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Reading, Readings, one_of

MOST_CHOICES = 256
"""Largest number of combinations of chosen options."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Evaluators of all combinations of options that were given as lists, by their names.

    ``names`` are the values of each such option as the space names them: a built-in name, or the
    name of the user's model or system.
    """

    names: Mapping[str, Sequence[str]]
    parts: Mapping[tuple[str, ...], DeclaredEvaluator]

    @property
    def first(self) -> DeclaredEvaluator:
        """Evaluator of the first combination, which has the other inputs and the options."""
        return next(iter(self.parts.values()))

    @property
    def readings(self) -> Readings:
        """Inputs of the first combination, and those that choose a combination."""
        table: dict[str, Reading] = dict(self.first.readings.table)
        table |= {option: one_of(names) for option, names in self.names.items()}
        return Readings(table, self.first.readings.settled)

    @property
    def metrics(self) -> dict[str, Metric]:
        """Metrics that every combination provides."""
        shared = set.intersection(*(set(part.provides) for part in self.parts.values()))
        return {name: metric for name, metric in self.first.provides.items() if name in shared}

    @property
    def version(self) -> str:
        """Versions of all combinations, each once."""
        return "+".join(dict.fromkeys(part.version for part in self.parts.values()))

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check the values of the other inputs for every combination.

        Raises:
            SpecError: a value is invalid for one of them.
        """
        others = {name: some for name, some in values.items() if name not in self.names}
        for part in self.parts.values():
            part.check_values(others)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, each from the evaluator of its combination."""
        parts = [
            (rows, self.parts[key].evaluate(batch.take(rows)))
            for key, rows in groups(batch, dict.fromkeys(self.names, ""))
        ]
        return gather_parts(len(batch), self.metrics, parts)


def choices_of(
    evaluator: DeclaredEvaluator, labels: Mapping[str, Callable[[Any], str]]
) -> Choices | None:
    """Return the evaluators of all combinations of options given as lists; ``None`` if none is.

    Args:
        evaluator: an evaluator whose other options are set.
        labels: by option, the function that returns the name of one of its values.

    Raises:
        SpecError: a list is empty, two values have one name, or there are too many combinations.
    """
    lists = {name: getattr(evaluator, name) for name in labels}
    lists = {name: one for name, one in lists.items() if isinstance(one, list | tuple)}
    if not lists:
        return None
    names = {option: [labels[option](one) for one in some] for option, some in lists.items()}
    count = 1
    for option, some in names.items():
        count *= len(some)
        if not some or len(set(some)) < len(some):
            problem = f"{option} is an empty list"
            if some:
                twice = next(one for one in some if some.count(one) > 1)
                problem = f"{option} has {twice!r} twice"
            raise SpecError(problem, hint="values with names of their own", part=[option])
    if count > MOST_CHOICES:
        problem = f"{' and '.join(lists)} have {count} combinations"
        raise SpecError(problem, hint=f"at most {MOST_CHOICES}", part=list(lists)[:1])
    keys = product(*names.values())
    values = product(*lists.values())
    parts = {
        key: replace(evaluator, **dict(zip(lists, some, strict=True)))  # type: ignore[type-var]
        for key, some in zip(keys, values, strict=True)
    }
    return Choices(names, parts)
