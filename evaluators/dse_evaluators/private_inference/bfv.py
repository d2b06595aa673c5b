"""The evaluator ``private.bfv``: layers of a network under BFV encryption, modelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Ints, Mask, Value
from dse.errors import SpecError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.private_inference.bfv_parameters import (
    RINGS,
    SECURE_BITS,
    fresh_variance,
    largest_noise,
    plain_modulus,
    product_factor,
    switch_variance,
)
from dse_evaluators.private_inference.encrypted_layers import (
    check_operands,
    layers_from,
    needed_bits,
)
from dse_evaluators.private_inference.packed_layer import (
    SCHEDULES,
    LayerShape,
    OperationCounts,
    Packing,
)
from dse_evaluators.private_inference.unit_times import OPERATIONS, SHIPPED, read_unit_times
from dse_evaluators.reading_table import ChoiceInput, Flag, NumberInput, Reading, one_of

_MOST_PRIMES = 16
_MOST_PLAIN_BITS = 50

INPUTS: Mapping[str, Reading] = {
    "ring": ChoiceInput({ring: float(place) for place, ring in enumerate(RINGS)}),
    "data_primes": NumberInput(1, _MOST_PRIMES, whole=True),
    "prime_bits": NumberInput(24, 60, whole=True),
    "plain_bits": NumberInput(12, _MOST_PLAIN_BITS, whole=True),
    "schedule": one_of(SCHEDULES, "mixed"),
    "weights_in_ntt": Flag(default=True),
    "weight_bits": NumberInput(2, 16, default=8, whole=True),
    "activation_bits": NumberInput(2, 16, default=8, whole=True),
}
METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="traffic", unit="B", goal="minimize"),
    Metric(name="noise_budget", unit="bit", goal="maximize"),
    Metric(name="key_size", unit="B", goal="minimize"),
    Metric(name="weight_size", unit="B", goal="minimize"),
    Metric(name="rotations", goal="minimize"),
    Metric(name="products", goal="minimize"),
    Metric(name="additions", goal="minimize"),
    Metric(name="spare_plain_bits", unit="bit", goal="minimize"),
)

_UNSURE_BITS = 1.5
"""Smallest expected noise budget [bit] of a feasible design.

