"""Protocol of a workload: a trained model with evaluation data, to measure compression on."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError, PluginError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format

Parameters = Mapping[str, Single]
"""All learnt parameters by name, in the order of the model."""

CachePart = Literal["keys", "values"]
"""What attention caches in inference."""

Split = Literal["search", "test"]
"""Evaluation split: ``search`` for use during a study, ``test`` for the final evaluation."""

SPLITS: tuple[Split, ...] = ("search", "test")


def check_split(split: object) -> None:
    """Raise PluginError unless ``split`` is ``search`` or ``test``."""
    if split not in SPLITS:
        raise PluginError(f"there is no split {split!r}", hint=nearest(split, SPLITS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Number formats to which activations are rounded in inference; ``None`` is fp32.

    ``activations`` applies to the inputs of every layer, ``kv_cache`` to the keys and values of
    attention. ``keys`` and ``values`` replace it for one of the two: one format, or one for each
    block with attention, in the order of the model. The inputs of a layer in ``smoothing`` are
    divided by that layer's factors, (inputs,), before rounding, and multiplied by the factors
    afterwards, because the layer's weights are not smoothed.
    """

    activations: Format | None = None
    kv_cache: Format | None = None
    keys: tuple[Format | None, ...] = ()
    values: tuple[Format | None, ...] = ()
    smoothing: Mapping[str, Single] = field(default_factory=dict)

    @property
    def rounds_cache(self) -> bool:
        """Whether attention's keys or values are rounded in any block."""
        return any(one is not None for one in (self.kv_cache, *self.keys, *self.values))

    def cache_formats(self, part: CachePart, blocks: int) -> tuple[Format | None, ...]:
        """Return the format of the keys or of the values of each block.

        Args:
            part: ``keys`` or ``values``.
            blocks: number of blocks with attention.

        Raises:
            EvaluationError: the formats are neither one nor one for each block.
        """
        given = (self.keys if part == "keys" else self.values) or (self.kv_cache,)
        if len(given) not in (1, blocks):
            raise EvaluationError(
                f"{part} have {len(given)} formats, but the model has {blocks} blocks with "
                "attention",
                hint=f"a list of {blocks}, or one format",
            )
        return given * blocks if len(given) == 1 else given

    def rounded(self, layer: str, inputs: Single) -> Single:
        """Return the inputs of a layer, (..., inputs), rounded to the format of activations."""
        if self.activations is None:
            return inputs
        if layer not in self.smoothing:
            return self.activations.quantize(inputs)
        factors = self.smoothing[layer]
        return self.activations.quantize(inputs / factors) * factors


@runtime_checkable
class HasOrderedCalibration(Protocol):
    """Workload that can be calibrated with some layers compressed already."""

    def calibrate(self, parameters: Parameters, layers: Collection[str]) -> Mapping[str, Single]:
        """Return the inputs of some layers, (n, inputs), of the model with other parameters."""
        ...


class Workload(Protocol):
    """Trained model with evaluation data, which can be run with replaced parameters.

    Contract: the same parameters give bit-identical outputs in every process; no example is in two
    of training, search and test; calibration inputs come from training examples. If its docstring
    states so, a model takes its widths from the parameters' shapes, and leaves out blocks whose
    parameters are absent.
    """

    name: str
    parameters: Parameters
    compressible: tuple[str, ...]
    """Names of the weights, (outputs, inputs, ...), that may be compressed; others stay as is."""

    metrics: Mapping[str, Metric]
    """Quality metrics; at least one is continuous, the others may be shares of the examples."""

    def calibration(self) -> Mapping[str, Single]:
        """Return the inputs of each layer with weights on training examples, (n, inputs)."""
        ...

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """Run the model with the given parameters; return the outputs for each example, (n, k).

        Outputs are logits, scores or embeddings.

        Raises:
            EvaluationError: the parameters do not fit one another.
        """
        ...

    def count_examples(self, split: Split) -> int:
        """Return the number of examples of a split, which resamples draw from."""
        ...

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        """Return the quality metrics of a model's ``outputs``.

        ``reference`` are the outputs of the uncompressed model. ``chosen`` are indices of examples,
        with repetitions, on which the metrics are measured; by default all examples.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Shapes of a model's parameters by name, and the names of the compressible weights.

    ``kept`` are other parameters of two or more axes, which stay in single precision; ``inputs``
    are the names of the model's inputs, if its file states them.
    """

    shapes: Mapping[str, tuple[int, ...]]
    layers: tuple[str, ...]
    kept: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()


class UserModel(Hashable, Protocol):
    """Model of the user: a hashable value that stands for the model in place of a name."""

    @property
    def label(self) -> str:
        """Name of the model in messages."""
        ...

    @property
    def edition(self) -> str:
        """Hash of the content of the user's model and of its data."""
        ...

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Quality metrics of the model, by name."""
        ...

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the weights that can be compressed."""
        ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each parameter, by name."""
        ...

    @property
    def is_known(self) -> bool:
        """Whether the layers are known without calling a function of the user."""
        ...

    @property
    def is_sequential(self) -> bool:
        """Whether layers are calibrated with the outputs of the compressed layers before them."""
        ...

    @property
    def missing(self) -> str:
        """Reason why the model cannot be run here; empty if it can."""
        ...

    @property
    def starts(self) -> tuple[str, ...]:
        """Descriptions of the user's functions that an evaluation calls."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on weights of the user's model that cannot be compressed."""
        ...

    def make(self) -> Workload:
        """Load the user's model and its data."""
        ...
