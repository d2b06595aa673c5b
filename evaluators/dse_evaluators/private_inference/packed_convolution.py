"""The evaluator ``private.convolution``: rotations of packed convolutions that are pruned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.private_inference.bfv_parameters import RINGS
from dse_evaluators.private_inference.encrypted_layers import layers_from
from dse_evaluators.private_inference.packed_layer import LayerShape
from dse_evaluators.private_inference.unit_times import OPERATIONS, SHIPPED, read_unit_times
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading
from dse_evaluators.workloads.packed_diagonals import count_held_channels, count_rotations

INPUTS: Mapping[str, Reading] = {
    "slots": ChoiceInput({ring: float(place) for place, ring in enumerate(RINGS)}),
    "positions_kept": NumberInput(0, 1, default=1.0),
    "diagonals_kept": NumberInput(0, 1, default=1.0),
}
METRICS = (
    Metric(name="rotations", goal="minimize"),
    Metric(name="input_rotations", goal="minimize", part_of="rotations"),
    Metric(name="output_rotations", goal="minimize", part_of="rotations"),
    Metric(name="products", goal="minimize"),
    Metric(name="weights_kept", goal="maximize"),
    Metric(name="latency", unit="s", goal="minimize"),
)


class PackedConvolution(DeclaredEvaluator, reads=INPUTS, provides=METRICS, version="2"):
    """Rotations of packed convolutions whose window positions or diagonals are pruned.

    A ciphertext holds as many channels as fit into its slots, and no more than the layer has. An
    input ciphertext is rotated once for each window position but one, and all outputs share the
    rotated copies; partial sums of one diagonal of channels are added over all inputs, then rotated
    once. Pruning a position of an input ciphertext saves one input rotation, and pruning a diagonal
    of an output ciphertext one output rotation.

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours
            (``docs/workloads.md``).
        layer: name of one of its layers; all by default.
        shape: a layer without a network: ``height``, ``width``, ``channels``, ``filters``, and
            optionally ``window``, ``stride`` and ``groups``.
        skip: number of first layers that are left out.
        data_primes: primes of the ciphertext modulus, for the times.
        times: CSV file of the times of single operations; ``python -m
            dse_evaluators.private_inference.measure_unit_times FILE`` writes one for this machine.

    Inputs:
        slots: slots of a ciphertext.
        positions_kept: share of the input rotations that pruning keeps.
        diagonals_kept: share of the output rotations that pruning keeps.

    Limits:
        A strided convolution is counted at the resolution of its output. Shares are the same in all
        layers; counts are rounded up for each layer. The accuracy of the pruned network is not
        modelled: ``weights_kept`` is the share of its weights. ``compression.retraining`` trains a
        network with the same diagonals pruned (``method: diagonals``, with the same inputs
        ``slots`` and ``diagonals_kept``) and measures it. Exchanges of the two rows of a BFV
        ciphertext are counted as rotations.

    Error:
        Rotations equal those of a simulation of every slot on four shapes.

    Source:
        Jeon et al.: Artemis, HE-aware training for private inference, 2023: pruning of positions
        and diagonals. The counts are derived here.

    Example:
        options: {shape: {height: 16, width: 16, channels: 64, filters: 64, window: 3}}
        parameters: {slots: [4096, 8192], positions_kept: [0.5, 1.0], diagonals_kept: [0.5, 1.0]}

    Raises:
        SpecError: an option is invalid.
        PluginError: onnx is not installed.
    """

    user_options: ClassVar[Sequence[str]] = ("workload", "times")

    workload: object = None
    layer: str | None = None
    shape: Mapping[str, Any] | None = None
    skip: int = 0
    data_primes: int = 2
    times: str | None = None
    slots: int | None = None
    positions_kept: float | None = None
    diagonals_kept: float | None = None

    def __post_init__(self) -> None:
        check_count("skip", self.skip, least=0)
        check_count("data_primes", self.data_primes, least=1)
        self._layers = layers_from(self, self.workload, self.layer, self.shape)[self.skip :]
        self._times = read_unit_times(SHIPPED if self.times is None else Path(self.times))
        super().__post_init__()

    @cached_property
    def _counts(self) -> Floats:
        """Counts of every layer in every ring, (counts, layers, rings)."""
        found = [[rotation_counts(one, ring) for ring in RINGS] for one in self._layers]
        return np.moveaxis(np.array(found, dtype=np.float64), -1, 0)

    @cached_property
    def _seconds(self) -> Floats:
        """Seconds of each operation by ring, (rings, operations); NaN where unmeasured."""
        unknown = (np.nan,) * len(OPERATIONS)
        rows = [self._times.seconds.get((ring, self.data_primes), unknown) for ring in RINGS]
        return np.array(rows)

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the metrics of n designs."""
        place = inputs["slots"].astype(np.int64)
        positions, diagonals = inputs["positions_kept"], inputs["diagonals_kept"]
        kept_in, kept_out, products, weights = (np.zeros(len(place)) for _ in range(4))
        for incoming, outgoing, multiplied, weight_count in np.moveaxis(self._counts, 1, 0):
            own_in = np.ceil(incoming[place] * positions)
            own_out = np.ceil(outgoing[place] * diagonals)
            share = _share(own_in, incoming[place], len(place))
            share = share * _share(own_out, outgoing[place], len(place))
            kept_in, kept_out = kept_in + own_in, kept_out + own_out
            products = products + np.ceil(multiplied[place] * share)
            weights = weights + weight_count[place] * share
        times = dict(zip(OPERATIONS, self._seconds[place].T, strict=True))
        rotations = kept_in + kept_out
        latency = rotations * times["rotation"] + products * (
            times["product_ntt"] + times["addition"]
        )
        reason = f"{self._times.label} has no row of {self.data_primes} data primes for its ring"
        failures = {
            row: Failure(kind="infeasible", reason=reason)
            for row in np.flatnonzero(np.isnan(latency)).tolist()
        }
        return Metrics(
            columns={
                "rotations": rotations,
                "input_rotations": kept_in,
                "output_rotations": kept_out,
                "products": products,
                "weights_kept": weights / self._counts[3, :, 0].sum(),
                "latency": latency,
            },
            failures=failures,
        )


def rotation_counts(shape: LayerShape, slots: int) -> tuple[int, int, int, int]:
    """Return the input rotations, output rotations, products and weights of a packed convolution.

    Args:
        shape: the layer; its stride is a divisor of the sides of its image.
        slots: slots of a ciphertext.
    """
    pixels = shape.pixels // shape.stride**2
    held = count_held_channels(
        pixels=pixels, channels=shape.channels, filters=shape.filters, slots=slots
    )
    pieces = -(-pixels // slots)
    window = shape.window_height * shape.window_width
    inputs = -(-shape.channels // held)
    weights = shape.filters * shape.terms
    return (
        (window - 1) * inputs * pieces,
        count_rotations(shape.filters, held) * pieces,
        -(-weights // held) * pieces,
        weights,
    )


def _share(kept: Floats, all_of_them: Floats, size: int) -> Floats:
    """Return the share of weights kept; a position or diagonal without a rotation always is."""
    return np.divide(kept + 1.0, all_of_them + 1.0, out=np.ones(size), where=all_of_them > 0)
