"""Base class of evaluators that are declared: a table of inputs, the metrics, and a function."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, dataclass_transform

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.protocols import HeldOutError, InputDescription
from dse_evaluators.fits import fits_in
from dse_evaluators.reading_table import Reading, Readings


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class DeclaredEvaluator:
    """Base class of evaluators that are declared by a table of inputs and a function of columns.

    A subclass names its inputs and metrics in its header, and computes the metrics in
    :meth:`compute`. Its annotated fields are its options: a subclass is a dataclass whose fields
    are keyword-only, without a decorator. An option with the name of an input and a value other
    than ``None`` fixes that input for all designs; a text such as ``1.2 GHz`` is converted.
    A subclass that has more to check or to prepare does so in ``__post_init__`` and then calls
    that of this class, or :meth:`declare` if its inputs depend on its options.

    The reference page is made of this declaration and of the sections of the docstring: ``Args``,
    ``Inputs``, ``Limits``, ``Error``, ``Source`` and ``Example`` (see ``docs/how-to``).

    Args:
        reads: the inputs by name, with their ranges, units and defaults.
        provides: the metrics.
        version: version of the numbers; change it whenever they change.
        fits: the files of fitted constants that the evaluator uses (see :mod:`.fits`), relative to
            its module; its reference page shows their errors on held-out points.
        kind: ``modelled`` for a formula, ``measured`` for an experiment.
        pure: whether a modelled evaluator starts no program, runs no code that its options name,
            and opens no connection; commands that only read may then call it.

    Example:
        >>> import numpy as np
        >>> from dse.core.batch import Batch
        >>> from dse.core.metric import Metric
        >>> from dse_evaluators.declared_evaluator import DeclaredEvaluator
        >>> from dse_evaluators.reading_table import NumberInput
        >>> class Roofline(
        ...     DeclaredEvaluator,
        ...     reads={
        ...         "intensity": NumberInput(0, 1e6, "FLOP/B"),
        ...         "bandwidth": NumberInput(1, 1e15, "B/s", default=1e12),
        ...     },
        ...     provides=[Metric(name="attained", unit="FLOP/s", goal="maximize")],
        ...     version="1",
        ... ):
        ...     '''Attainable rate of a kernel, the lesser of peak and bandwidth x intensity.'''
        ...
        ...     peak: float
        ...     bandwidth: float | str | None = None
        ...
        ...     def compute(self, inputs):
        ...         fed = inputs["bandwidth"] * inputs["intensity"]
        ...         return {"attained": np.minimum(self.peak, fed)}
        >>> roofline = Roofline(peak=1e13, bandwidth="2 TB/s")
        >>> sorted(roofline.reads | roofline.optional)
        ['intensity']
        >>> metrics = roofline.evaluate(Batch.of([{"intensity": 1.0}, {"intensity": 64.0}]))
        >>> metrics.columns["attained"].tolist()
        [2000000000000.0, 10000000000000.0]
    """

    reads: frozenset[str]
    optional: frozenset[str]
    units: Mapping[str, str]
    provides: Mapping[str, Metric]
    kind: Kind
    pure: bool
    version: str
    _readings: Readings
    __table: ClassVar[Mapping[str, Reading]]
    fits: ClassVar[Sequence[str]]

    def __init_subclass__(
        cls,
        *,
        reads: Mapping[str, Reading],
        provides: Iterable[Metric],
        version: str,
        fits: Sequence[str] = (),
        kind: Kind = "modelled",
        pure: bool = True,
    ) -> None:
        super().__init_subclass__()
        cls.__table, cls.provides = reads, {metric.name: metric for metric in provides}
        cls.fits = fits
        cls.kind, cls.pure, cls.version = kind, pure and kind == "modelled", version
        dataclass(kw_only=True, eq=False)(cls)

    def __post_init__(self) -> None:
        self.declare(Readings.of(self.__table, self))

    def declare(self, readings: Readings) -> None:
        """Set the table of inputs in place of that of the class header."""
        self._readings = readings
        self.reads, self.optional, self.units = readings.declared

    @property
    def readings(self) -> Readings:
        """The table of inputs, with those that options fix."""
        return self._readings

    @property
    def input_descriptions(self) -> Mapping[str, InputDescription]:
        """The values that each input can take, and its default."""
        return self._readings.descriptions

    @property
    def held_out_errors(self) -> Sequence[HeldOutError]:
        """The errors of the fitted constants on points that were held out of the fits."""
        folder = Path(inspect.getfile(type(self))).parent
        paths = [folder / name for name in self.fits]
        return [fit.held_out_error for path in paths for fit in fits_in(path).values()]

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._readings.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, as :meth:`compute` returns them, all feasible.

        Override the method where columns of numbers do not suffice; ``self._readings`` reads the
        inputs.
        """
        found = self.compute(self._readings.columns(batch))
        return found if isinstance(found, Metrics) else Metrics(columns=found)

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics | Mapping[str, Floats]:
        """Return the metrics of n designs, each (n,), from their inputs, each (n,).

        The inputs are keyed by name, in the units of the table of inputs; a categorical one is an
        array of codes, the indices of its choices.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither compute nor evaluate")
