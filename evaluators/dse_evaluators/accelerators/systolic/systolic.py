"""Evaluator ``accelerators.systolic``: a workload on systolic arrays with buffers and DRAM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import EvaluationError, SpecError
from dse_evaluators.accelerators.circuits import leakage_w_per_mm2
from dse_evaluators.accelerators.systolic import full, scalesim_counts
from dse_evaluators.accelerators.systolic.cost import Technology, costs
from dse_evaluators.accelerators.systolic.layer_formats import (
    FormatCombinations,
    has_layer_formats,
)
from dse_evaluators.accelerators.systolic.limits import infeasible
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.stages import TIMED, WORDS, SystolicCostModel, Work
from dse_evaluators.accelerators.systolic.systolic_parameters import (
    FORMAT_KNOBS,
    INPUTS,
    KNOBS,
    SCALESIM_KNOBS,
    WEIGHT_FORMAT,
    setting,
    settings,
)
from dse_evaluators.accelerators.systolic.waiting import BOTTLENECKS
from dse_evaluators.accelerators.technology import DRAM_J_PER_BYTE, NODES_NM
from dse_evaluators.alike import fix_columns, gather_parts, groups, infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.elements import element_of
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.reading_table import Readings
from dse_evaluators.readings import look_up_row
from dse_evaluators.workloads.own.own_workload import declare_workload

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="compute_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="vector_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="dram_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="bottleneck", words=BOTTLENECKS),
    Metric(name="extrapolated", words=WORDS),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="power", unit="W", goal="minimize"),
    Metric(name="area", unit="mm2", goal="minimize"),
    Metric(name="cycles", goal="minimize"),
    Metric(name="stall_cycles", goal="minimize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="dram_traffic", unit="B", goal="minimize"),
    Metric(name="sram_traffic", unit="B", goal="minimize"),
    Metric(name="model_size", unit="B", goal="minimize"),
    Metric(name="mac_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="sram_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="vector_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="dram_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="leakage_energy", unit="J", goal="minimize", part_of="energy"),
)


class Systolic(DeclaredEvaluator, reads=INPUTS, provides=_METRICS, version="3"):
    """Time, traffic, energy and area of a workload on systolic arrays of rows x cols.

    Metrics are of one batch. ``mode: full`` is :mod:`.full`; ``mode: scalesim`` reproduces the
    counts of SCALE-Sim 3.0.0, and so reads neither formats, bandwidth, sparsity, cores nor batch.
    A parameter set by an option is not read from the design. ``packed`` is read only if some layer
    consists of several GEMMs.

    Number formats are those of ``compression.recipe``, such as ``int4:group=32,asym``: multipliers
    have the size of the element, ``int4``, and the bits of scales and zero points are stored and
    moved with the numbers. A bare name such as ``int8`` is an element without scales. Formats whose
    codes are neither integers nor floats, such as ``nf4``, are refused. ``weight_format`` may be a
    list with one format for each weight of the network, in the order of ``compression.recipe``:
    weights are stored and moved in their own format, and the multipliers have the size of the
    largest one.

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours: a path,
            ``{python: net.py:make, input: [3, 32, 32]}``, or a module; see ``docs/workloads.md``.
        node_nm: technology node in nm, 22 to 90: the range of the SRAM fit.
        dram: a key of ``technology.DRAM_J_PER_BYTE``, which sets the energy of DRAM traffic.
        leakage_w_per_mm2: leakage of the chip in W/mm2. The default is that of CACTI's default SRAM
            cells, which is high: where the chip stalls for long, leakage dominates the energy.
        ifmap_sram: buffer size in bytes or as text with a unit, like the other ``*_sram`` options.
        clock: clock of the chip in Hz, or as text with a unit.
        dram_bandwidth: bandwidth of DRAM in B/s, or as text with a unit.
        voltage: supply voltage in V, or as text with a unit.
        accumulator_bits: width of partial sums in bits.

    Limits:
        Not modelled: registers, control, wiring and clock tree of the array; the kinds of vector
        operations (only their number), among them the multiplication by scales (``hardware.mac``
        has it); whether the circuits reach the clock at the voltage, which the space can state as a
        rule. Partial sums that overflow the output buffer spill to DRAM, without row blocking:
        large weight- and input-stationary layers look worse than with a good compiler. Nothing
        limits the clock, so a high clock usually wins. Cores fetch shared operands separately.
        Switching energy is proportional to the square of the voltage, leakage power to the voltage.
        MAC areas and the 7 nm column are known from secondary sources only.

    Error:
        ``mode: scalesim`` agrees with SCALE-Sim 3.0.0 on 243 of 243 reference runs, 402 further
        ones and 200 random ones. SRAM fit: median 7.9 % (read energy), 5.6 % (write energy), 4.6 %
        (area); 9.1, 6.5 and 5.5 % on held-out memories (``benchmarks/sram_fit.py``). ``mode: full``
        is not validated against silicon. Details: ``docs/systolic.md``.

    Source:
        Samajdar et al., 2020 (cycles); Horowitz, 2014; Dally, 2015; Jouppi et al., 2017 and 2021;
        CACTI 7; Chandrakasan et al., 1992 (voltage).

    Example:
        options: {workload: digits-cnn, node_nm: 22}
        parameters: {rows: [8, 16], cols: [16, 32], dataflow: [ws, os], ofmap_sram: [32768, 65536]}

    Raises:
        SpecError: an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "digits-cnn"
    mode: Literal["full", "scalesim"] = "full"
    node_nm: float = 45.0
    dram: str = "lpddr2"
    leakage_w_per_mm2: float | None = None
    rows: float | None = None
    cols: float | None = None
    dataflow: str | None = None
    ifmap_sram: float | str | None = None
    filter_sram: float | str | None = None
    ofmap_sram: float | str | None = None
    clock: float | str | None = None
    dram_bandwidth: float | str | None = None
    weight_format: str | None = None
    activation_format: str | None = None
    filter_keep: float | None = None
    sparsity: float | None = None
    batch: float | None = None
    voltage: float | str | None = None
    resident: bool | None = None
    packed: bool | None = None
    cores: float | None = None
    split: str | None = None
    n_m: str | None = None
    accumulator_bits: float | None = None
    accumulator_sram: float | str | None = None
    overlap: bool | None = None
    vector_lanes: float | None = None
    vector_ops: float | None = None
    vector_hidden: bool | None = None

    def __post_init__(self) -> None:
        self._workload = declare_workload(self, self.workload)
        look_up_row("mode", self.mode, _WORK)
        if not NODES_NM[0] <= self.node_nm <= NODES_NM[1]:
            raise SpecError(f"node_nm is {self.node_nm:g}", hint="22 to 90 are modelled")
        known = SCALESIM_KNOBS if self.mode == "scalesim" else frozenset(KNOBS)
        is_known = self._workload.is_known
        alone = {"packed": True} if is_known and not self._network.repeated else {}
        self.declare(Readings(INPUTS).fixed(alone | self._fixed_knobs(known)))
        self._fixed = self._readings.settled
        self._technology = Technology(
            node_nm=self.node_nm,
            dram_j_per_byte=look_up_row("dram", self.dram, DRAM_J_PER_BYTE),
            leakage_w_per_mm2=leakage_w_per_mm2(self.node_nm)
            if self.leakage_w_per_mm2 is None
            else self.leakage_w_per_mm2,
        )

    @cached_property
    def _network(self) -> UniqueLayers:
        return UniqueLayers(self._workload.layers)

    @cached_property
    def _account(self) -> SystolicCostModel:
        return SystolicCostModel(
            work=_WORK[self.mode],
            network=self._network,
            technology=self._technology,
            fixed=self._fixed,
        )

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute time, energy, area and traffic of n designs, with the infeasible ones."""
        if has_layer_formats(batch):
            return self._evaluate_layer_formats(batch)
        if not self._has_scales(batch):
            return self._evaluate_elements(batch, self._account)
        fixed = {name: self._fixed[name] for name in FORMAT_KNOBS if name in self._fixed}
        every = fix_columns(batch, fixed)
        parts = [
            (rows, self._evaluate_scaled(every.take(rows), *formats))
            for formats, rows in groups(every, dict.fromkeys(FORMAT_KNOBS, "int8"))
        ]
        return gather_parts(len(batch), self.provides, parts)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Names of the weights that a list of weight formats has entries for, in order.

        The list is empty where the names are not known before a study runs.
        """
        return self._workload.entries.names if self._workload.is_known else ()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        found = sum(name.startswith(f"{WEIGHT_FORMAT}[") for name in values)
        if found and self.mode != "full":
            raise SpecError(f"{WEIGHT_FORMAT} has no meaning in the mode {self.mode!r}")
        if found and self._workload.is_known:
            found = len(self.weight_names)
        self._readings.check(values, {WEIGHT_FORMAT: found})

    def _evaluate_layer_formats(self, batch: Batch) -> Metrics:
        """Compute the metrics of n designs whose layers have weight formats of their own."""
        entries = self._workload.entries
        combinations = FormatCombinations.of(batch, len(entries.names))
        network = UniqueLayers(self._workload.layers, entries.places)
        formats = {name: self._fixed[name] for name in FORMAT_KNOBS if name in self._fixed}
        every = fix_columns(batch, formats)
        parts = []
        for (activation,), rows in groups(every, {FORMAT_KNOBS[1]: "int8"}):
            of_layers = network.layers, network.places, activation
            try:
                scales, reasons = combinations.scales(*of_layers)
            except EvaluationError as error:
                failures = infeasible_rows([error.problem] * len(rows))
                parts.append((rows, Metrics(columns={}, failures=failures)))
                continue
            widest = combinations.widest(*of_layers, self.node_nm)
            some = every.with_columns(combinations.columns(widest)).take(rows)
            element = {FORMAT_KNOBS[1]: _element(FORMAT_KNOBS[1], activation)}
            account = replace(
                self._account,
                network=network.with_scale_bits(scales),
                fixed={**self._fixed, **element},
            )
            found = self._evaluate_elements(some, account)
            unfit = [reasons.get(place) for place in combinations.place[rows].tolist()]
            failures = {**found.failures, **infeasible_rows(unfit)}
            parts.append((rows, Metrics(columns=found.columns, failures=failures)))
        return gather_parts(len(batch), self.provides, parts)

    def _has_scales(self, batch: Batch) -> bool:
        """Return whether a number format of a design is more than a bare element."""
        texts = {self._fixed[name] for name in FORMAT_KNOBS if name in self._fixed}
        for name in FORMAT_KNOBS:
            if name in batch and name not in self._fixed:
                column = batch.columns[name]
                texts |= set(column.domain or column.values.tolist())
        return not texts <= FORMATS.keys()

    def _evaluate_scaled(self, batch: Batch, *formats: str) -> Metrics:
        """Compute the metrics of n designs of one format of weights and one of activations."""
        elements = {
            name: _element(name, text) for name, text in zip(FORMAT_KNOBS, formats, strict=True)
        }
        try:
            network = self._account.network.with_scales(*formats)
        except EvaluationError as error:
            return Metrics(columns={}, failures=infeasible_rows([error.problem] * len(batch)))
        account = replace(self._account, network=network, fixed={**self._fixed, **elements})
        return self._evaluate_elements(batch, account)

    def _evaluate_elements(self, batch: Batch, account: SystolicCostModel) -> Metrics:
        """Compute the metrics of n designs whose number formats are elements."""
        among = batch.distinct(TIMED)
        some = batch.take(among.rows)
        knobs = settings(some, account.fixed)
        least = _SMALLEST_BUFFER_BYTES[self.mode]
        failures = infeasible(
            knobs,
            len(some),
            smallest_buffer_bytes=least,
            weighted=account.network.weighted,
        )
        possible = np.ones(len(some), dtype=bool)
        possible[list(failures)] = False
        if not possible.any():
            nothing = np.full(len(batch), np.nan)
            return Metrics(
                columns=dict.fromkeys(self.provides, nothing), failures=among.spread_rows(failures)
            )
        # Infeasible rows are computed as copies of the first feasible one; their faults hide them.
        stand_in = np.where(possible, np.arange(len(some)), np.argmax(possible))
        timed = account.timed(some.take(stand_in) if failures else some).spread(among)
        voltage = setting("voltage", batch, account.fixed)
        columns = timed.counts | costs(timed.charges, timed.latency_s, voltage, self._technology)
        return Metrics(
            columns={name: _of_all(values, len(batch)) for name, values in columns.items()},
            failures=among.spread_rows(failures),
        )

    def _fixed_knobs(self, known: frozenset[str]) -> dict[str, Value]:
        """Return the parameters fixed by options, and defaults of those the mode ignores."""
        chosen = {name: value for name in KNOBS if (value := getattr(self, name)) is not None}
        for name in chosen:
            if name not in known:
                raise SpecError(f"{name} has no meaning in the mode {self.mode!r}")
        unknown = {name: KNOBS[name].default for name in KNOBS if name not in known}
        return chosen | {name: value for name, value in unknown.items() if value is not None}


_WORK: Mapping[str, Work] = {"full": full.work, "scalesim": scalesim_counts.work}

_SMALLEST_BUFFER_BYTES = {"full": 0.0, "scalesim": scalesim_counts.SMALLEST_BUFFER_BYTES}


def _element(name: str, text: str) -> str:
    """Return the name of a number format's element.

    Raises:
        EvaluationError: no multiplier reads the format.
    """
    try:
        return element_of(text).name
    except SpecError as error:
        raise EvaluationError(f"{name} cannot be {text!r}", hint=error.hint) from error


def _of_all(values: Floats, size: int) -> Floats:
    return values if len(values) == size else np.full(size, values[0])
