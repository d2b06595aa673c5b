"""Interface of evaluators, which compute or measure the metrics of designs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics

EVERYTHING = "*"
"""Entry of an evaluator's ``reads`` that means every parameter of the space."""


COHERENT = "coherent"
"""Entry of an evaluator's ``units``: pass the input in coherent SI, whatever its declared unit."""


class Evaluator(Protocol):
    """Source of the metrics of designs; constructed with its own keyword options.

    Optional method ``check_values``: it is called before a study runs, with the values that each
    input can take (only the ends of a long range, also a value between them for a real range, no
    value for a metric), and raises SpecError if the evaluator cannot run on one of them.

    Optional attribute ``missing``: if not empty, the reason why the evaluator cannot run here; its
    studies can still be read. Optional attribute ``reads_by_metric``: the inputs of each metric.
    An input without a value in a row is then absent in that row, and the evaluator itself reports
    which of its metrics have no value as a result.

    A measuring evaluator may call :func:`dse.evaluation.checkpoints.current_trial`
    (``dse.current_trial()`` for users). It returns the trial, the attempt and a folder that
    persists over all attempts of the trial, so that a killed evaluation can resume from its files.

    A modelled evaluator with a true attribute ``pure`` may be called by read-only commands, such as
    ``dse check`` and ``dse report``, on a study of unknown origin. Without it, only commands that
    run a study call it. Optional attribute ``starts``: descriptions of the programs and functions
    that the study makes it call; ``dse check`` and ``dse studies import`` print them.

    Laws:
        - The metrics of a row do not depend on the other rows of the batch.
        - It provides every metric that it declares, in the declared unit, for every row without
          a fault; a metric without a value in a row is NaN there, and ``Metrics.undefined`` has
          the reason.
        - It reads only the inputs that it declares.
        - A row's fault is reported in ``Metrics.faults``; an exception is a fault of every row.
        - A ``pure`` evaluator starts no program, runs no code that its options name, and opens no
          connection.
        - It can be pickled, and is cheap to construct: ``evaluate`` imports heavy libraries.
    """

    reads: frozenset[str]
    """Required inputs: parameters, and metrics of earlier evaluators."""
    optional: frozenset[str]
    """Optional inputs: read if the space has them, else replaced by the evaluator's defaults."""
    units: Mapping[str, str]
    """Unit in which each input is passed; an input that is not listed is passed unconverted."""
    provides: Mapping[str, Metric]
    kind: Kind
    version: str
    """Version that changes whenever the numbers change; part of a study's identity."""

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of a batch of n designs, each metric as a column of shape (n,)."""
        ...
