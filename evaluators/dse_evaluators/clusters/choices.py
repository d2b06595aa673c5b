"""Options of an evaluator that are inputs: a list of models or systems to choose from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError
from dse.protocols import ModelError, StatesModelErrors, absent_metrics
from dse_evaluators.accelerators.devices.error_table import gather_errors
from dse_evaluators.alike import gather_parts, groups
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import ChoiceInput, Reading, Readings, one_of

Labels = Mapping[str, Callable[[Any], str]]
"""By option, the function that returns the name by which a space refers to one of its values."""

MOST_CHOICES = 256
"""Largest number of combinations of chosen options."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Evaluators of all combinations of options for which a study lists several values.

    ``names`` are the values of each listed option as the space names them: a built-in name, or the
    name of the user's model or system.
    """

    names: Mapping[str, Sequence[str]]
    parts: Mapping[tuple[str, ...], DeclaredEvaluator]

    @property
    def first(self) -> DeclaredEvaluator:
        """Evaluator of the first combination, from which the shared inputs and options are read."""
        return next(iter(self.parts.values()))

    @property
    def readings(self) -> Readings:
        """Inputs of all combinations, with the inputs that choose a combination.

        A categorical input may have every value that one of the combinations accepts.
        """
        table: dict[str, Reading] = dict(self.first.readings.table)
        for part in self.parts.values():
            for name, one in part.readings.table.items():
                own = table[name]
                if isinstance(one, ChoiceInput) and isinstance(own, ChoiceInput):
                    every = dict.fromkeys(map(str, (*own.numbers, *one.numbers)))
                    table[name] = one_of(every, own.default)
        table |= {
            option: one_of(names, names[0] if len(names) == 1 else None)
            for option, names in self.names.items()
        }
        fixed = [part.readings.settled for part in self.parts.values()]
        everywhere = {name: one for name, one in fixed[0].items() if all(name in x for x in fixed)}
        return Readings(table, everywhere)

    @property
    def _usual(self) -> dict[str, str]:
        """First value of each such option, which designs have if its list has no other one."""
        return {option: names[0] for option, names in self.names.items()}

    @property
    def metrics(self) -> dict[str, Metric]:
        """Metrics that every combination of options provides."""
        shared = set.intersection(*(set(part.provides) for part in self.parts.values()))
        return {name: metric for name, metric in self.first.provides.items() if name in shared}

    @property
    def absent_metrics(self) -> dict[str, tuple[str, str]]:
        """Why some combinations of options do not provide a metric, and a remedy, by metric."""
        found: dict[str, tuple[str, str]] = {}
        for part in self.parts.values():
            found = {**absent_metrics(part), **found}
        return found

    @property
    def version(self) -> str:
        """Versions of the evaluators of all combinations, each once."""
        return "+".join(dict.fromkeys(part.version for part in self.parts.values()))

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that each value of an input is valid for at least one combination of options.

        Where ``values`` has values of such an option, only combinations with these values count.

        Raises:
            SpecError: a value is invalid for all of these combinations.
        """
        asked = [set(values.get(name, all_names)) for name, all_names in self.names.items()]
        parts = [
            part
            for key, part in self.parts.items()
            if all(name in known for name, known in zip(key, asked, strict=True))
        ]
        for name, some in values.items():
            for value in some if name not in self.names else ():
                self._check_value(parts, name, value)

    @staticmethod
    def _check_value(parts: Sequence[DeclaredEvaluator], name: str, value: Value) -> None:
        first: SpecError | None = None
        for part in parts:
            try:
                part.check_values({name: (value,)})
            except SpecError as error:
                first = first or error
            else:
                return
        if first is not None:
            raise first

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, each from the evaluator of its combination."""
        union = {
            name: one for name, one in self.readings.table.items() if isinstance(one, ChoiceInput)
        }
        parts = [
            (rows, self._evaluate_part(key, batch.take(rows), union))
            for key, rows in groups(batch, self._usual)
        ]
        return gather_parts(len(batch), self.metrics, parts)

    def model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        """Return the model errors of n designs by metric, each from its combination's evaluator."""
        parts = []
        for key, rows in groups(batch, self._usual):
            part = self.parts[key]
            if isinstance(part, StatesModelErrors):
                parts.append((rows, part.model_errors(batch.take(rows))))
        return gather_errors(len(batch), parts)

    def _evaluate_part(
        self, key: tuple[str, ...], batch: Batch, union: Mapping[str, ChoiceInput]
    ) -> Metrics:
        """Return the metrics of designs of one combination.

        A design with a value that only other combinations take is infeasible.
        """
        part = self.parts[key]
        wrong: dict[int, Failure] = {}
        for name, one in part.readings.table.items():
            if name not in union:
                continue
            own = _values(one)
            if name in part.readings.settled:
                own = (part.readings.settled[name],)
            known = {value: float(value in own) for value in union[name].numbers}
            rows = np.flatnonzero(batch.lookup(name, known, 1.0) == 0.0)
            for row in rows.tolist():
                reason = f"{', '.join(key)}: {name} cannot be {batch[name][row]}"
                wrong[row] = Failure(kind="infeasible", reason=reason)
        if not wrong:
            return part.evaluate(batch)
        sound = np.array([row for row in range(len(batch)) if row not in wrong], dtype=np.int64)
        found = [(sound, part.evaluate(batch.take(sound)))] if sound.size else []
        metrics = gather_parts(len(batch), self.metrics, found)
        return replace(metrics, failures={**metrics.failures, **wrong})


def _values(one: Reading) -> Collection[Value]:
    return one.numbers if isinstance(one, ChoiceInput) else ()


def choices_of(evaluator: DeclaredEvaluator, labels: Labels) -> Choices | None:
    """Return the evaluators of all combinations of listed options; ``None`` without lists.

    An option is listed if the study gives a list of values for it.

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
            problem, hint = f"{option} is an empty list", "list one value or more"
            if some:
                twice = next(one for one in some if some.count(one) > 1)
                problem = f"{option} has {twice!r} twice"
                hint = f"name the other one, as {{like: {twice}, name: other, ...}}"
            raise SpecError(problem, hint=hint, part=[option])
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
