"""Compares metrics and seconds of compressed models on the CPU and on a CUDA device.

    python benchmarks/compression_on_gpu.py [--repeats 3]

The models are a decoder of the Llama family and a convolutional network, with random weights.
Needs numpy, scipy, threadpoolctl and torch with CUDA. Layers are compressed on the CPU in both
cases, once; seconds are of the forward pass over all examples, the first pass left out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.family import family_of
from dse_evaluators.workloads.own.module_workload import ModuleWorkload
from dse_evaluators.workloads.own.own_data import data_source
from dse_evaluators.workloads.own.own_quality import qualities_of
from dse_evaluators.workloads.workload import Signals

DECODER = {
    "model_type": "llama",
    "vocab_size": 2048,
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
}


def make_decoder(folder: Path) -> ModuleWorkload:
    """Return a decoder with random weights on random tokens."""
    tokens = np.random.default_rng(0).integers(0, DECODER["vocab_size"], (320, 128))
    np.savez(folder / "tokens.npz", tokens=tokens)
    values = json.loads(json.dumps(DECODER))
    module = family_of(values).build(ConfigValues(values), ())
    return _workload("decoder", module, folder / "tokens.npz", "perplexity")


def make_cnn(folder: Path) -> ModuleWorkload:
    """Return a convolutional network with random weights on random images."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((1000, 3, 32, 32), dtype=np.float32)
    np.savez(folder / "images.npz", inputs=inputs, targets=rng.integers(0, 10, 1000))
    layers: list[nn.Module] = []
    for before, after in ((3, 64), (64, 128), (128, 256)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
    return _workload("cnn", nn.Sequential(*layers, *head), folder / "images.npz", "accuracy")


def _workload(name: str, module: nn.Module, data: Path, quality: str) -> ModuleWorkload:
    qualities = qualities_of([quality, "cosine"])
    return ModuleWorkload(
        name=name, module=module, data=data_source(data).load(), qualities=qualities
    )


def compare(workload: ModuleWorkload, recipe: str, signals: Signals, repeats: int) -> None:
    """Print the metrics of a recipe on both devices, their deviation, and seconds."""
    workload.move_to("cpu")
    calibration = workload.calibration()
    weights = {
        name: restore_tensor(compress_layer(recipe, workload.parameters[name], inputs))
        for name, inputs in calibration.items()
    }
    parameters = {**workload.parameters, **weights}
    found, seconds, outputs = {}, {}, {}
    for device in ("cpu", "cuda"):
        workload.move_to(device)
        whole = workload.outputs(workload.parameters, "search", Signals())
        took = []
        for _ in range(repeats):
            start = time.perf_counter()
            outputs[device] = workload.outputs(parameters, "search", signals)
            took.append(time.perf_counter() - start)
        found[device] = workload.quality(outputs[device], whole, "search")
        seconds[device] = float(np.median(took))
    workload.move_to("cuda")
    inputs = workload.calibration()
    apart = max(
        float(np.abs(inputs[name] - one).max() / np.abs(one).max())
        for name, one in calibration.items()
    )
    lost = np.abs(outputs["cuda"] - outputs["cpu"]).max() / np.abs(outputs["cpu"]).max()
    print(f"{workload.name}, {recipe}: {seconds['cpu']:.3f} s cpu, {seconds['cuda']:.3f} s cuda")
    print(f"  largest deviation of outputs {lost:.1e}, of calibration inputs {apart:.1e}")
    for metric, value in found["cpu"].items():
        other = found["cuda"][metric]
        print(f"  {metric}: {value:.8g} cpu, {other:.8g} cuda, {abs(other / value - 1):.1e} apart")


def main() -> None:
    """Compare both models in three ways of compression."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    rounded = Signals(activations=format_of("int8:channel"))
    with tempfile.TemporaryDirectory() as name:
        for make in (make_decoder, make_cnn):
            workload = make(Path(name))
            compare(workload, "format int4:channel", Signals(), given.repeats)
            compare(workload, "gptq int4:channel", Signals(), given.repeats)
            compare(workload, "format int4:channel", rounded, given.repeats)


if __name__ == "__main__":
    main()
