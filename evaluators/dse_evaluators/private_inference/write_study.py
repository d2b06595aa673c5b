"""Command that writes a study of the encryption parameters of each layer of a network."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dse.errors import DseError, SpecError
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.own.own_workload import workload_of_option

_INPUTS = ("ring", "data_primes", "prime_bits", "plain_bits", "schedule", "weights_in_ntt")
_FRAGMENT = "library:spaces/private/bfv_layer.yaml"


def write_study(workload: str, folder: Path) -> tuple[str, ...]:
    """Write a space and a study file for a network's encrypted layers; return the layers' names.

    The files are ``space.yaml`` and ``study.yaml``. The study has one evaluator ``private.bfv`` for
    each layer, so that its Pareto front is exact: layers share no parameter, and time and traffic
    are sums over them.

    Args:
        workload: path of an ONNX file, or a text of ``docs/workloads.md``; a path is relative to
            the working directory.
        folder: where the files are written; it is created if it does not exist.

    Raises:
        SpecError: there is no such network, a product has no trained weights, or a file exists.
        PluginError: onnx is not installed.
    """
    layers = workload_of_option(workload).layers
    for layer in layers:
        if not layer.weighted or layer.copies != 1:
            problem = f"{layer.name} is a product of two activations, or of several matrices"
            raise SpecError(problem, hint="a network whose products all have trained weights")
    folder.mkdir(parents=True, exist_ok=True)
    named = str(Path(workload).resolve()) if Path(workload).exists() else workload
    texts = {"space.yaml": _space(len(layers)), "study.yaml": _study(named, layers)}
    for name in texts:
        if (folder / name).exists():
            raise SpecError(f"{folder / name} exists", hint="name another folder")
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(layer.name for layer in layers)


def _space(count: int) -> str:
    includes = "\n".join(f"  layer_{place}: {_FRAGMENT}" for place in range(1, count + 1))
    return f"space: private-layers\ninclude:\n{includes}\n"


def _study(workload: str, layers: Sequence[Layer]) -> str:
    names = [f"layer_{place}" for place in range(1, len(layers) + 1)]
    evaluators = "\n".join(
        f"  {name}:\n"
        f"    use: private.bfv\n"
        f"    workload: {json.dumps(workload)}\n"
        f"    layer: {json.dumps(layer.name)}\n"
        f"    weight_bits: 8\n"
        f"    activation_bits: 8\n"
        f"    bind: {{{', '.join(f'{one}: {name}.{one}' for one in _INPUTS)}}}"
        for name, layer in zip(names, layers, strict=True)
    )
    latency, traffic = (" + ".join(f"{name}.{one}" for name in names) for one in _SUMS)
    optimizer = "decompose" if len(names) > 1 else "auto"
    return (
        f"study: private-layers\nspace: space.yaml\nevaluators:\n{evaluators}\n"
        f"objectives:\n  - minimize: {latency}\n  - minimize: {traffic}\noptimizer: {optimizer}\n"
    )


_SUMS = ("latency", "traffic")


def main() -> None:
    """Write the study of the network that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", help="net.onnx, or a text of docs/workloads.md")
    parser.add_argument("folder", nargs="?", default=".", type=Path)
    asked = parser.parse_args()
    try:
        names = write_study(asked.workload, asked.folder)
    except DseError as error:
        parser.error(str(error))
    sys.stdout.write(f"{asked.folder / 'study.yaml'}: {len(names)} layers: {', '.join(names)}\n")


if __name__ == "__main__":
    main()
