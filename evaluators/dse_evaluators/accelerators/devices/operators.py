"""Operators of a network by class, and their times on a device, with plain or fused attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.accelerators.devices.calibrations import DeviceCalibration
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.gpu_layers import Kernels, kernels_in_order
from dse_evaluators.accelerators.devices.recipes import GemmRecipe
from dse_evaluators.accelerators.devices.roofline import KernelWork, total_s
from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import Layer

CLASSES = ("convolution", "linear", "attention", "elementwise")
"""Classes of operators; elementwise ones are norms, activations and additions."""

_CONVOLUTION, _LINEAR, _ATTENTION = range(3)

TEMPORAL = "temporal"
"""Text in the names of layers along the frames of a video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Distinct operators of a network (l of them): a product, or both products of an attention.

    Attributes:
        first: the products, or the scores of attention.
        second: the weighted sums of values, of attention alone; m of them.
        fused: places of the operators that have a second product, (m,).
        repeats: number of equal operators, (l, 1).
        kinds: classes, as indices of CLASSES, (l,).
        temporal: whether attention is along the frames of a video, (l,).
        queries: rows of queries of a head, (m,).
        order: the operators in the order of the network, as indices, (k,).
    """

    first: Kernels
    second: Kernels | None
    fused: Ints
    repeats: Floats
    kinds: Ints
    temporal: Mask
    queries: Floats
    order: Ints

    @property
    def weighted(self) -> Mask:
        """Whether the operators have weights, (l,)."""
        return np.asarray(self.kinds != _ATTENTION)


def operators_of(table: LayerTable) -> Operators:
    """Return the distinct operators of a layer table.

    Args:
        table: the layer table; two products without weights in a row, of which the second has as
            deep dot products as the first has columns, are one attention.
    """
    every = list(_pair(table.layers))
    counted = Counter(every)
    places = {operator: place for place, operator in enumerate(counted)}
    pairs = [layers for layers, _ in counted]
    fused = np.flatnonzero([len(layers) == 2 for layers in pairs])
    seconds = [layers[1] for layers in pairs if len(layers) == 2]
    return Operators(
        first=kernels_in_order([layers[0] for layers in pairs]),
        second=kernels_in_order(seconds) if seconds else None,
        fused=fused,
        repeats=np.array(list(counted.values()), dtype=float)[:, None],
        kinds=np.array([_class_of(layers[0]) for layers in pairs]),
        temporal=np.array([temporal for _, temporal in counted]),
        queries=np.array([pairs[place][0].height for place in fused.tolist()], dtype=float),
        order=np.array([places[operator] for operator in every]),
    )


def _pair(layers: Sequence[Layer]) -> Iterator[tuple[tuple[Layer, ...], bool]]:
    """Yield each operator, and whether it is attention over the frames of a video.

    An operator is one layer or, for attention, the two products of scores and values; names of
    layers are removed, so that equal operators compare equal.
    """
    place = 0
    while place < len(layers):
        one, following = layers[place], layers[place + 1 : place + 2]
        pair = (one, *(other for other in following if _is_attention(one, other)))
        temporal = not one.weighted and TEMPORAL in one.name
        yield tuple(replace(each, name="") for each in pair), temporal
        place += len(pair)


def _is_attention(scores: Layer, mix: Layer) -> bool:
    same = (scores.height, scores.copies) == (mix.height, mix.copies)
    return not scores.weighted and not mix.weighted and same and scores.filters == mix.channels


def _class_of(layer: Layer) -> int:
    if not layer.weighted:
        return _ATTENTION
    is_window = layer.filter_height * layer.filter_width > 1
    return _CONVOLUTION if is_window or layer.width > 1 else _LINEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRun:
    """Conditions of n runs; each field is (n,)."""

    batch: Floats
    convolution_passes: Floats
    """Elementwise kernels for each convolution; each reads and writes its result."""
    linear_passes: Floats
    """Elementwise kernels for each linear layer."""
    temporal_bandwidth: Floats
    """Share of the reached bandwidth that attention along the frames reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTimes:
    """Times of n runs: of each class [s], (4, n), and attention along frames, (n,)."""

    by_class: Floats
    temporal_s: Floats

    @property
    def total_s(self) -> Floats:
        """Time of the network [s], (n,)."""
        return np.asarray(self.by_class.sum(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDevice:
    """Device in a number format, with its measured constants."""

    device: Device
    recipe: GemmRecipe
    calibration: DeviceCalibration

    def took_s(self, work: KernelWork) -> Floats:
        """Return the time of kernels [s] under the roofline."""
        return total_s(
            work,
            self.calibration.constants,
            flops_per_s=self.device.flops_per_s[self.recipe.rate],
            bytes_per_s=self.device.dram_bytes_per_s,
        )

    def passed_s(self, elements: Floats) -> Floats:
        """Return the time [s] of kernels that read and write elements of results once."""
        constants = self.calibration.constants
        moved = 2.0 * self.recipe.result_bytes * elements
        rate = constants.memory_share * self.device.dram_bytes_per_s
        return np.asarray(moved / rate + constants.launch_s)


def times_of(
    operators: Operators, on: OperatorDevice, runs: OperatorRun, *, fused: bool
) -> OperatorTimes:
    """Return the times of n runs of a network.

    Plain attention writes its scores, a softmax reads and writes them, and the second product reads
    them. Fused attention is one kernel, whose scores never leave the chip.

    Args:
        operators: the operators of the network.
        on: the device.
        runs: conditions of the runs.
        fused: whether attention is fused.

    Source:
        Dao et al.: FlashAttention, 2022, section 3.1: bytes of plain and of fused attention.
    """
    took = kernel_times(operators, on, runs, fused=fused) * operators.repeats
    passed = on.passed_s(operators.first.results(runs.batch)) * operators.repeats
    by_class = [took[operators.kinds == kind].sum(axis=0) for kind in range(3)]
    by_class.append(
        runs.convolution_passes * passed[operators.kinds == _CONVOLUTION].sum(axis=0)
        + runs.linear_passes * passed[operators.kinds == _LINEAR].sum(axis=0)
    )
    return OperatorTimes(
        by_class=np.stack(by_class), temporal_s=took[operators.temporal].sum(axis=0)
    )


def kernel_times(
    operators: Operators, on: OperatorDevice, runs: OperatorRun, *, fused: bool
) -> Floats:
    """Return the time [s] of each distinct operator for n runs, (l, n); as :func:`times_of`.

    Args:
        operators: the operators of the network.
        on: the device.
        runs: conditions of the runs.
        fused: whether attention is fused.
    """
    first = operators.first.work(on.recipe, runs.batch)
    took = on.took_s(_slow(first, operators.temporal, runs))  # (l, n)
    if operators.second is not None:
        rows = operators.fused
        second = operators.second.work(on.recipe, runs.batch)
        scores = operators.first.results(runs.batch)[rows]
        after = _fuse(_rows(first, rows), second, scores, on.recipe) if fused else second
        after_s = on.took_s(_slow(after, operators.temporal[rows], runs))
        took[rows] = after_s if fused else took[rows] + after_s + on.passed_s(scores)
    return took


def _slow(work: KernelWork, temporal: Mask, runs: OperatorRun) -> KernelWork:
    """Return the work with more bytes where attention along frames moves them slower."""
    share = np.where(temporal[:, None], runs.temporal_bandwidth, 1.0)
    return replace(work, moved_bytes=work.moved_bytes / share)


def _rows(work: KernelWork, rows: Ints) -> KernelWork:
    fields: Mapping[str, Floats] = {
        name: getattr(work, name)[rows] for name in ("flops", "moved_bytes", "chain", "converted")
    }
    return KernelWork(**fields)


def _fuse(first: KernelWork, second: KernelWork, scores: Floats, recipe: GemmRecipe) -> KernelWork:
    """Return the work of both products of attention in one kernel, without moving the scores."""
    moved = scores * (recipe.result_bytes + recipe.operand_bytes)
    whole = first.moved_bytes + second.moved_bytes
    return KernelWork(
        flops=first.flops + second.flops,
        moved_bytes=np.maximum(whole - moved, 0.0),
        chain=first.chain,
        converted=first.converted,
    )
