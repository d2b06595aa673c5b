"""Interface of evaluators, which compute or measure the metrics of designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.separable import Separable
from dse.core.values import Value
from dse.protocols.capability import Capability

if TYPE_CHECKING:
    from dse.core.expressions.expression import Expression
    from dse.core.expressions.list_rules import Listing, Table

EVERYTHING = "*"
"""Entry of an evaluator's ``reads`` that means every parameter of the space."""


COHERENT = "coherent"
"""Entry of an evaluator's ``units``: pass the input in coherent SI, whatever its declared unit."""


class Evaluator(Protocol):
    """Source of the metrics of designs; the plug-in's options are its keyword arguments.

    Optional abilities of an evaluator are further protocols of this module.

    A measuring evaluator may call :func:`dse.evaluation.checkpoints.current_trial`
    (``dse.current_trial()`` for users). It returns the trial, the attempt and a folder that
    persists over all attempts of the trial, so that a killed evaluation can resume from its files.

    Laws:
        - The metrics of a design do not depend on the other designs of the batch.
        - It provides every metric that it declares, in the declared unit, for every design
          without a failure; a metric without a value for a design is NaN there, and
          ``Metrics.undefined`` has the reason.
        - It reads only the inputs that it declares.
        - A design's failure is reported in ``Metrics.failures``; an exception of ``evaluate``
          counts as a failure of every design of the batch.
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


@runtime_checkable
class ChecksValues(Protocol, metaclass=Capability):
    """Evaluator that can check, before a study runs, the values that its inputs may take."""

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that the evaluator can run on all values that its inputs may take.

        Args:
            values: values of each input: both ends of a long range, for a range of reals also a
                value between them, and no value for an input that is a metric of another evaluator.

        Raises:
            SpecError: the evaluator cannot run on one of the values.
        """
        ...


@runtime_checkable
class ChecksProgram(Protocol, metaclass=Capability):
    """Evaluator that starts a program, and can check whether this machine has that program."""

    def check_program(self) -> None:
        """Check that the program that the evaluator starts is installed.

        Raises:
            SpecError: the program is not installed.
        """
        ...


@runtime_checkable
class MayBeMissing(Protocol, metaclass=Capability):
    """Evaluator that may be unable to run on this machine; a study of it can still be read."""

    missing: str
    """The reason why the evaluator cannot run on this machine; empty if it can."""


@runtime_checkable
class ReadsByMetric(Protocol, metaclass=Capability):
    """Evaluator that declares the inputs of each of its metrics, because they differ.

    An input may be absent in some designs; the evaluator then reports which of its metrics are
    undefined.
    """

    reads_by_metric: Mapping[str, frozenset[str]]
    """The inputs of each metric."""


@runtime_checkable
class DeclaresPurity(Protocol, metaclass=Capability):
    """Evaluator that declares whether it is pure, so that read-only commands may call it.

    A pure evaluator starts no program and runs no code that its options name; this matters for
    studies of unknown origin.
    """

    pure: bool
    """Whether it starts no program, runs no code named by its options, and opens no connection."""


@runtime_checkable
class StartsPrograms(Protocol, metaclass=Capability):
    """Evaluator that lists the programs and user functions that it calls."""

    starts: Sequence[str]
    """Descriptions of programs and functions, as ``dse check`` and ``dse studies import`` print."""


@runtime_checkable
class HasNotes(Protocol, metaclass=Capability):
    """Evaluator with notes on how it treats a study, where the user may expect otherwise."""

    notes: Sequence[str]
    """The notes, a sentence each, as ``dse check`` prints them."""


@runtime_checkable
class ExplainsAbsentMetrics(Protocol, metaclass=Capability):
    """Evaluator that states which options its unavailable metrics require."""

    absent_metrics: Mapping[str, tuple[str, str]]
    """By the name of an absent metric, the reason why it is absent, and how to obtain it."""


@runtime_checkable
class HasFormulas(Protocol, metaclass=Capability):
    """Evaluator whose metrics are expressions over its inputs."""

    formulas: Mapping[str, Expression]
    """The expression of each metric, with lists expanded."""
    written: Mapping[str, Expression] | None
    """The expressions as the user wrote them; ``None`` if they are the same."""


@runtime_checkable
class ExpandsFormulas(HasFormulas, Protocol, metaclass=Capability):
    """Evaluator whose expressions may refer to the lists and tables of a design space."""

    def over(self, lists: Mapping[str, Listing], data: Mapping[str, Table]) -> Evaluator:
        """Return a copy of the evaluator whose expressions have lists and tables expanded."""
        ...