The budget under one key differs from that under another by a fourth of a bit.
"""


class Bfv(
    DeclaredEvaluator,
    reads=INPUTS,
    provides=METRICS,
    version="2",
):
    """Time, traffic and noise budget of a network's layers under BFV encryption, on one core.

    A client encrypts the input of a layer; the server multiplies it by plaintext weights and
    returns the encrypted sums, which the client decrypts. Channels are packed into the slots, and a
    layer is a sum over diagonals of channels and positions of the window. A design is infeasible if
    its modulus is larger than the security level allows, if sums do not fit into the plaintext
    modulus, or if the noise would make decryption wrong.

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours
            (``docs/workloads.md``).
        layer: name of one of its layers; by default all layers have the parameters of the design,
            ``key_size`` is the largest of a layer, ``noise_budget`` and ``spare_plain_bits`` are
            the least, and other metrics are sums over the layers. With one evaluator for each
            layer, layers can have different parameters.
        shape: a layer without a network: ``height``, ``width``, ``channels``, ``filters``, and
            optionally ``window``, ``stride`` and ``groups``.
        security: 128, 192 or 256 bits.
        times: CSV file of the times of single operations; ``python -m
            dse_evaluators.private_inference.measure_unit_times FILE`` writes one for this machine.

    Inputs:
        ring: ring dimension n, the number of slots.
        data_primes: primes of the ciphertext modulus; one more is used for key switching.
        prime_bits: width of each prime.
        plain_bits: width of the plaintext modulus, a prime with slots.
        schedule: ``rotate-then-multiply`` rotates inputs for every diagonal and window position;
            ``multiply-then-rotate`` rotates partial sums instead; ``mixed`` rotates inputs for
            window positions and partial sums for diagonals.
        weights_in_ntt: keep the encoded weights transformed, for faster products but as many times
            more memory as there are primes.
        weight_bits: width of signed weights.
        activation_bits: width of signed activations.

    Limits:
        Images of more pixels than half the ring are divided, and the pixels that neighbouring
        pieces share are not counted. A convolution without padding is computed as one with padding
        whose additional outputs are dropped; dilation is ignored. Dense layers have one rotation
        for each diagonal, without baby and giant steps. Functions between layers, and the random
        masks that hide the sums of a layer from the client, are not modelled. Plaintexts are
        taken as arbitrary: weights that repeat over all slots make less noise.

    Error:
        No constant is fitted. Noise: on 12 pairs of layer and ring of two networks, the mean of
        three runs is within .27 bits and each run within .44; on 12 drawn layers within .18 and
        .25. Time, by unit times measured between the rounds of each layer: 5.6 % below to 12.4 %
        above for the 12 pairs; on a machine with much other load 15.4 % below to 9.5 % above, and
        30 % below to 47 % above for the drawn layers, nine of them within 15 %. By the shipped
        times, the least of many rounds, 2 to 57 % below.

    Source:
        Fan, Vercauteren: Somewhat Practical Fully Homomorphic Encryption, 2012. Albrecht et al.:
        Homomorphic Encryption Security Standard, 2018. Reagen et al.: Cheetah, 2021: schedules and
        parameters for each layer. Juvekar et al.: GAZELLE, 2018: packing.

    Example:
        options: {shape: {height: 16, width: 16, channels: 16, filters: 16, window: 3}}
        parameters:
          ring: [4096, 8192]
          data_primes: [2, 3]
          prime_bits: [36, 54]
          plain_bits: [22, 24]

    Raises:
        SpecError: an option is invalid, or no value of ``plain_bits`` holds the sums of a layer.
        PluginError: onnx is not installed.
    """

    user_options: ClassVar[Sequence[str]] = ("workload", "times")

    workload: object = None
    layer: str | None = None
    shape: Mapping[str, Any] | None = None
    security: int = 128
    times: str | None = None
    ring: int | None = None
    data_primes: int | None = None
    prime_bits: int | None = None
    plain_bits: int | None = None
    schedule: str | None = None
    weights_in_ntt: bool | None = None
    weight_bits: int | None = None
    activation_bits: int | None = None

    def __post_init__(self) -> None:
        self._layers = layers_from(self, self.workload, self.layer, self.shape)
        if self.security not in SECURE_BITS:
            hint = "128, 192 or 256"
            raise SpecError(f"security is {self.security!r}", hint=hint, part=["security"])
        self._secure = np.array([SECURE_BITS[self.security][ring] for ring in RINGS])
        self._times = read_unit_times(SHIPPED if self.times is None else Path(self.times))
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._readings.check(values)
        check_operands(self._layers, {**_lists(self._readings.settled), **values})

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the metrics of n designs, with the infeasible ones."""
        place = inputs["ring"].astype(np.int64)
        found = [self._compute_layer(table, place, inputs) for table in self._tables]
        columns = {name: np.sum([one[name] for one in found], axis=0) for name in METRICS_OF_LAYER}
        for name in ("noise_budget", "spare_plain_bits"):
            columns[name] = np.min([one[name] for one in found], axis=0)
        columns["key_size"] = np.max([one["key_size"] for one in found], axis=0)
        return Metrics(columns=columns, failures=self._failures(place, inputs, columns))

    @cached_property
    def _tables(self) -> tuple[_LayerTables, ...]:
        return tuple(_LayerTables.of(shape) for shape in self._layers)

    @cached_property
    def _seconds(self) -> Floats:
        """Seconds of each operation, (rings, data primes + 1, operations); NaN where unmeasured."""
        table = np.full((len(RINGS), _MOST_PRIMES + 1, len(OPERATIONS)), np.nan)
        for (ring, primes), seconds in self._times.seconds.items():
            if primes <= _MOST_PRIMES:
                table[RINGS.index(ring), primes] = seconds
        return table

    def _compute_layer(
        self, tables: _LayerTables, place: Ints, inputs: Mapping[str, Floats]
    ) -> dict[str, Floats]:
        counts = tables.counts[:, place, inputs["schedule"].astype(np.int64)]
        count = dict(zip(_COUNTED, counts, strict=True))
        ring, primes = np.array(RINGS, dtype=np.float64)[place], inputs["data_primes"]
        in_ntt = inputs["weights_in_ntt"] != 0
        modulus = _plain_log2()[place, inputs["plain_bits"].astype(np.int64)]
        # Where there is no modulus, the nominal width is a stand-in: a fault hides the row.
        plain_log2 = np.where(np.isinf(modulus), inputs["plain_bits"], modulus)
        ciphertext = 2.0 * ring * primes * inputs["prime_bits"] / 8.0
        needed = needed_bits(tables.shape, inputs["weight_bits"], inputs["activation_bits"])
        return {
            "latency": self._latency(count, place, primes.astype(np.int64), in_ntt),
            "traffic": (count["inputs"] + count["outputs"]) * ciphertext,
            "noise_budget": _budget(count, place, inputs, plain_log2),
            "key_size": count["keys"] * primes * 2.0 * ring * (primes + 1.0) * 8.0,
            "weight_size": count["products"] * ring * 8.0 * np.where(in_ntt, primes, 1.0),
            "rotations": count["rotations"],
            "products": count["products"],
            "additions": count["additions"],
            "spare_plain_bits": plain_log2 - needed,
        }

    def _latency(
        self, count: Mapping[str, Floats], place: Ints, primes: Ints, in_ntt: Mask
    ) -> Floats:
        seconds = dict(zip(OPERATIONS, self._seconds[place, primes].T, strict=True))
        always = count["rotations"] * seconds["rotation"] + count["additions"] * seconds["addition"]
        transformed = (
            count["products"] * seconds["product_ntt"]
            + count["to_ntt"] * seconds["to_ntt"]
            + count["from_ntt"] * seconds["from_ntt"]
        )
        return always + np.where(in_ntt, transformed, count["products"] * seconds["product"])

    def _failures(
        self, place: Ints, inputs: Mapping[str, Floats], columns: Mapping[str, Floats]
    ) -> dict[int, Failure]:
        """Return a fault for each infeasible design, with the first of the reasons that apply."""
        primes, bits, plain = (inputs[name] for name in ("data_primes", "prime_bits", "plain_bits"))
        total = (primes + 1) * bits
        secure = self._secure[place]
        modulus = _plain_log2()[place, plain.astype(np.int64)]
        weights, activations = inputs["weight_bits"], inputs["activation_bits"]
        budget = columns["noise_budget"]
        checks: tuple[tuple[Mask, tuple[Floats | Ints, ...], Callable[..., str]], ...] = (
            (total > secure, (total, secure), self._insecure),
            (np.isinf(modulus), (place, plain), _no_slots),
            (plain >= bits, (plain,), _wide_plaintext),
            (columns["spare_plain_bits"] < 0, (plain, weights, activations), self._unfit),
            (np.isnan(columns["latency"]), (place, primes), self._describe_unmeasured),
            (budget < _UNSURE_BITS, (np.floor(budget),), _noisy),
        )
        failures: dict[int, Failure] = {}
        free = np.ones(len(place), dtype=bool)
        for broken, words, reason in checks:
            rows = np.flatnonzero(broken & free)
            failures |= _equal_faults(rows, [word[rows] for word in words], reason)
            free[rows] = False
        return failures

    def _insecure(self, total: float, secure: float) -> str:
        return f"the modulus has {total:g} bits, and {self.security}-bit security allows {secure:g}"

    def _unfit(self, plain: float, weights: float, activations: float) -> str:
        worst = max(self._layers, key=lambda shape: shape.terms)
        needed = float(needed_bits(worst, weights, activations))
        return (
            f"plain_bits is {plain:g}, and sums of {worst.name} need {needed:.1f} bits: "
            f"{worst.terms} products of {weights:g} and {activations:g} bits"
        )

    def _describe_unmeasured(self, place: float, primes: float) -> str:
        ring = RINGS[int(place)]
        return f"{self._times.label} has no row of ring {ring} with {primes:g} data primes"


