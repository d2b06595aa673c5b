"""Number formats of weights that differ between the layers of a network on one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.values import Ints
from dse.errors import EvaluationError, SpecError
from dse_evaluators.accelerators.circuits import mac_areas_mm2
from dse_evaluators.accelerators.systolic.scaled_words import ScaleBits, weight_scale_bits
from dse_evaluators.accelerators.systolic.systolic_parameters import (
    COMBINATION,
    FORMAT_CODES,
    WEIGHT_FORMAT,
)
from dse_evaluators.formats.elements import element_of
from dse_evaluators.formats.words import NumberFormat
from dse_evaluators.workloads.layers import Layer

_KEPT = "fp32"
"""Format of weighted layers that no entry of the list belongs to."""


def has_layer_formats(batch: Batch) -> bool:
    """Return whether the designs have a list of weight formats, one for each layer."""
    return any(name.startswith(f"{WEIGHT_FORMAT}[") for name in batch.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCombinations:
    """Distinct combinations of per-layer weight formats in a batch of designs.

    Attributes:
        texts: the format of each entry of the list, by combination.
        place: index of each design's combination, (n,).
    """

    texts: Sequence[tuple[str, ...]]
    place: Ints

    @staticmethod
    def of(batch: Batch, entries: int) -> FormatCombinations:
        """Return the combinations of a batch whose list has this number of entries.

        Raises:
            EvaluationError: the list has another number of entries.
        """
        found = sum(name.startswith(f"{WEIGHT_FORMAT}[") for name in batch.names)
        if found != entries:
            problem = f"{WEIGHT_FORMAT} has {found} entries"
            raise EvaluationError(problem, hint=f"each: {entries}, one for each layer with weights")
        columns = [batch[f"{WEIGHT_FORMAT}[{place}]"].tolist() for place in range(entries)]
        rows = list(zip(*columns, strict=True))
        own = {one: place for place, one in enumerate(dict.fromkeys(rows))}
        return FormatCombinations(
            texts=list(own), place=np.array([own[row] for row in rows], dtype=np.int64)
        )

    def scales(
        self, layers: Sequence[Layer], places: Sequence[int], activation: str
    ) -> tuple[ScaleBits, Mapping[int, str]]:
        """Return the scale bits of each layer's weights, and why combinations are impossible.

        Args:
            layers: the layers.
            places: index of each layer's entry of the list; -1 for none.
            activation: format of the activations.

        Returns:
            The bits, (l, c) for c combinations, and for each combination with a format whose blocks
            do not fit a layer, the reason by its index.

        Raises:
            EvaluationError: the blocks of the activations' format do not fit a layer.
        """
        rows, failures = [], dict[int, str]()
        for layer, place in zip(layers, places, strict=True):
            texts = [_KEPT if place < 0 else one[place] for one in self.texts]
            bits = {text: _weight_bits(layer, text) for text in dict.fromkeys(texts)}
            rows.append([bits[text][:2] for text in texts])
            for index, text in enumerate(texts):
                if bits[text][2]:
                    failures.setdefault(index, bits[text][2])
        both = np.array(rows)  # (l, c, 2)
        inputs = ScaleBits.of(layers, "int8", activation)
        of_inputs = np.zeros((len(layers), 1)) if inputs is None else inputs.input
        return ScaleBits(weight=both[:, :, 1], input=of_inputs, element=both[:, :, 0]), failures

    def widest(
        self, layers: Sequence[Layer], places: Sequence[int], activation: str, node_nm: float
    ) -> list[str]:
        """Return the format with the largest multiplier in each combination of layer formats."""
        areas = mac_areas_mm2(node_nm)[:, int(FORMAT_CODES[_element(activation).name])]
        used = {place for layer, place in zip(layers, places, strict=True) if layer.weighted}
        found = []
        for one in self.texts:
            names = {_element(_KEPT if place < 0 else one[place]).name for place in used}
            found.append(max(sorted(names), key=lambda name: areas[int(FORMAT_CODES[name])]))
        return found

    def columns(self, widest: Sequence[str]) -> Mapping[str, Column]:
        """Return the columns that replace the list: multiplier format and combination index."""
        domain = tuple(dict.fromkeys(widest))
        codes = np.array([domain.index(one) for one in widest], dtype=np.int64)[self.place]
        return {
            WEIGHT_FORMAT: Column.coded(domain, codes),
            COMBINATION: Column.coded(tuple(map(float, range(len(widest)))), self.place),
        }


def _weight_bits(layer: Layer, text: str) -> tuple[float, float, str]:
    """Return the bits of a weight without and of scales, and why the format does not fit."""
    element = float(_element(text).bits)
    try:
        return element, weight_scale_bits(layer, text), ""
    except EvaluationError as error:
        return element, 0.0, error.problem


def _element(text: str) -> NumberFormat:
    """Return a number format's element.

    Raises:
        EvaluationError: no multiplier reads the format.
    """
    try:
        return element_of(text)
    except SpecError as error:
        raise EvaluationError(f"{WEIGHT_FORMAT} cannot be {text!r}", hint=error.hint) from error
