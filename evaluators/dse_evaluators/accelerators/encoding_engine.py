"""Evaluator ``accelerators.encoding-engine``: engines beside a GPU for neural graphics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Flag, NumberInput, Reading

_SECTOR_BYTES = 32
"""Bytes that a look-up in a table outside of the engines moves: a sector of a GPU's memory."""

_MOST_LEVELS = 32

_STAGES = ("encoding", "mlp", "memory", "rest")

_INPUTS: Mapping[str, Reading] = {
    "samples": NumberInput(1, 1e15),
    "dimensions": NumberInput(1, 4, default=3, whole=True),
    "levels": NumberInput(1, _MOST_LEVELS, default=16, whole=True),
    "features": NumberInput(1, 32, default=2, whole=True),
    "table_entries": NumberInput(1, 1e10, default=2.0**19),
    "coarsest": NumberInput(1, 1e5, default=16),
    "finest": NumberInput(1, 1e6, default=2048),
    "bytes_per_feature": NumberInput(0.125, 8, "B", default=2),
    "hidden_layers": NumberInput(1, 64, default=2, whole=True),
    "width": NumberInput(1, 65536, default=64, whole=True),
    "outputs": NumberInput(1, 65536, default=4, whole=True),
    "processors": NumberInput(1, 1e6, whole=True),
    "engines": NumberInput(1, _MOST_LEVELS, default=16, whole=True),
    "banks": NumberInput(1, 256, default=8, whole=True),
    "sram": NumberInput(0, 1e12, "B"),
    "mac_rows": NumberInput(1, 65536, default=64, whole=True),
    "mac_columns": NumberInput(1, 65536, default=64, whole=True),
    "clock": NumberInput(1, 1e13, "Hz"),
    "efficiency": NumberInput(1e-6, 1, default=1),
    "bandwidth": NumberInput(1, 1e18, "B/s"),
    "kernel_time": NumberInput(1e-12, 1e6, "s"),
    "rest_time": NumberInput(0, 1e6, "s"),
    "fusion": NumberInput(1, 1e6, default=1),
    "overlapped": Flag(default=True),
}

_METRICS = (
    Metric(name="frame_time", unit="s", goal="minimize"),
    Metric(name="frames_per_second", unit="Hz", goal="maximize"),
    Metric(name="speedup", goal="maximize"),
    Metric(name="bottleneck", words=_STAGES),
    Metric(name="encoding_time", unit="s", goal="minimize"),
    Metric(name="mlp_time", unit="s", goal="minimize"),
    Metric(name="memory_time", unit="s", goal="minimize"),
    Metric(name="remaining_time", unit="s", goal="minimize"),
    Metric(name="table_size", unit="B", goal="minimize"),
    Metric(name="levels_outside", goal="minimize"),
    Metric(name="engine_memory", unit="B", goal="minimize"),
    Metric(name="macs", goal="minimize"),
)


