"""Outputs of a user's model as a table, and their quality against the user's targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError, SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_quality import Quality, Targets, needs_logits
from dse_evaluators.workloads.resampling import expand_examples

_SEQUENCES = 3
_LEAST_PROBABILITY = np.float32(1e-12)  # so that its logarithm is finite
_UNSURE = 1e-3  # of the sum of probabilities, which softmax rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTask:
    """Data and quality metrics of a user's model.

    Outputs of three axes, (n, t, k), belong to n sequences of t tokens: each position is an
    example. Without targets, the target of a position is the next token, so that the last position
    is left out. Outputs that the study calls probabilities are replaced by their logarithms.

    Raises:
        SpecError: a metric needs targets that the data lacks, or targets of another kind.
    """

    label: str
    source: OwnData | None
    qualities: tuple[Quality, ...]

    def __post_init__(self) -> None:
        if self.source is not None:
            check_targets(self.source, self.qualities)

    @property
    def data(self) -> OwnData:
        """Examples to run the model on.

        Raises:
            EvaluationError: no data was named.
        """
        if self.source is None:
            hint = "as in data: data.npz, with the arrays inputs and targets"
            raise EvaluationError(f"{self.label} needs data to run on", hint=hint)
        return self.source

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Quality metrics by name."""
        return {one.metric.name: one.metric for one in self.qualities}

    def outputs(self, table: Single, split: str) -> Single:
        """Return the outputs for each example of a split, (n, k), from the outputs of the model.

        Args:
            table: outputs of the model, (n, k) or (n, t, k).
            split: ``search``, ``test`` or ``calibration``.

        Raises:
            EvaluationError: an output is not finite, or the number of outputs does not fit the
                targets.
        """
        table = np.ascontiguousarray(self.flatten_sequences(table))
        if not np.isfinite(table).all():
            raise EvaluationError(
                f"the outputs of {self.label} have an infinite value or NaN",
                hint="its formats may be too narrow, or the examples out of its range",
            )
        if self.gives_probabilities:
            table = log_probabilities(table, self.label)
        self._check_outputs(table, self.targets_of(split))
        return table

    @property
    def gives_probabilities(self) -> bool:
        """Whether the study states that the model outputs probabilities in place of logits."""
        return any(one.outputs == "probabilities" for one in self.qualities)

    @property
    def has_classes(self) -> bool:
        """Whether the targets are classes."""
        targets = self.data.targets_of("calibration")
        return targets is not None and targets.dtype.kind == "i"

    def flatten_sequences(self, table: Any) -> Any:  # an array or a tensor
        """Return outputs of sequences, (n, t, k), as outputs of positions; others as they are."""
        if table.ndim != _SEQUENCES:
            return table
        cut = self.data.targets is None and self.data.inputs.dtype.kind == "i"
        table = table[:, :-1] if cut and table.shape[1] > 1 else table
        return table.reshape(-1, table.shape[-1])

    def count_examples(self, split: str) -> int:
        """Return the number of examples of a split; a sequence is one example."""
        return len(self.data.inputs_of(split))

    def quality(
        self, outputs: Single, reference: Single, split: str, chosen: Ints | None = None
    ) -> dict[str, float]:
        """Return the quality metrics of outputs, (n, k), by name.

        Args:
            outputs: outputs of the compressed model, (n, k).
            reference: outputs of the uncompressed model, (n, k).
            split: the split to which they belong.
            chosen: indices of the examples on which the metrics are measured, with repetitions,
                (c,); by default all.

        Raises:
            EvaluationError: a function of the user fails.
        """
        targets = self.targets_of(split)
        given = np.zeros(len(outputs), dtype=np.int64) if targets is None else targets
        if chosen is not None:
            examples = self.count_examples(split)
            given = given[expand_examples(chosen, len(given), examples)]
            rows = expand_examples(chosen, len(outputs), examples)
            outputs, reference = outputs[rows], reference[rows]
        return {
            one.metric.name: float(one.score(outputs, reference, given)) for one in self.qualities
        }

    def check_logits(self, reference: Single) -> None:
        """Raise an error if the outputs of the uncompressed model, (n, k), are probabilities.

        Raises:
            EvaluationError: the outputs are probabilities, and a metric interprets them as logits.
        """
        columns = reference.shape[1]
        named = next((one for one in self.qualities if needs_logits(one, columns)), None)
        if named is None or (reference < 0).any() or (reference > 1).any():
            return
        if columns > 1 and np.abs(reference.sum(axis=1, dtype=np.float64) - 1).max() > _UNSURE:
            return
        name = named.metric.name
        outputs = "are all in 0 .. 1" if columns == 1 else "add up to 1"
        raise EvaluationError(
            f"the outputs of {self.label} {outputs}, but {name} takes logits",
            hint=f"quality: {{metrics: {name}, outputs: probabilities}}, or outputs: logits if "
            "they are",
        )

    def targets_of(self, split: str, rows: Ints | None = None) -> Targets | None:
        """Return the targets of a split's examples, (n,); of sequences, those of each position.

        Args:
            split: the split.
            rows: places of the examples in the split, (n,); by default all.
        """
        chosen = slice(None) if rows is None else rows
        targets = self.data.targets_of(split)
        if targets is None and self.data.inputs.dtype.kind == "i" and self.data.inputs.ndim == 2:
            return self.data.inputs_of(split)[chosen][:, 1:].reshape(-1)
        targets = None if targets is None else targets[chosen]
        if targets is not None and targets.dtype.kind == "i":
            return targets.reshape(-1)
        return targets

    def _check_outputs(self, table: Single, targets: Targets | None) -> None:
        needs = {one.needs for one in self.qualities}
        if targets is None or not needs & {"labels", "values"}:
            return
        if "labels" in needs and len(table) != len(targets):
            raise EvaluationError(
                f"the model gives {len(table)} rows of outputs for {len(targets)} targets",
                hint="(n, classes), or (n, tokens, vocabulary) for a language model",
            )
        if "labels" in needs and max(table.shape[1], 2) <= targets.max():
            raise EvaluationError(
                f"a target is {targets.max()}, but the model has {table.shape[1]} outputs",
                hint="classes are numbered from 0",
            )
        if "values" in needs and table.size != targets.size:
            raise EvaluationError(
                f"the model gives {table.size} outputs for {targets.size} targets"
            )