class InputDescription(NamedTuple):
    """Values that an input of an evaluator can take, as text, and its default."""

    values: str
    default: Value | None = None


@runtime_checkable
class DescribesInputs(Protocol, metaclass=Capability):
    """Evaluator that describes the values that its inputs can take, for its reference page."""

    input_descriptions: Mapping[str, InputDescription]
    """The description of each input, by name."""


class HeldOutError(NamedTuple):
    """Relative error of fitted constants on measured points that were held out of the fit.

    ``fitted`` and ``held_out`` are numbers of points, ``mean`` and ``largest`` shares: 0.1 is 10 %.
    """

    name: str
    fitted: int
    held_out: int
    mean: float
    largest: float
    source: str


@runtime_checkable
class HasHeldOutErrors(Protocol, metaclass=Capability):
    """Evaluator with fitted constants, whose errors on held-out points its reference page shows."""

    held_out_errors: Sequence[HeldOutError]


@runtime_checkable
class DeclaresParts(Protocol, metaclass=Capability):
    """Evaluator that declares which of its measured metrics are approximately additive.

    An additive metric is a sum of terms. ``parts`` has a declaration per metric: each term depends
    on one group of parameters. The parameters are inputs of the evaluator, by its own names; names
    that the space lacks are ignored. The function ``features`` of a declaration gets batches of
    these inputs.
    """

    parts: Mapping[str, Separable]
    """The declaration of each metric that is approximately a sum of terms."""


@runtime_checkable
class HasFormerMetrics(Protocol, metaclass=Capability):
    """Evaluator with metrics that had other names in the previous version of the evaluator.

    A study may use a former name, with a warning, until the next minor version.
    """

    former_metrics: Mapping[str, str]
    """The present name of a metric, by its former name."""


def declared_parts(evaluator: Evaluator) -> Mapping[str, Separable]:
    """Return the evaluator's declarations of metrics that are sums of terms, by metric."""
    return evaluator.parts if isinstance(evaluator, DeclaresParts) else {}


def missing_reason(evaluator: Evaluator) -> str:
    """Return the reason why the evaluator cannot run on this machine; empty if it can."""
    return evaluator.missing if isinstance(evaluator, MayBeMissing) else ""


def absent_metrics(evaluator: Evaluator) -> Mapping[str, tuple[str, str]]:
    """Return, by metric, why the metric is unavailable with the present options, and a fix."""
    return evaluator.absent_metrics if isinstance(evaluator, ExplainsAbsentMetrics) else {}


def is_pure(evaluator: Evaluator) -> bool:
    """Return whether the evaluator declares itself pure; this may import a user's function."""
    return isinstance(evaluator, DeclaresPurity) and bool(evaluator.pure)


def started_programs(evaluator: Evaluator) -> Sequence[str]:
    """Return descriptions of the programs and functions that the evaluator calls."""
    return evaluator.starts if isinstance(evaluator, StartsPrograms) else ()


def inputs_by_metric(evaluator: Evaluator) -> Mapping[str, frozenset[str]]:
    """Return the inputs of each metric of an evaluator; empty if all metrics share them."""
    return evaluator.reads_by_metric if isinstance(evaluator, ReadsByMetric) else {}


def formulas_of(evaluator: Evaluator) -> Mapping[str, Expression]:
    """Return the expression of each metric, by name; empty if metrics are not expressions."""
    return evaluator.formulas if isinstance(evaluator, HasFormulas) else {}


def written_formulas_of(evaluator: Evaluator) -> Mapping[str, Expression]:
    """Return the expression of each metric as the user wrote it, before lists are expanded."""
    written = evaluator.written if isinstance(evaluator, HasFormulas) else None
    return written or formulas_of(evaluator)


def user_options(plugin: object) -> Sequence[str]:
    """Return the options of an evaluator class that may name a user's file, function or object.

    The value of such an option is a name, a path relative to the study's file, a function in a file
    of the user as ``{python: net.py:make}``, or an object of a Python program. The class lists them
    in its attribute ``user_options``. An option's name that ends in ``.*`` stands for the values of
    a mapping; each value is a name or path as above, or a mapping without paths.

    Args:
        plugin: the class of the evaluator.
    """
    found: Sequence[str] = getattr(plugin, "user_options", ())
    return found


def former_options(plugin: object) -> Mapping[str, str]:
    """Return the present name of each option of an evaluator class, by its former name.

    Args:
        plugin: the class of the evaluator, which lists them in its attribute ``former_options``.
    """
    found: Mapping[str, str] = getattr(plugin, "former_options", {})
    return found
