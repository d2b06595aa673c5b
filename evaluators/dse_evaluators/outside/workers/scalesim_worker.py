"""Worker for SCALE-Sim, run through its three input files as its users do."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

_SHAPE = ("height", "width", "filter_height", "filter_width", "channels", "filters", "stride")

# Bandwidths are computed, not given (CALC). The layout of banks is not modelled in this mode, but
# SCALE-Sim requires it here, and for every layer in a separate file.
_CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight: {rows}
ArrayWidth: {cols}
IfmapSramSzkB: {ifmap_kib}
FilterSramSzkB: {filter_kib}
OfmapSramSzkB: {ofmap_kib}
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow: {dataflow}
Bandwidth: 10
MemoryBanks: 1
ReadRequestBuffer: 32
WriteRequestBuffer: 32
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""
_BLANK = ",".join(["1"] * 20)

_COUNTS = {
    "cycles": "total_cycles",
    "stall_cycles": "stall_cycles",
    "sram_ifmap_reads": "ifmap_sram_reads",
    "sram_filter_reads": "filter_sram_reads",
    "sram_ofmap_writes": "ofmap_sram_writes",
    "dram_ifmap_reads": "ifmap_dram_reads",
    "dram_filter_reads": "filter_dram_reads",
    "dram_ofmap_writes": "ofmap_dram_writes",
}
_SHARES = {
    "utilization": "overall_util",
    "mapping_efficiency": "mapping_eff",
    "compute_utilization": "compute_util",
}


def versions() -> dict[str, str]:
    """Return the version of the installed SCALE-Sim, by package name."""
    return {"scalesim": version("scalesim")}


def prepared(options: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, float]]:
    """Return a function from a design to the metrics that SCALE-Sim computes for it.

    The layers are those of the design's ``layers``, or else of the option ``layers``.
    """
    from scalesim.scale_sim import scalesim

    def measured(design: Mapping[str, Any]) -> dict[str, float]:
        shapes: Counter[tuple[int, ...]] = Counter()
        for layer in design.get("layers") or options["layers"]:
            shapes[tuple(int(layer[key]) for key in _SHAPE)] += int(layer.get("times", 1))
        with tempfile.TemporaryDirectory() as folder:
            files = _write_inputs(Path(folder), design, list(shapes))
            run = scalesim(save_disk_space=True, verbose=False, **files)
            run.run_scale(top_path=folder)
        layers = run.runner.single_layer_sim_object_list
        for layer in layers:
            layer.get_compute_report_items()  # computes the report's values as a side effect
        return _sum_layers(layers, list(shapes.values()))

    return measured


def _write_inputs(
    folder: Path, design: Mapping[str, Any], shapes: list[tuple[int, ...]]
) -> dict[str, str]:
    config = _CONFIG.format(
        rows=int(design["rows"]),
        cols=int(design["cols"]),
        dataflow=design["dataflow"],
        **{
            f"{buffer}_kib": int(design[f"{buffer}_sram"]) // 1024
            for buffer in ("ifmap", "filter", "ofmap")
        },
    )
    names = [f"layer{place}" for place in range(len(shapes))]
    rows = [
        ",".join([name, *map(str, shape), ""]) for name, shape in zip(names, shapes, strict=True)
    ]
    texts = {
        "config": config,
        "topology": "\n".join(["header,", *rows]) + "\n",
        "layout": "\n".join(["header,", *(f"{name},{_BLANK}," for name in names)]) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: str(folder / name) for name in texts}


def _sum_layers(layers: list[Any], times: list[int]) -> dict[str, float]:
    """Combine the metrics of layers: counts are summed, utilizations averaged by cycles."""
    pairs = list(zip(layers, times, strict=True))
    totals = {
        name: float(sum(count * getattr(layer, own) for layer, count in pairs))
        for name, own in _COUNTS.items()
    }
    for name, own in _SHARES.items():
        weighted = sum(count * layer.total_cycles * getattr(layer, own) for layer, count in pairs)
        totals[name] = weighted / totals["cycles"] / 100.0
    return totals
