"""Base class of evaluators that take a list as an option, of which each design chooses a value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.values import Value
from dse_evaluators.clusters.choices import Choices, Labels, choices_of
from dse_evaluators.declared_evaluator import DeclaredEvaluator


class ChosenOptions(DeclaredEvaluator, reads={}, provides=(), version="1"):
    """Base class of evaluators whose options may be lists; such an option is an input of the space.

    A subclass overrides :meth:`prepare`, :meth:`evaluate_options` and, where its inputs depend on
    each other, :meth:`check_options`. These methods see single values only.

    Attributes:
        choosable: the options that may be lists, with the functions that name their values.
    """

    choosable: ClassVar[Labels]

    def __post_init__(self) -> None:
        self._choices: Choices | None = choices_of(self, self.choosable)
        if self._choices is None:
            self.prepare()
            return
        self.absent_metrics = self._choices.absent_metrics
        self.declare(self._choices.readings)
        self.provides, self.version = self._choices.metrics, self._choices.version

    def prepare(self) -> None:
        """Check the options, each a single value, and declare the inputs."""
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        if self._choices is not None:
            self._choices.check_values(values)
        else:
            self.check_options(values)

    def check_options(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check the values that a space allows for the inputs beyond their ranges, if need be.

        Raises:
            SpecError: a value is invalid.
        """

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, each with the options that it chooses."""
        if self._choices is not None:
            return self._choices.evaluate(batch)
        return self.evaluate_options(batch)

    @abstractmethod
    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, all with the options of this evaluator."""