METRICS_OF_LAYER = ("latency", "traffic", "weight_size", "rotations", "products", "additions")
"""Metrics of a network that are sums over its layers."""

_COUNTED = tuple(OperationCounts.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LayerTables:
    """Operations of a layer by ring dimension and schedule.

    Attributes:
        shape: the layer.
        counts: fields of :class:`OperationCounts`, (fields, rings, schedules).
    """

    shape: LayerShape
    counts: Floats

    @staticmethod
    def of(shape: LayerShape) -> _LayerTables:
        packings = [Packing(shape=shape, ring=ring) for ring in RINGS]
        found = [[packing.counts(schedule) for schedule in SCHEDULES] for packing in packings]
        counts = [
            [[float(getattr(one, name)) for one in row] for row in found] for name in _COUNTED
        ]
        return _LayerTables(shape=shape, counts=np.array(counts))


def _budget(
    count: Mapping[str, Floats], place: Ints, inputs: Mapping[str, Floats], plain_log2: Floats
) -> Floats:
    """Return the expected bits of noise budget of the worst output of a layer."""
    primes, ring = inputs["data_primes"], np.array(RINGS, dtype=np.float64)[place]
    factor = product_factor(ring, plain_log2)
    alike, walk = switch_variance(ring, primes)
    before = count["switched_before"]
    switched = before * factor + count["switched_after"]
    variance = count["summed"] * fresh_variance(ring) * factor + switched * (alike + walk)
    # Each of the walks that are rotated once more is permuted in a way of its own: the number of
    # parts is that of equal ones with the same sum of squared shares.
    turned = count["turned_before"] / np.maximum(before, 1.0)
    parts = count["parts"] / ((1.0 - turned) ** 2 + turned**2 / _MOST_PARTS)
    largest = largest_noise(place, before * factor * walk / variance, parts, count["outputs"])
    return (
        primes * inputs["prime_bits"] - plain_log2 - 1.0
        - 0.5 * np.log2(variance) - largest
    )  # fmt: skip


_MOST_PARTS = 16
"""Number of differently rotated parts from which on more parts do not increase the noise."""


def _lists(settled: Mapping[str, Value]) -> dict[str, Sequence[Value]]:
    return {name: (value,) for name, value in settled.items()}


def _no_slots(place: float, plain: float) -> str:
    ring = RINGS[int(place)]
    least = next(bits for bits in range(2, _MOST_PLAIN_BITS) if plain_modulus(ring, bits))
    return f"no prime of {plain:g} bits has slots in ring {ring}: {least} bits or more"


def _wide_plaintext(plain: float) -> str:
    return f"plain_bits is {plain:g}, and each prime of the ciphertext must be wider"


def _noisy(budget: float) -> str:
    return f"noise leaves a budget of {budget:g} bits"


def _equal_faults(
    rows: Ints, words: Sequence[Floats | Ints], reason: Callable[..., str]
) -> dict[int, Failure]:
    """Return a fault for each design of ``rows``; designs with equal ``words`` share one object."""
    if not len(rows):
        return {}
    code = np.zeros(len(rows), dtype=np.int64)
    for word in words:
        values, own = np.unique(word, return_inverse=True)
        code = code * len(values) + own
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    made = [
        Failure(kind="infeasible", reason=reason(*(float(word[one]) for word in words)))
        for one in first.tolist()
    ]
    return dict(zip(rows.tolist(), map(made.__getitem__, inverse.tolist()), strict=True))


@cache
def _plain_log2() -> Floats:
    """Return log2 of the plaintext modulus, (rings, bits); -inf where no such prime exists."""
    moduli = [[plain_modulus(ring, bits) for bits in range(_MOST_PLAIN_BITS + 1)] for ring in RINGS]
    with np.errstate(divide="ignore"):
        return np.log2(np.array(moduli, dtype=np.float64))