class EncodingEngine(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Time of a frame on processors for grid encodings and small MLPs, beside a GPU.

    A sample of a neural-graphics application reads the 2^d corners of its cell in the grid of each
    level, and an MLP turns the interpolated features into colour or distance. A processor has
    ``engines``, each of which encodes one level at a time from ``banks`` of its own memory, and an
    array of multipliers for the MLP; engines and array work on different samples at once. A grid of
    at most ``table_entries`` corners is dense, a larger grid is hashed into that many entries.
    Levels whose table exceeds ``sram`` are read from the GPU's memory, which all processors share.
    The GPU runs the other kernels of a frame.

    Inputs:
        samples: samples of a frame: pixels times the samples on a ray.
        dimensions: coordinates of a sample.
        levels: number of grids.
        features: numbers at each corner.
        table_entries: most entries of a level's table.
        coarsest: cells along a side of the first level's grid.
        finest: cells along a side of the last level's grid; the levels between grow geometrically.
        bytes_per_feature: bytes of a stored number.
        hidden_layers: hidden layers of the MLP.
        width: neurons of a hidden layer.
        outputs: outputs of the MLP.
        processors: number of processors.
        engines: encoding engines of a processor.
        banks: corners that an engine reads in a cycle.
        sram: memory of an engine.
        mac_rows: rows of the array of multipliers, for the inputs of a layer.
        mac_columns: columns of the array of multipliers, for the outputs of a layer.
        clock: clock of the processors.
        efficiency: share of the cycles in which both kinds of engine work.
        bandwidth: bandwidth of the GPU's memory.
        kernel_time: time of encoding and MLP for a frame on the GPU alone.
        rest_time: time of the other kernels of a frame on the GPU.
        fusion: speed-up of the other kernels of a frame by their fusion.
        overlapped: whether the GPU runs the other kernels of a frame during the encoding of the
            next frame.

    Limits:
        Area, power and energy are not modelled. Corners are spread evenly over the banks, and no
        sector is read twice from a cache. Weights of the MLP are loaded once. Entries are counted
        as in instant neural graphics primitives, whose tables have one entry for each corner.

    Error:
        Against the mean speedups of NGPC with 16, 32 and 64 processors, ``efficiency`` fitted with
        8: +20, +9 and -8 % overlapped, -10, -27 and -26 % one after the other. In both
        cases the time of the fused other kernels is the bound. See
        ``studies/reproductions/neural_graphics.yaml``.

    Source:
        Mubarik et al.: Hardware Acceleration of Neural Graphics, 2023 (processors of encoding
        engines and an MLP engine, fused rest); Müller et al.: Instant Neural Graphics Primitives,
        2022, section 3 (grids, their growth, and tables).

    Example:
        options:
          samples: 1.0e+8
          clock: 1 GHz
          bandwidth: 900 GB/s
          kernel_time: 200 ms
          rest_time: 80 ms
          fusion: 9.94
        parameters: {processors: [8, 64], sram: [1.0e+6, 4.0e+6], table_entries: [65536, 524288]}
        objectives: {frame_time: minimize, engine_memory: minimize}

    Raises:
        SpecError: the value of an option is invalid.
    """

    samples: float | None = None
    dimensions: int | None = None
    levels: int | None = None
    features: int | None = None
    table_entries: float | None = None
    coarsest: float | None = None
    finest: float | None = None
    bytes_per_feature: float | str | None = None
    hidden_layers: int | None = None
    width: int | None = None
    outputs: int | None = None
    processors: int | None = None
    engines: int | None = None
    banks: int | None = None
    sram: float | str | None = None
    mac_rows: int | None = None
    mac_columns: int | None = None
    clock: float | str | None = None
    efficiency: float | None = None
    bandwidth: float | str | None = None
    kernel_time: float | str | None = None
    rest_time: float | str | None = None
    fusion: float | None = None
    overlapped: bool | None = None

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics:
        """Return the metrics of n designs, (n,); ``finest`` below ``coarsest`` is infeasible."""
        table_bytes = _size_tables(inputs)  # (levels, n)
        outside = (table_bytes > inputs["sram"]).sum(axis=0)
        inside = inputs["levels"] - outside
        corners = 2 ** inputs["dimensions"]
        turns = np.ceil(inside / inputs["engines"])
        steps = inputs["clock"] * inputs["efficiency"] * inputs["processors"] / inputs["samples"]
        read = inputs["samples"] * outside * corners * _SECTOR_BYTES
        times = {
            "encoding_time": turns * np.ceil(corners / inputs["banks"]) / steps,
            "mlp_time": _count_mlp_cycles(inputs) / steps,
            "memory_time": read / inputs["bandwidth"],
            "remaining_time": inputs["rest_time"] / inputs["fusion"],
        }
        stages = np.stack([*times.values()])  # (4, n), in the order of _STAGES
        kernels_s, rest_s = stages[:-1].max(axis=0), stages[-1]
        frame_s = np.where(
            inputs["overlapped"] > 0, np.maximum(kernels_s, rest_s), kernels_s + rest_s
        )
        columns = {
            "frame_time": frame_s,
            "frames_per_second": 1 / frame_s,
            "speedup": (inputs["kernel_time"] + inputs["rest_time"]) / frame_s,
            "bottleneck": stages.argmax(axis=0).astype(float),
            **times,
            "table_size": table_bytes.sum(axis=0),
            "levels_outside": outside.astype(float),
            "engine_memory": inputs["processors"] * inputs["engines"] * inputs["sram"],
            "macs": inputs["processors"] * inputs["mac_rows"] * inputs["mac_columns"],
        }
        failures = infeasible(
            inputs["finest"] < inputs["coarsest"], lambda _: "the finest grid is the coarsest one"
        )
        return Metrics(columns=columns, failures=failures)


def _size_tables(inputs: Mapping[str, Floats]) -> Floats:
    """Return the bytes of each level's table, (levels, n); 0 for levels that a design lacks.

    Source:
        Müller et al., 2022, eq. 2 and 3: N_l = floor(N_min b^l), with b from the finest level.
    """
    level = np.arange(_MOST_LEVELS)[:, None]
    ends = np.log(inputs["finest"] / inputs["coarsest"]) / np.maximum(inputs["levels"] - 1, 1)
    cells = np.floor(inputs["coarsest"] * np.exp(level * ends) * (1 + 1e-12))
    entries = np.minimum((cells + 1) ** inputs["dimensions"], inputs["table_entries"])
    stored = entries * inputs["features"] * inputs["bytes_per_feature"]
    return np.where(level < inputs["levels"], stored, 0.0)


def _count_mlp_cycles(inputs: Mapping[str, Floats]) -> Floats:
    """Return the cycles of a sample in the MLP, (n,): one for each tile of a layer's weights."""
    width, rows, columns = inputs["width"], inputs["mac_rows"], inputs["mac_columns"]
    encoded = inputs["levels"] * inputs["features"]
    inward, across = np.ceil(width / rows), np.ceil(width / columns)
    first = np.ceil(encoded / rows) * across
    last = inward * np.ceil(inputs["outputs"] / columns)
    return first + (inputs["hidden_layers"] - 1) * inward * across + last