def check_targets(data: OwnData, qualities: tuple[Quality, ...]) -> None:
    """Check that the data has the targets that the quality metrics need.

    Args:
        data: the examples.
        qualities: the quality metrics.

    Raises:
        SpecError: the data has no targets, or not the integer classes that a metric needs.
    """
    targets = data.targets
    if targets is None and data.inputs.dtype.kind == "i" and data.inputs.ndim == 2:
        targets = data.inputs[:, 1:]
    if data.named and data.targets is None:
        targets = None  # the next token of one input among several may be padding
    for one in qualities:
        name = one.metric.name
        if one.needs in ("labels", "values") and targets is None:
            hint = "give targets in data, or quality: cosine, which needs none"
            raise SpecError(f"{name} needs targets", hint=hint, part=["quality"])
        if one.needs != "labels" or targets is None:
            continue
        if targets.dtype.kind != "i" or targets.min() < 0:
            hint = "integers from 0; for other targets, quality: mse"
            raise SpecError(f"{name} needs classes as targets", hint=hint, part=["quality"])
        if name == "auc" and set(np.unique(targets).tolist()) != {0, 1}:
            raise SpecError("auc needs targets 0 and 1", hint="accuracy or f1", part=["quality"])


def log_probabilities(table: Single, label: str) -> Single:
    """Return the logarithms of probabilities of classes; of a single one, its log odds.

    Args:
        table: probabilities of each class, (n, k), or of class 1, (n, 1).
        label: name of the model for messages.

    Raises:
        EvaluationError: a value is outside of 0 to 1, or a row does not add up to 1.
    """
    sums = table.sum(axis=1, dtype=np.float64)
    is_single = table.shape[1] == 1
    if (table < 0).any() or (table > 1 + _UNSURE).any():
        problem = f"have a value of {table.min() if (table < 0).any() else table.max():.4g}"
    elif not is_single and np.abs(sums - 1).max() > _UNSURE:
        problem = f"of an example add up to {sums[np.abs(sums - 1).argmax()]:.4g}"
    else:
        logs = np.log(np.maximum(table, _LEAST_PROBABILITY))
        rest = np.log(np.maximum(1 - table, _LEAST_PROBABILITY)) if is_single else 0
        return np.asarray(logs - rest, dtype=np.float32) if is_single else np.asarray(logs)
    raise EvaluationError(
        f"the outputs of {label} are no probabilities: they {problem}",
        hint="leave out outputs: probabilities; logits need no such word",
    )


def check_finite(parameters: Mapping[str, Single]) -> None:
    """Raise SpecError if a parameter of a model has an infinite value or NaN.

    Args:
        parameters: the parameters by name.
    """
    for name, array in parameters.items():
        if not np.isfinite(array).all():
            problem = f"{name} has an infinite value or NaN"
            raise SpecError(problem, hint="export a checkpoint whose training did not diverge")


def table_of(given: Any) -> Single:
    """Return the outputs of a model as an array in single precision, (n, k) or (n, t, k).

    Args:
        given: what the model returns, as for :func:`select_outputs`.

    Raises:
        EvaluationError: it has no array of one to three axes.
    """
    given = select_outputs(given)
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    if not isinstance(given, np.ndarray) or not 1 <= given.ndim <= _SEQUENCES:
        shape = f" of shape {given.shape}" if isinstance(given, np.ndarray) else ""
        raise EvaluationError(
            f"the model gives a {type(given).__name__}{shape}",
            hint="outputs are a tensor (n, k) or (n, tokens, k)",
        )
    table = np.asarray(given, dtype=np.float32)
    return table[:, None] if table.ndim == 1 else table


def select_outputs(given: Any) -> Any:
    """Return the array or tensor of outputs among what a model returns.

    Args:
        given: an array or tensor, a mapping or an object with ``logits``, or a tuple whose first
            element is the outputs.
    """
    if isinstance(given, Mapping) and "logits" in given:
        given = given["logits"]
    given = getattr(given, "logits", given)
    return given[0] if isinstance(given, tuple | list) and given else given
