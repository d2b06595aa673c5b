"""The knobs of the accelerator: their names, units and defaults, and how a batch sets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Array, Floats, Value
from dse.errors import EvaluationError, SpecError, nearest
from dse.units import converted, quantity
from dse_evaluators.accelerators.systolic.codes import FORMAT_CODES
from dse_evaluators.accelerators.systolic.compressed import N_M_CODES
from dse_evaluators.accelerators.systolic.cores import SPLITS
from dse_evaluators.accelerators.systolic.schedule import FLOWS
from dse_evaluators.accelerators.technology import NOMINAL_V


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One knob; without a default it must be set, and with ``words`` it takes one of them."""

    unit: str = ""
    default: Value | None = None
    words: Mapping[Value, float] | None = None


FLOW_CODES: Mapping[Value, float] = {flow: float(code) for code, flow in enumerate(FLOWS)}
SPLIT_CODES: Mapping[Value, float] = {split: float(code) for code, split in enumerate(SPLITS)}
YES: Mapping[Value, float] = {False: 0.0, True: 1.0}

# Defaults: the dataflow, clock, words and width of sums of N. Jouppi et al., In-Datacenter
# Performance Analysis of a Tensor Processing Unit, ISCA 2017, section 2; one channel of DDR3-1600
# (JESD79-3: 64 bits at 1600 MT/s); buffers of SCALE-Sim's reference runs.
KNOBS: Mapping[str, Knob] = {
    "rows": Knob(),
    "cols": Knob(),
    "dataflow": Knob(default="ws", words=FLOW_CODES),
    "ifmap_sram": Knob(unit="B", default=65536.0),
    "filter_sram": Knob(unit="B", default=65536.0),
    "ofmap_sram": Knob(unit="B", default=65536.0),
    "clock": Knob(unit="Hz", default=700e6),
    "dram_bandwidth": Knob(unit="B/s", default=12.8e9),
    "weight_format": Knob(default="int8", words=FORMAT_CODES),
    "activation_format": Knob(default="int8", words=FORMAT_CODES),
    "filter_keep": Knob(default=1.0),
    "sparsity": Knob(default=0.0),
    "batch": Knob(default=1.0),
    "voltage": Knob(unit="V", default=NOMINAL_V),
    "resident": Knob(default=False, words=YES),
    "packed": Knob(default=True, words=YES),
    "cores": Knob(default=1.0),
    "split": Knob(default="n", words=SPLIT_CODES),
    "n_m": Knob(default="dense", words=N_M_CODES),
    "accumulator_bits": Knob(default=32.0),
    "accumulator_sram": Knob(unit="B", default=0.0),
    "overlap": Knob(default=False, words=YES),
    "vector_lanes": Knob(default=0.0),
    "vector_ops": Knob(default=1.0),
    "vector_hidden": Knob(default=True, words=YES),
}

SCALESIM_KNOBS = frozenset(
    {"rows", "cols", "dataflow", "ifmap_sram", "filter_sram", "ofmap_sram", "clock", "filter_keep"}
)
"""What moves something where words are bytes and memory never stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The knobs of n designs, numbers in SI and words as codes; (1,) where all agree."""

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

    def take(self, rows: Array) -> Settings:
        """The settings of these rows."""
        return Settings(
            **{
                name: column if len(column) == 1 else column[rows]
                for name, column in self.columns().items()
            }
        )

    def columns(self) -> dict[str, Floats]:
        """The columns by knob."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def settings(batch: Batch, fixed: Mapping[str, Value]) -> Settings:
    """What a batch sets the knobs to, where an option has not fixed them.

    Raises:
        EvaluationError: a word is none that the knob takes.
    """
    return Settings(**{name: setting(name, batch, fixed) for name in KNOBS})


def setting(name: str, batch: Batch, fixed: Mapping[str, Value]) -> Floats:
    """What a batch sets one knob to, (n,), or (1,) where all agree.

    Raises:
        EvaluationError: a word is none that the knob takes.
    """
    return np.array([code(name, fixed[name])]) if name in fixed else _column(name, batch)


def code(name: str, value: Value) -> float:
    """A setting as a number: a word's place among the words, a number itself.

    A text such as ``1.2 GHz`` is a number in the knob's unit.

    Raises:
        SpecError: it is no word that the knob takes, or no number.
    """
    words, unit = KNOBS[name].words, KNOBS[name].unit
    if words is not None:
        if value not in words:
            raise SpecError(
                f"{name} cannot be {value!r}", hint=nearest(str(value), map(str, words))
            )
        return words[value]
    told = quantity(value) if isinstance(value, str) and unit else None
    if told is not None:
        return converted(*told, unit)
    if isinstance(value, str):
        raise SpecError(f"{name} is a number, not {value!r}")
    return float(value)


def _column(name: str, batch: Batch) -> Floats:
    knob = KNOBS[name]
    if name not in batch:
        assert knob.default is not None
        return np.array([code(name, knob.default)])
    if knob.words is None:
        present = batch[name] if knob.default is None else batch.get(name, knob.default)
        return np.asarray(present, dtype=np.float64)
    try:
        default = code(name, knob.default) if knob.default is not None else np.nan
        return batch.lookup(name, knob.words, default)
    except KeyError as error:
        value = str(error.args[0])
        raise EvaluationError(
            f"{name} cannot be {value!r}", hint=nearest(value, map(str, knob.words))
        ) from error
