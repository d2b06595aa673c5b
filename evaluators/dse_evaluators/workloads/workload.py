"""A trained model with the data that judges it: what compression is measured on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from dse.core.metric import Metric
from dse.errors import PluginError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format

Parameters = Mapping[str, Single]
"""Weights, biases and all else that was learnt, by name, in the order of the model."""

Split = Literal["search", "test"]
"""What a study may look at as often as it likes, and what is kept for the end."""

SPLITS: tuple[Split, ...] = ("search", "test")


def check_split(split: object) -> None:
    """Nothing, if there is such a split. Raises PluginError if not."""
    if split not in SPLITS:
        raise PluginError(f"there is no split {split!r}", hint=nearest(split, SPLITS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The formats that signals are rounded to while the model runs; ``None`` is single precision.

    ``activations`` are the inputs of every layer, ``kv_cache`` the keys and values of attention.
    The inputs of a layer in ``smoothing`` are divided by its factors, (inputs,), before they are
    rounded; its weights are those for the undivided ones, so what was rounded is multiplied again.
    """

    activations: Format | None = None
    kv_cache: Format | None = None
    smoothing: Mapping[str, Single] = field(default_factory=dict)

    def rounded(self, layer: str, inputs: Single) -> Single:
        """The inputs of a layer, (..., inputs), at the numbers of their format."""
        if self.activations is None:
            return inputs
        if layer not in self.smoothing:
            return self.activations.quantize(inputs)
        factors = self.smoothing[layer]
        return self.activations.quantize(inputs / factors) * factors


class Workload(Protocol):
    """A model that runs on whatever parameters it is given.

    Laws: the same parameters give the same outputs, to the last bit, in every process; no example
    is in two of training, search and test; calibration inputs are those of training examples. A
    model takes its widths from the parameters' shapes, and leaves out the blocks that are absent,
    where it says in its docstring that it can.
    """

    name: str
    parameters: Parameters
    compressible: tuple[str, ...]
    """Names of the layers' weights, (outputs, inputs, ...): what is not here stays as it is."""

    metrics: Mapping[str, Metric]
    """Of quality; at least one is continuous, the others may be shares of so many examples."""

    def calibration(self) -> Mapping[str, Single]:
        """The inputs of the layers that multiply, (n, inputs), on training examples."""
        ...

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """Return the outputs for each example, (n, k): logits, scores or embeddings.

        Raises:
            EvaluationError: the parameters do not fit one another.
        """
        ...

    def quality(self, outputs: Single, reference: Single, split: Split) -> Mapping[str, float]:
        """Return the metrics of these outputs; ``reference`` is the uncompressed model's."""
        ...
