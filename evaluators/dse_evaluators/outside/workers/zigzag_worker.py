"""Worker for ZigZag's search of loop orders on its ``tpu_like`` accelerator, resized."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

_SHARED_BUFFER = "sram_2MB"
_WEIGHTS = "rf_128B"


def versions() -> dict[str, str]:
    """Return the version of the installed ZigZag, by package name."""
    return {"zigzag": version("zigzag-dse")}


def prepared(options: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, float]]:
    """Return a function from a design to its metrics, in cycles and pJ.

    The layers are those of the design's ``layers``, or else of the option ``layers``. The options
    are ``layers``, ``opt`` (the objective of the search: energy, latency or EDP) and ``lpf_limit``
    (the number of loop factors to order).
    """
    import yaml
    import zigzag
    from zigzag.api import get_hardware_performance_zigzag

    logging.disable(logging.WARNING)
    inputs = Path(zigzag.__file__).parent / "inputs"
    hardware = (inputs / "hardware" / "tpu_like.yaml").read_text()

    def layer_of(shape: Mapping[str, int], files: Mapping[str, str], folder: str) -> Any:
        try:
            return get_hardware_performance_zigzag(
                workload=[_workload(shape)],
                opt=options["opt"],
                lpf_limit=int(options["lpf_limit"]),
                dump_folder=folder,
                loma_show_progress_bar=False,
                **files,
            )[2][0][0]
        except ValueError as error:  # no loop is left to order if the array does all in one step
            raise ValueError(f"ZigZag has no loop order for the layer {dict(shape)}") from error

    def measured(design: Mapping[str, Any]) -> dict[str, float]:
        accelerator = _accelerator(yaml.safe_load(hardware), design)
        # ZigZag takes the order of the memories as their levels, so keys must not be sorted.
        texts = {
            "accelerator": yaml.safe_dump(accelerator, sort_keys=False),
            "mapping": yaml.safe_dump([_mapping(design)], sort_keys=False),
        }
        totals: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            files = {name: f"{folder}/{name}.yaml" for name in texts}
            for name, text in texts.items():
                Path(files[name]).write_text(text)
            for shape in design.get("layers") or options["layers"]:
                found = layer_of(shape, files, folder)
                for name, value in _account(found, _macs(shape)).items():
                    totals[name] += shape.get("times", 1) * value
        return dict(totals)

    return measured


def _account(found: Any, macs: int) -> dict[str, float]:
    """Return one layer's energies in pJ, MACs, and cycles: compute, stall and transfer.

    Transfer cycles are those of the first loads and the last stores.
    """
    return {
        "compute_cycles": float(found.latency_total0),
        "stall_cycles": float(found.latency_total1 - found.latency_total0),
        "transfer_cycles": float(found.latency_total2 - found.latency_total1),
        "mac_energy": float(found.mac_energy),
        "memory_energy": float(found.mem_energy),
        "macs": float(macs),
    }


def _accelerator(plain: dict[str, Any], design: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``tpu_like`` with the design's array, buffers and DRAM bus width.

    The DRAM energy per bit is that of ``tpu_like``.
    """
    rows, cols = int(design["rows"]), int(design["cols"])
    plain["operational_array"]["sizes"] = [cols, rows]
    shared_bytes = int(design["ifmap_sram"]) + int(design["ofmap_sram"])
    plain["memories"][_SHARED_BUFFER]["size"] = 8 * shared_bytes
    plain["memories"][_WEIGHTS]["size"] = 8 * max(1, int(design["filter_sram"]) // (rows * cols))
    bits = max(8, round(8 * float(design["dram_bandwidth"]) / float(design["clock"])))
    dram = plain["memories"]["dram"]
    [port] = dram["ports"]
    wide, port["bandwidth_min"], port["bandwidth_max"] = port["bandwidth_max"], bits, bits
    for cost in ("r_cost", "w_cost"):  # energy of a full bus word; that of a bit stays the same
        dram[cost] *= bits / wide
    return plain


def _mapping(design: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weight-stationary mapping: output filters along columns, channels along rows."""
    return {
        "name": "default",
        "spatial_mapping": {
            "D1": [f"K, {int(design['cols'])}"],
            "D2": [f"C, {int(design['rows'])}"],
        },
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }


def _outputs(shape: Mapping[str, int]) -> tuple[int, int]:
    """Return the width and the height of a layer's output, in pixels."""
    across, down = (
        -(-(shape[side] - shape[f"filter_{side}"] + shape["stride"]) // shape["stride"])
        for side in ("width", "height")
    )
    return across, down


def _macs(shape: Mapping[str, int]) -> int:
    across, down = _outputs(shape)
    window = shape["filter_height"] * shape["filter_width"]
    return across * down * window * shape["channels"] * shape["filters"]


def _workload(shape: Mapping[str, int]) -> dict[str, Any]:
    across, down = _outputs(shape)
    common = {
        "id": 0,
        "name": "layer",
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"I": 0, "W": 0},
    }
    window = shape["filter_height"] * shape["filter_width"]
    if window == 1:  # a 1 x 1 convolution is a GEMM with one row per output pixel
        return {
            **common,
            "operator_type": "Gemm",
            "equation": "O[b][k]+=I[b][c]*W[c][k]",
            "loop_dims": ["B", "C", "K"],
            "loop_sizes": [across * down, shape["channels"], shape["filters"]],
        }
    stride = shape["stride"]
    sizes = {
        "B": 1,
        "K": shape["filters"],
        "G": 1,
        "OX": across,
        "OY": down,
        "C": shape["channels"],
        "FX": shape["filter_width"],
        "FY": shape["filter_height"],
    }
    return {
        **common,
        "operator_type": "Conv",
        "equation": "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]",
        "dimension_relations": [f"ix={stride}*ox+1*fx", f"iy={stride}*oy+1*fy"],
        "loop_dims": list(sizes),
        "loop_sizes": list(sizes.values()),
    }
