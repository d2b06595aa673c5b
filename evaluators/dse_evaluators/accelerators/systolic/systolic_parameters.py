"""Parameters of the systolic accelerator: names, units, defaults, and their values in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Array, Floats, Value
from dse_evaluators.accelerators.systolic.compressed import N_M_CODES
from dse_evaluators.accelerators.systolic.cores import SPLITS
from dse_evaluators.accelerators.systolic.schedule import FLOWS
from dse_evaluators.accelerators.technology import NOMINAL_V
from dse_evaluators.formats.elements import element_of
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.reading_table import (
    CheckedInput,
    ChoiceInput,
    Flag,
    NumberInput,
    Reading,
    Readings,
    number_of,
)
from dse_evaluators.readings import check_with_lookup

FLOW_CODES: Mapping[Value, float] = {flow: float(code) for code, flow in enumerate(FLOWS)}

SPLIT_CODES: Mapping[Value, float] = {split: float(code) for code, split in enumerate(SPLITS)}

_ANY = NumberInput(-inf, inf)  # out-of-range values make a design infeasible: see :mod:`.limits`

FORMAT_CODES: Mapping[Value, float] = {name: float(place) for place, name in enumerate(FORMATS)}

_BITS = np.array([row.bits for row in FORMATS.values()], dtype=np.float64)

# Defaults: dataflow, clock, number formats and accumulator width of N. Jouppi et al., In-Datacenter
# Performance Analysis of a Tensor Processing Unit, ISCA 2017, section 2; one channel of DDR3-1600
# (JESD79-3: 64 bits at 1600 MT/s); buffers of SCALE-Sim's reference runs.
KNOBS: Mapping[str, Reading] = {
    "rows": _ANY,
    "cols": _ANY,
    "dataflow": ChoiceInput(FLOW_CODES, "ws"),
    "ifmap_sram": _ANY._replace(unit="B", default=65536.0),
    "filter_sram": _ANY._replace(unit="B", default=65536.0),
    "ofmap_sram": _ANY._replace(unit="B", default=65536.0),
    "clock": _ANY._replace(unit="Hz", default=700e6),
    "dram_bandwidth": _ANY._replace(unit="B/s", default=12.8e9),
    "weight_format": ChoiceInput(FORMAT_CODES, "int8"),
    "activation_format": ChoiceInput(FORMAT_CODES, "int8"),
    "filter_keep": _ANY._replace(default=1.0),
    "sparsity": _ANY._replace(default=0.0),
    "batch": _ANY._replace(default=1.0),
    "voltage": _ANY._replace(unit="V", default=NOMINAL_V),
    "resident": Flag(default=False),
    "packed": Flag(default=True),
    "cores": _ANY._replace(default=1.0),
    "split": ChoiceInput(SPLIT_CODES, "n"),
    "n_m": ChoiceInput(N_M_CODES, "dense"),
    "accumulator_bits": _ANY._replace(default=32.0),
    "accumulator_sram": _ANY._replace(unit="B", default=0.0),
    "overlap": Flag(default=False),
    "vector_lanes": _ANY._replace(default=0.0),
    "vector_ops": _ANY._replace(default=1.0),
    "vector_hidden": Flag(default=True),
}

WEIGHT_FORMAT = "weight_format"

COMBINATION = "weight_format_combination"
"""Column with the index of each design's combination of formats, where layers differ."""

FORMAT_KNOBS = (WEIGHT_FORMAT, "activation_format")

_FORMAT_INPUT = CheckedInput(check_with_lookup(element_of), default="int8")

INPUTS: Mapping[str, Reading] = {**KNOBS, **dict.fromkeys(FORMAT_KNOBS, _FORMAT_INPUT)}
"""Inputs of the evaluator: :data:`KNOBS`, with any number format that has an element format."""

SCALESIM_KNOBS = frozenset(
    {"rows", "cols", "dataflow", "ifmap_sram", "filter_sram", "ofmap_sram", "clock", "filter_keep"}
)
"""Parameters that have an effect in SCALE-Sim mode: words are bytes and memory never stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Parameters of n designs, numbers in SI, categorical values as codes.

    Every field is (n,), or (1,) if all designs agree.
    """

    rows: Floats
    cols: Floats
    dataflow: Floats
    ifmap_sram: Floats
    filter_sram: Floats
    ofmap_sram: Floats
    clock: Floats
    dram_bandwidth: Floats
    weight_format: Floats
    activation_format: Floats
    filter_keep: Floats
    sparsity: Floats
    batch: Floats
    voltage: Floats
    resident: Floats
    packed: Floats
    cores: Floats
    split: Floats
    n_m: Floats
    accumulator_bits: Floats
    accumulator_sram: Floats
    overlap: Floats
    vector_lanes: Floats
    vector_ops: Floats
    vector_hidden: Floats
    combination: Floats = field(default_factory=lambda: np.zeros(1))
    """Index of the combination of weight formats, where layers differ; see ``layer_formats``."""

    def take(self, rows: Array) -> Settings:
        """Return the parameters of a subset of the designs, given by their indices ``rows``."""
        return Settings(
            **{
                name: column if len(column) == 1 else column[rows]
                for name, column in self.columns().items()
            }
        )

    def columns(self) -> dict[str, Floats]:
        """Return the values of every parameter over the designs, by parameter name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def settings(batch: Batch, fixed: Mapping[str, Value]) -> Settings:
    """Return all parameters of n designs; those in ``fixed`` have one value for all designs.

    Raises:
        EvaluationError: a categorical value is not among those that its parameter takes.
    """
    found = Settings(**{name: setting(name, batch, fixed) for name in KNOBS})
    return replace(found, combination=batch[COMBINATION]) if COMBINATION in batch else found


def setting(name: str, batch: Batch, fixed: Mapping[str, Value]) -> Floats:
    """Return one parameter of a batch, (n,), or (1,) if it is fixed or left at its default.

    Raises:
        EvaluationError: a categorical value is not among those that the parameter takes.
    """
    usual = fixed.get(name, None if name in batch else KNOBS[name].default)
    if usual is not None:
        return np.array([number_of(KNOBS[name], usual)])
    return _READINGS.column(name, batch)


_READINGS = Readings(KNOBS)


def word_bits(format_codes: Floats) -> Floats:
    """Return the bits per number of number formats, given by their codes."""
    return _BITS[format_codes.astype(np.intp)]
