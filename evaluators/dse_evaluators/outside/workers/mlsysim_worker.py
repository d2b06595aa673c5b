"""Worker for mlsysim's roofline of a model on one device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

_OTHER_NAMES = {
    "v100-sxm2": "V100",
    "a100-sxm-40gb": "A100_40GB",
    "a100-sxm-80gb": "A100",
    "h100-sxm": "H100",
    "h100-pcie": "H100_PCIe",
    "h200-sxm": "H200",
    "b200-sxm": "B200",
    "mi250x": "MI250X",
    "mi300x": "MI300X",
    "tpu-v4": "TPUv4",
    "tpu-v5p": "TPUv5p",
    "tpu-v6e": "TPUv6",
    "gaudi2": "Gaudi2",
    "gaudi3": "Gaudi3",
    "groq-lpu": "Groq_LPU",
    "cerebras-cs3": "Cerebras_CS3",
    "trainium2": "Trainium2",
    "jetson-agx-orin": "JetsonAGXOrin",
}
_BOTTLENECKS = ("Compute", "Memory")


def versions() -> dict[str, str]:
    """Return the version of the installed mlsysim, by package name."""
    return {"mlsysim": version("mlsysim")}


def prepared(options: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function from a design to the metrics of the model ``options["model"]``.

    The option ``model`` is a name in mlsysim's registry.
    """
    from mlsysim import Hardware, Models
    from mlsysim.engine.engine import Engine

    model = _find_entry(Models, options["model"])

    def measured(design: Mapping[str, Any]) -> dict[str, Any]:
        device = _find_entry(Hardware, _OTHER_NAMES.get(design["device"], design["device"]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = Engine.solve(
                model,
                device,
                batch_size=int(design["batch"]),
                precision=design["precision"],
                efficiency=float(design["efficiency"]),
            )
        if not found.feasible:
            return {"infeasible": _shortage(found, device)}
        return _collect_metrics(
            found, extrapolated=any("default peak_flops" in str(w.message) for w in caught)
        )

    return measured


def _collect_metrics(found: Any, *, extrapolated: bool) -> dict[str, float]:
    latency_s = found.latency.to("s").magnitude
    overhead_s = found.latency_overhead.to("s").magnitude
    return {
        "latency": latency_s,
        "overhead": overhead_s,
        "kernels": latency_s - overhead_s,
        "compute": found.latency_compute.to("s").magnitude,
        "memory": found.latency_memory.to("s").magnitude,
        "energy": found.energy.to("J").magnitude,
        "memory_size": found.memory_footprint.to("byte").magnitude,
        "utilization": found.mfu,
        "bottleneck": _BOTTLENECKS.index(found.bottleneck),
        "extrapolated": int(extrapolated),
    }


def _shortage(found: Any, device: Any) -> str:
    needs = found.memory_footprint.to("GiB").magnitude
    has = device.memory.capacity.to("GiB").magnitude
    short = needs - has
    return f"needs {needs:.1f} GiB of memory, has {has:.1f} GiB: {short:.1f} GiB short"


def _find_entry(registry: Any, name: str) -> Any:
    found = dict(_entries(registry))
    if name not in found:
        raise KeyError(f"mlsysim has no {name!r}; it has {', '.join(sorted(found))}")
    return found[name]


def _entries(registry: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and object of each model or device in mlsysim's registry."""
    for group in vars(registry).values():
        if isinstance(group, type):
            for name in dir(group):
                entry = getattr(group, name)
                if name[0] != "_" and hasattr(entry, "name"):
                    yield name, entry
